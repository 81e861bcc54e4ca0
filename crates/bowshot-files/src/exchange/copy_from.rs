//! Reads one file for COPY FROM. CSV and JSON are parsed in the types of the target columns, so `007` stays as it is in a column of
//! text. Parquet and Arrow have their own types.

use super::Shape;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::reader::ChunkReader;
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::batches::{Batches, Request};
use bowshot_formats::data_file::{DataFile, HandlePool};
use bowshot_formats::extension_types::with_extensions;
use bowshot_formats::file_metadata::FileFacts;
use bowshot_formats::json::{self, Sampling, Strange};
use bowshot_formats::parquet::columns::{self, Written};
use bowshot_formats::parquet::{Chunks, encrypted};
use bowshot_formats::read_options::{ReadOptions, Said, Types};
use bowshot_formats::shared_files::SharedFiles;
use bowshot_formats::{arrow_ipc, csv, intervals, parquet as footer};
use bowshot_object_store::Error as FileError;
use bowshot_object_store::FileIdentity;
use bowshot_object_store::file_name::{Format, Kind};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Rows of one batch.
const BATCH_ROWS: usize = 64 << 10;
/// Objects of a JSON file that are looked at for keys that no column has.
const SAMPLE_ROWS: usize = 1_000;

/// The columns that the rows go into.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Names and types, in the order of the table or of the statement.
    pub fields: Vec<FieldRef>,
    /// Whether the statement names them: then the file must have them all, and may have others.
    pub named: bool,
}

#[derive(Debug)]
pub struct FileRows {
    schema: SchemaRef,
    path: PathBuf,
    batches: Batches,
    /// Brings batches of the formats that go by name to the schema.
    request: Request,
    /// What is told of an error.
    told: fn(FileError) -> Error,
}

impl FileRows {
    pub(super) fn open(path: &Path, shape: Shape, options: &ReadOptions, wanted: &Wanted) -> Result<Self> {
        let metadata = file_facts(path)?;
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        let file = DataFile::new(path.to_path_buf(), identity, HandlePool::new(4));
        Self::of(file, shape, options, wanted)
    }

    /// The same of a file that was found.
    pub(crate) fn of(
        file: Arc<DataFile>,
        shape: Shape,
        options: &ReadOptions,
        wanted: &Wanted,
    ) -> Result<Self> {
        options.check(shape.format)?;
        let path = file.path();
        let mut kind = shape.kind(path);
        kind.compression = options.compression.unwrap_or(kind.compression);
        let opening = Opening { file, shape, kind, options, wanted };
        match shape.format {
            Format::Csv if shape.header => opening.csv_by_name(),
            Format::Csv => opening.csv_by_position(),
            Format::Json => opening.json(),
            Format::Parquet => opening.parquet(),
            Format::Arrow | Format::Avro | Format::Orc | Format::Excel | Format::Text => opening.arrow(),
        }
    }

    /// Rows of a Parquet file that were opened already.
    pub(super) fn of_parquet(
        (path, batches): (PathBuf, Batches),
        request: Request,
        told: fn(FileError) -> Error,
    ) -> Self {
        Self { schema: Arc::clone(&request.schema), path, batches, request, told }
    }

    /// Columns of the rows; their names are those of columns that were wanted, or the file has one more.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The file, if the rows share its memory: to be checked when they have been used.
    pub fn shared(&self) -> SharedFiles {
        self.request.shared.clone()
    }

    /// The next rows. Blocks.
    ///
    /// # Errors
    /// `Corrupt`, naming the file, for what cannot be read, and the line for a value that its column cannot take.
    pub fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.batches.next_of(&self.path)?;
        let fitted = batch.and_then(|batch| {
            self.request
                .fit(&batch, &self.request.schema)
                .map_err(|error| FileError::corrupt(&self.path, error))
        });
        Some(fitted.map_err(self.told))
    }
}

/// What the disk says of a file; of anything else it is an error, before it is opened: a pipe would never end.
fn file_facts(path: &Path) -> Result<Metadata> {
    let metadata = path.symlink_metadata().map_err(|error| FileError::io(path, error))?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(Error::invalid("this is no file").with_hint("name one file; folders are not read"))
}

/// All bytes of a file.
pub(super) fn contents(path: &Path, most: usize) -> Result<Vec<u8>> {
    let metadata = file_facts(path)?;
    let too_large = || {
        Error::new(
            ErrorKind::LimitReached,
            format!("the file has more than {most} bytes, which is the limit"),
        )
    };
    let limit = most as u64;
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(|error| FileError::io(path, error))?;
    // It may have grown meanwhile.
    if bytes.len() > most { Err(too_large()) } else { Ok(bytes) }
}

struct Opening<'a> {
    file: Arc<DataFile>,
    shape: Shape,
    kind: Kind,
    options: &'a ReadOptions,
    wanted: &'a Wanted,
}

impl Opening<'_> {
    fn csv_by_name(self) -> Result<FileRows> {
        let facts = csv::facts(&self.file, &self.kind, &self.csv_options(true), SAMPLE_ROWS)?;
        let schema = self.by_name(&facts.columns)?;
        self.rows(&facts, self.in_wanted_types(&schema))
    }

    /// The first value goes into the first column.
    fn csv_by_position(self) -> Result<FileRows> {
        let schema = Arc::new(Schema::new(self.wanted.fields.iter().map(nullable).collect::<Vec<_>>()));
        let mut options = self.csv_options(false);
        options.delimiter = options.delimiter.or(Some(if self.kind.tabs { b'\t' } else { b',' }));
        options.names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let facts = csv::facts(&self.file, &self.kind, &options, SAMPLE_ROWS)?;
        let (found, wanted) = (facts.columns.fields().len(), schema.fields().len());
        if found > wanted {
            return Err(Error::from(FileError::Record {
                path: self.file.path().to_path_buf(),
                line: 1,
                detail: format!("{found} values for {wanted} columns"),
                hint: "correct the file, or name the columns that it has",
            }));
        }
        self.rows(&facts, schema)
    }

    /// A statement that copies rows says how they are written: nothing is guessed but a delimiter, by the header.
    fn csv_options(&self, header: bool) -> ReadOptions {
        let mut options = self.options.clone();
        let types = self.wanted.fields.iter().map(|field| (field.name().clone(), field.data_type().clone()));
        options.types = Types::ByName(types.collect());
        options.header = Some(header);
        options.delimiter = self.shape.delimiter.or(options.delimiter);
        options.skip = options.skip.or(Some(0));
        options.exact = !options.null_padding;
        let said = |said: Said<u8>, usual: Said<u8>| if said == Said::Nothing { usual } else { said };
        options.quote = said(options.quote, Said::Some(b'"'));
        options.escape = said(
            options.escape,
            match options.quote {
                Said::Some(quote) => Said::Some(quote),
                _ => Said::None,
            },
        );
        options.comment = said(options.comment, Said::None);
        options.nulls = options.nulls.or_else(|| Some(vec![String::new()]));
        options
    }

    /// A key that an object lacks is null. Keys that no column has are refused, later ones by the rows.
    fn json(self) -> Result<FileRows> {
        let strange = if self.wanted.named { Strange::LeftOut } else { Strange::Refused };
        let facts =
            json::facts(&self.file, &self.kind, self.options, Sampling { rows: SAMPLE_ROWS, strange })?;
        let mut fields: Vec<Field> = self.wanted.fields.iter().map(nullable).collect();
        if !self.wanted.named {
            let strange = facts.columns.fields().iter().filter(|field| self.find(field.name()).is_none());
            fields.extend(strange.map(|field| field.as_ref().clone()));
        }
        self.rows(&facts, Arc::new(Schema::new(fields)))
    }

    fn arrow(self) -> Result<FileRows> {
        let facts = arrow_ipc::facts(&self.file)?;
        let schema = self.by_name(&facts.columns)?;
        self.rows(&facts, schema)
    }

    fn parquet(self) -> Result<FileRows> {
        let path = self.file.path().to_path_buf();
        let (builder, columns) = parquet_builder(Chunks(Arc::clone(&self.file)))
            .map_err(|error| footer::explain(&self.file, error))?;
        let columns = bowshot_formats::schema::plain(&columns);
        let schema = self.by_name(&columns)?;
        columns::check(schema.fields().iter().map(AsRef::as_ref), &path)?;
        let roots = self.request(Arc::clone(&schema)).positions_in(&columns);
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let reader = builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| footer::explain(&self.file, error))?;
        let file = Arc::clone(&self.file);
        let told = move |batch: std::result::Result<RecordBatch, ArrowError>| {
            batch.map_err(|error| encrypted::told(&file, FileError::corrupt(file.path(), error)))
        };
        let batches = Batches::new(reader.map(told));
        let request = self.request(schema);
        Ok(FileRows::of_parquet((path, batches), request, Error::from))
    }

    fn rows(&self, facts: &FileFacts, schema: SchemaRef) -> Result<FileRows> {
        let request = self.request(Arc::clone(&schema));
        let batches = facts.open(&self.file, &request)?;
        Ok(FileRows { schema, path: self.file.path().to_path_buf(), batches, request, told: Error::from })
    }

    fn request(&self, schema: SchemaRef) -> Request {
        let (compression, shared) = (self.kind.compression, SharedFiles::default());
        Request { schema, batch_size: BATCH_ROWS, range: None, compression, shared }
    }

    /// Of the file's columns those that are wanted by name, or all where nothing is named.
    fn by_name(&self, columns: &Schema) -> Result<SchemaRef> {
        if !self.wanted.named {
            return Ok(Arc::new(columns.clone()));
        }
        let found = self.wanted.fields.iter().map(|field| {
            let of_file = columns.fields().iter().find(|column| column.name() == field.name());
            of_file.cloned().ok_or_else(|| {
                let there: Vec<&str> = columns.fields().iter().map(|column| column.name().as_str()).collect();
                Error::not_found(format!("the file has no column `{}`", field.name()))
                    .with_hint(format!("it has {}", there.join(", ")))
            })
        });
        Ok(Arc::new(Schema::new(found.collect::<Result<Vec<_>>>()?)))
    }

    /// Text is read as what its column is. A column that the table lacks is refused above.
    fn in_wanted_types(&self, columns: &Schema) -> SchemaRef {
        let typed = columns.fields().iter().map(|column| match self.find(column.name()) {
            Some(field) => nullable(field),
            None => column.as_ref().clone(),
        });
        Arc::new(Schema::new(typed.collect::<Vec<_>>()))
    }

    fn find(&self, name: &str) -> Option<&FieldRef> {
        self.wanted.fields.iter().find(|field| field.name() == name)
    }
}

/// Reads the footer of a Parquet file: what reads its rows, and its columns.
pub(super) fn parquet_builder<T: ChunkReader + 'static>(
    chunks: T,
) -> Result<(ParquetRecordBatchReaderBuilder<T>, Schema), ParquetError> {
    let footer = Arc::new(ParquetMetaDataReader::new().parse_and_finish(&chunks)?);
    let Written { schema: written, is_told } = columns::written(&footer)?;
    let columns = Arc::new(footer::with_wide_times(&footer, &written).into_owned());
    let mut options = ArrowReaderOptions::new();
    if is_told || columns.fields() != written.fields() {
        options = options.with_schema(intervals::schema_as_bytes(&columns));
    }
    let columns = with_extensions(&columns, footer.file_metadata().schema_descr().root_schema());
    let metadata = ArrowReaderMetadata::try_new(intervals::as_bytes(footer)?, options)?;
    Ok((ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, metadata), columns))
}

/// What must not be null is refused by the table, which says so better.
fn nullable(field: &FieldRef) -> Field {
    Field::new(field.name(), field.data_type().clone(), true)
}
