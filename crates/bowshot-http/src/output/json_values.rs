//! Values as JSON, by Arrow's writer. Non-finite numbers are written as strings, binary UUIDs with hyphens, and VARIANT as the
//! value that it is.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, PrimitiveArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float16Type, Float32Type, Float64Type, Schema};
use arrow::error::ArrowError;
use arrow::json::writer::{NullableEncoder, make_encoder};
use arrow::json::{Encoder, EncoderFactory, EncoderOptions};
use arrow::record_batch::RecordBatch;
use bowshot_api::variant::{is_variant_type, json_encoder};
use half::f16;
use std::io::Write as _;
use std::sync::Arc;

/// Key of the metadata of a field, and the extension type of UUIDs.
const EXTENSION: &str = "ARROW:extension:name";
const UUID: &str = "arrow.uuid";

pub(super) fn is_uuid(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(16)
        && field.metadata().get(EXTENSION).is_some_and(|name| name == UUID)
}

/// As [`is_uuid`], for items of lists and maps, whose encoders get the outer field.
fn has_uuids(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => has_uuids(item),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => pair.last().is_some_and(|value| has_uuids(value)),
            _ => false,
        },
        _ => is_uuid(field),
    }
}

pub(super) fn options() -> EncoderOptions {
    EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(Arc::new(OwnEncoders))
}

pub(super) struct JsonValues<'a>(Vec<NullableEncoder<'a>>);

impl<'a> JsonValues<'a> {
    pub(super) fn new(batch: &'a RecordBatch, options: &'a EncoderOptions) -> Result<Self, ArrowError> {
        let fields = batch.schema_ref().fields().iter();
        let columns = fields.zip(batch.columns());
        columns
            .map(|(field, column)| make_encoder(field, column.as_ref(), options))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn put(&mut self, column: usize, row: usize, out: &mut Vec<u8>) {
        match self.0.get_mut(column) {
            Some(cell) if !cell.is_null(row) => cell.encode(row, out),
            _ => out.extend_from_slice(b"null"),
        }
    }
}

/// Checks that all columns can be encoded.
pub(super) fn check(schema: &Schema) -> Result<(), ArrowError> {
    let empty = RecordBatch::new_empty(Arc::new(schema.clone()));
    JsonValues::new(&empty, &options()).map(drop)
}

#[derive(Debug)]
struct OwnEncoders;

impl EncoderFactory for OwnEncoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder> = match array.data_type() {
            of if is_variant_type(of) => return json_encoder(array).map(Some),
            DataType::Float16 => Box::new(Float(array.as_primitive::<Float16Type>().clone())),
            DataType::Float32 => Box::new(Float(array.as_primitive::<Float32Type>().clone())),
            DataType::Float64 => Box::new(Float(array.as_primitive::<Float64Type>().clone())),
            DataType::FixedSizeBinary(16) if has_uuids(field) => {
                Box::new(Uuids(array.as_fixed_size_binary().clone()))
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct Uuids(FixedSizeBinaryArray);

impl Encoder for Uuids {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        for (place, byte) in self.0.value(row).iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            // Writing to a vector cannot fail.
            _ = write!(out, "{byte:02x}");
        }
        out.push(b'"');
    }
}

struct Float<T: ArrowPrimitiveType>(PrimitiveArray<T>);

impl<T> Encoder for Float<T>
where
    T: ArrowPrimitiveType,
    T::Native: Wide,
{
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        // Writing to a vector cannot fail.
        _ = match value.wide() {
            wide if wide.is_nan() => write!(out, "\"NaN\""),
            f64::INFINITY => write!(out, "\"Infinity\""),
            f64::NEG_INFINITY => write!(out, "\"-Infinity\""),
            // The shortest text that is read as the same number.
            _ => write!(out, "{value:?}"),
        };
    }
}

/// Floating-point numbers of every width.
trait Wide: Copy {
    fn wide(self) -> f64;
}

impl Wide for f64 {
    fn wide(self) -> f64 {
        self
    }
}

impl Wide for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Wide for f16 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
}
