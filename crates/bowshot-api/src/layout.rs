//! Column types and compression of a result on the wire. [`Layout::schema`] gives the schema that FlightInfo,
//! GetSchema, prepared statements and the encoder use; [`Layout::apply`] casts a batch to it.
//! The default has plain types only: released JDBC and JavaScript clients cannot read views, dictionaries, run-end
//! encoding or compressed bodies, and the JDBC drivers read unsigned numbers as signed ([`Layout::wide_numbers`]).

use crate::{Error, Result, variant};
use arrow::array::{Array, ArrayRef, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, UnionFields};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// Precedes a number that makes equal column names of one plan unique; clients see the name without it.
pub const SAME_NAME_MARK: char = '\u{1}';

/// A column's name as clients see it.
pub fn display_name(name: &str) -> &str {
    name.split(SAME_NAME_MARK).next().unwrap_or(name)
}

/// Compression of record batch bodies (Arrow IPC `BodyCompression`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Encodings that a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    /// Keep `Utf8View`, `BinaryView` and list views.
    pub views: bool,
    /// Keep dictionary and run-end encoded columns.
    pub dictionaries: bool,
    /// Send numbers that not every client reads in wider signed types: unsigned ones, `Float16`, decimals of 32 and 64 bits.
    pub wide_numbers: bool,
    /// Send VARIANT columns as JSON text.
    pub json_variants: bool,
    /// Compress bodies.
    pub compression: Compression,
}

impl Layout {
    /// The schema of a result in this layout. Names, order, nullability and metadata stay.
    pub fn schema(&self, schema: &Schema) -> SchemaRef {
        let fields: Fields = schema.fields().iter().map(|field| self.column(field)).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// Casts a batch to `schema`; columns that fit are shared, not copied.
    ///
    /// `schema` is [`Layout::schema`] of the producer's schema. A batch whose column cannot be cast is an internal
    /// error, since both sides come from the same plan.
    pub fn apply(&self, batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| fit(column, field))
            .collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options).map_err(|error| {
            Error::internal("a batch does not fit the schema of its result").with_source(error)
        })
    }

    fn column(&self, field: &FieldRef) -> FieldRef {
        let laid_out = self.field(field);
        let as_json = self.json_variants && variant::is_variant_type(field.data_type());
        if as_json { variant::as_json(&laid_out) } else { laid_out }
    }

    /// Names, order and nullability stay; VARIANT columns say what they are by Arrow's extension type.
    fn field(&self, field: &FieldRef) -> FieldRef {
        let kept = self.data_type(field.data_type());
        let name = display_name(field.name());
        if &kept == field.data_type() && name == field.name() {
            return variant::marked(field);
        }
        let metadata = field.metadata().clone();
        variant::marked(&Arc::new(Field::new(name, kept, field.is_nullable()).with_metadata(metadata)))
    }

    fn data_type(&self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Utf8View if !self.views => DataType::Utf8,
            DataType::BinaryView if !self.views => DataType::Binary,
            DataType::ListView(item) if !self.views => DataType::List(self.field(item)),
            DataType::LargeListView(item) if !self.views => DataType::LargeList(self.field(item)),
            DataType::ListView(item) => DataType::ListView(self.field(item)),
            DataType::LargeListView(item) => DataType::LargeListView(self.field(item)),
            DataType::Dictionary(_, value) if !self.dictionaries => self.data_type(value),
            DataType::RunEndEncoded(_, value) if !self.dictionaries => self.data_type(value.data_type()),
            DataType::List(item) => DataType::List(self.field(item)),
            DataType::LargeList(item) => DataType::LargeList(self.field(item)),
            DataType::FixedSizeList(item, size) => DataType::FixedSizeList(self.field(item), *size),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| self.field(f)).collect()),
            DataType::Map(entries, sorted) => DataType::Map(self.field(entries), *sorted),
            DataType::Union(fields, mode) => {
                let fields: UnionFields = fields.iter().map(|(id, f)| (id, self.field(f))).collect();
                DataType::Union(fields, *mode)
            }
            other if self.wide_numbers => wide(other),
            other => other.clone(),
        }
    }
}

fn wide(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale) => {
            DataType::Decimal128(*digits, *scale)
        }
        other => other.clone(),
    }
}

fn fit(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    if variant::is_variant_type(column.data_type()) && *field.data_type() == DataType::Utf8 {
        let texts = variant::json_texts(column).map_err(|error| Error::invalid(error.to_string()))?;
        return Ok(Arc::new(texts));
    }
    cast(column, field.data_type()).map_err(|error| {
        Error::unsupported(format!(
            "cannot send column `{}` of type {} as {}",
            field.name(),
            column.data_type(),
            field.data_type()
        ))
        .with_hint("cast it in the query, or set the session options `views` and `dictionaries` to true")
        .with_source(error)
    })
}
