//! Rows to Parquet files of a table, each of one partition.

use super::metrics::Metrics;
use super::new_files::{NewFiles, Sink};
use super::table_state::Target;
use crate::row_lineage::name_in_rows;
use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat_batches, take_record_batch};
use arrow::datatypes::FieldRef;
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use bowshot_api::{Error, ErrorKind, Reason, Result, batch_bytes};
use bowshot_formats::parquet::row_groups::RowGroups;
use datafusion::common::{DataFusionError, ScalarValue};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Rows of a row group: what one thread of a scan takes at once.
const GROUP_ROWS: usize = 1 << 20;
const FILE_BYTES: usize = 512 << 20;
/// Bytes of rows in memory that wait until enough of them go to files of their partitions.
const WAITING_BYTES: usize = 256 << 20;
/// The order of rows that are in none.
const UNSORTED: i64 = 0;
const MAX_FILES: usize = 10_000;

/// Writes rows to Parquet files, one partition each. Everything blocks.
#[derive(Debug)]
pub(in super::super) struct RowWriter {
    target: Target,
    files: NewFiles,
    statement: Uuid,
    /// The file that is open; of a table without partitions.
    open: Option<OpenFile>,
    waiting: HashMap<Vec<u8>, Waiting>,
    waiting_bytes: usize,
    written: Vec<WrittenFile>,
}

#[derive(Debug)]
struct Waiting {
    partition: Vec<ScalarValue>,
    rows: Vec<RecordBatch>,
}

#[derive(Debug)]
struct OpenFile {
    name: String,
    writer: ArrowWriter<Sink>,
    groups: RowGroups,
}

#[derive(Debug, Default)]
pub(in super::super) struct WrittenFile {
    /// 0 for data; else what it deletes rows by.
    pub(in super::super) content: i64,
    pub(in super::super) path: String,
    pub(in super::super) format: String,
    pub(in super::super) partition: Vec<ScalarValue>,
    pub(in super::super) rows: i64,
    pub(in super::super) bytes: i64,
    pub(in super::super) metrics: Metrics,
    pub(in super::super) key: Option<Vec<u8>>,
    /// Numbers of the columns by whose values it deletes rows.
    pub(in super::super) equality: Vec<i32>,
    pub(in super::super) sort_order: Option<i64>,
    /// The number of its first row, if it is not told by its manifest.
    pub(in super::super) first_row: Option<i64>,
    /// The one file that it deletes rows of.
    pub(in super::super) referenced: Option<String>,
    /// Where a vector is in its file: its place and its length.
    pub(in super::super) range: Option<(i64, i64)>,
}

pub(super) type Written = (Target, NewFiles, Vec<WrittenFile>);

impl RowWriter {
    pub(in super::super) fn new(target: Target, files: NewFiles) -> Self {
        Self {
            target,
            files,
            statement: Uuid::new_v4(),
            open: None,
            waiting: HashMap::new(),
            waiting_bytes: 0,
            written: Vec::new(),
        }
    }

    pub(in super::super) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let rows = self.fitted(rows)?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        if !self.target.spec.partition.is_empty() {
            self.wait(&rows)?;
            return if self.waiting_bytes >= WAITING_BYTES { self.write_waiting() } else { Ok(()) };
        }
        let mut file = match self.open.take() {
            Some(file) => file,
            None => self.begin()?,
        };
        file.groups.write(&mut file.writer, &rows).map_err(|error| refused(&error))?;
        if file.writer.bytes_written() >= FILE_BYTES {
            return self.finish_file(file, Vec::new());
        }
        self.open = Some(file);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Written> {
        if let Some(file) = self.open.take() {
            self.finish_file(file, Vec::new())?;
        }
        self.write_waiting()?;
        Ok((self.target, self.files, self.written))
    }

    /// The rows with all columns of the table, in its types.
    fn fitted(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let column = |(place, field): (usize, &FieldRef)| {
            let found = match rows.column_by_name(name_in_rows(field)) {
                None => match self.target.defaults.get(place).filter(|default| !default.is_null()) {
                    Some(default) => default.to_array_of_size(rows.num_rows()).map_err(no_default)?,
                    None => new_null_array(field.data_type(), rows.num_rows()),
                },
                Some(found) if found.data_type() == field.data_type() => Arc::clone(found),
                Some(found) => cast_with_options(found, field.data_type(), &options).map_err(not_fitting)?,
            };
            if field.is_nullable() || found.logical_null_count() == 0 {
                return Ok(found);
            }
            let name = field.name();
            Err(Error::invalid(format!("column `{name}` of the table must not be NULL"))
                .with_reason(Reason::NotNullViolation)
                .with_hint(format!("give `{name}` a value in every row")))
        };
        let fields = self.target.schema.fields().iter().enumerate();
        let columns = fields.map(column).collect::<Result<Vec<ArrayRef>>>()?;
        RecordBatch::try_new(Arc::clone(&self.target.schema), columns).map_err(not_fitting)
    }

    fn wait(&mut self, rows: &RecordBatch) -> Result<()> {
        let values = self.target.spec.partition.iter().map(|field| match field.source {
            Some(place) => field.transform.apply(rows.column(place)),
            None => Ok(new_null_array(&field.result, rows.num_rows())),
        });
        let values = values.collect::<std::result::Result<Vec<ArrayRef>, ArrowError>>().map_err(broken)?;
        let types = values.iter().map(|values| SortField::new(values.data_type().clone()));
        let converter = RowConverter::new(types.collect()).map_err(broken)?;
        let keys = converter.convert_columns(&values).map_err(broken)?;
        let mut places: HashMap<&[u8], Vec<u64>> = HashMap::new();
        let keys: Vec<_> = keys.iter().collect();
        for (place, key) in (0_u64..).zip(&keys) {
            places.entry(key.as_ref()).or_default().push(place);
        }
        for (key, places) in places {
            let first = places.first().and_then(|place| usize::try_from(*place).ok()).unwrap_or(0);
            let part = match places.len() == rows.num_rows() {
                true => rows.clone(),
                false => take_record_batch(rows, &UInt64Array::from(places)).map_err(broken)?,
            };
            self.waiting_bytes += batch_bytes(&part);
            if let Some(waiting) = self.waiting.get_mut(key) {
                waiting.rows.push(part);
                continue;
            }
            let value = |values: &ArrayRef| ScalarValue::try_from_array(values, first);
            let partition = values.iter().map(value).collect::<std::result::Result<Vec<_>, _>>();
            let partition = partition.map_err(|error| Error::internal("no partition").with_source(error))?;
            self.waiting.insert(key.to_vec(), Waiting { partition, rows: vec![part] });
        }
        Ok(())
    }

    fn write_waiting(&mut self) -> Result<()> {
        self.waiting_bytes = 0;
        for Waiting { partition, rows } in std::mem::take(&mut self.waiting).into_values() {
            let mut file = self.begin()?;
            // Many small batches of one partition would cost more than to copy them.
            let rows = concat_batches(&self.target.schema, &rows).map_err(broken)?;
            file.groups.write(&mut file.writer, &rows).map_err(|error| refused(&error))?;
            self.finish_file(file, partition)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<OpenFile> {
        let number = self.written.len();
        if number >= MAX_FILES {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("the rows have more than {MAX_FILES} partitions"),
            )
            .with_hint("insert the rows of fewer partitions with each statement"));
        }
        let name = format!("data/{}-{number:05}.parquet", self.statement);
        let options = ArrowWriterOptions::new()
            .with_properties(properties(&self.target))
            .with_skip_arrow_metadata(true);
        let sink = self.files.begin(&name)?;
        let writer = ArrowWriter::try_new_with_options(sink, Arc::clone(&self.target.schema), options);
        let writer = writer.map_err(|error| refused(&error))?;
        Ok(OpenFile { name, writer, groups: RowGroups::default() })
    }

    fn finish_file(&mut self, mut file: OpenFile, partition: Vec<ScalarValue>) -> Result<()> {
        let footer = file.writer.finish().map_err(|error| refused(&error))?;
        let bytes = i64::try_from(file.writer.bytes_written()).unwrap_or(i64::MAX);
        self.files.finish(std::mem::replace(file.writer.inner_mut(), Sink::Taken))?;
        self.written.push(WrittenFile {
            path: self.target.address(&file.name),
            format: "PARQUET".to_owned(),
            partition,
            rows: footer.file_metadata().num_rows(),
            bytes,
            metrics: Metrics::new(&footer, &self.target.columns, &self.target.schema),
            sort_order: Some(UNSORTED),
            ..WrittenFile::default()
        });
        Ok(())
    }
}

/// As those of durable tables: of floats no statistics, since their bounds leave NaN out.
fn properties(target: &Target) -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(concat!("bowshot ", env!("CARGO_PKG_VERSION")).to_owned());
    let floats = target.schema.fields().iter().filter(|field| field.data_type().is_floating());
    let floats = floats.map(|field| ColumnPath::from(field.name().as_str()));
    let without = |builder: WriterPropertiesBuilder, column| {
        builder.set_column_statistics_enabled(column, EnabledStatistics::None)
    };
    floats.fold(builder, without).build()
}

fn not_fitting(error: ArrowError) -> Error {
    Error::invalid(format!("the rows do not fit the columns of the table: {error}")).with_source(error)
}

fn no_default(error: DataFusionError) -> Error {
    Error::internal("a column cannot have its default").with_source(error)
}

fn broken(error: ArrowError) -> Error {
    Error::internal("cannot divide rows into partitions").with_source(error)
}

fn refused(error: &ParquetError) -> Error {
    Error::new(ErrorKind::Unavailable, format!("a file of the table cannot be written: {error}"))
        .with_hint("the statement was not committed; run it again when the table's folder is writable")
}
