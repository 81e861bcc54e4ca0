//! Writes one file for COPY TO. It has a hidden name until it is complete, and is removed if writing fails.

use super::{Shape, partial_files};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::FileWriter as ArrowFile;
use arrow::json::writer::LineDelimited;
use arrow::json::{LineDelimitedWriter, WriterBuilder};
use bowshot_api::variant::JsonEncoders;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_formats::parquet::row_groups::RowGroups;
use bowshot_object_store::Upload;
use bowshot_object_store::file_name::Format;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Bytes that a Parquet row group may take in memory before it is written, however few rows it has.
const ROW_GROUP_BYTES: usize = 64 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// Where a file is to be.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// Without links.
    pub(super) folder: &'a Path,
    pub(super) name: &'a OsStr,
    /// As the statement names it.
    pub(super) path: &'a str,
}

/// Writes one file, which is hidden until it is complete. Dropping it without [`FileWriter::finish`] leaves nothing behind.
pub struct FileWriter {
    encoder: Option<Encoder>,
    fault: Fault,
    /// Where it is until then, and where it is to be; nothing of a file that goes into an object store.
    named: Option<Named>,
    path: String,
}

struct Named {
    temporary: PathBuf,
    target: PathBuf,
    overwrite: bool,
}

bowshot_api::debug_fields!(FileWriter { path });

enum Encoder {
    Parquet(Box<ArrowWriter<Sink>>, RowGroups),
    Csv(Box<arrow::csv::Writer<Sink>>),
    Json(Box<LineDelimitedWriter<Sink>>),
    Arrow(Box<ArrowFile<Sink>>),
}

impl FileWriter {
    pub(super) fn create(
        place: &Place<'_>,
        shape: Shape,
        schema: &SchemaRef,
        overwrite: bool,
    ) -> Result<Self> {
        let target = place.folder.join(place.name);
        match target.symlink_metadata() {
            Ok(there) if there.is_dir() => {
                return Err(Error::invalid(format!("`{}` is a folder", place.path)));
            }
            Ok(_) if !overwrite => return Err(exists(place.path)),
            _ => {}
        }
        let (temporary, file) =
            partial_files::begin(place.folder).map_err(|error| unwritable(place.path, &error.to_string()))?;
        let named = Some(Named { temporary, target, overwrite });
        let out = Out::File(BufWriter::with_capacity(BUFFER_BYTES, file));
        Self::begin(named, out, place.path, (shape, schema))
    }

    /// Begins a file in an object store.
    pub(super) fn upload(upload: Upload, path: &str, shape: Shape, schema: &SchemaRef) -> Result<Self> {
        Self::begin(None, Out::Upload(Box::new(upload)), path, (shape, schema))
    }

    fn begin(
        named: Option<Named>,
        out: Out,
        path: &str,
        (shape, schema): (Shape, &SchemaRef),
    ) -> Result<Self> {
        let fault = Fault::default();
        let sink = Sink { out, fault: Arc::clone(&fault) };
        let mut writer = Self { encoder: None, fault, named, path: path.to_owned() };
        let encoder = Encoder::new(shape, schema, sink).map_err(|error| writer.failed(&error))?;
        writer.encoder = Some(encoder);
        Ok(writer)
    }

    /// Adds rows of the schema that the file was begun with. Blocks.
    ///
    /// # Errors
    /// `Unavailable` when the disk does not take them, `Unsupported` when the format does not.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let written = match &mut self.encoder {
            None => return Err(Error::internal("rows for a file that is not open")),
            Some(Encoder::Parquet(writer, groups)) => write_parquet(writer, groups, rows),
            Some(Encoder::Csv(writer)) => writer.write(rows).map_err(|error| error.to_string()),
            Some(Encoder::Json(writer)) => writer.write(rows).map_err(|error| error.to_string()),
            Some(Encoder::Arrow(writer)) => writer.write(rows).map_err(|error| error.to_string()),
        };
        written.map_err(|error| self.failed(&error))
    }

    /// Brings the file to disk and gives it its name, unless something is against that by then. Blocks.
    ///
    /// # Errors
    /// As [`FileWriter::write`]; `AlreadyExists` when somebody else has made the file meanwhile; those of `check`.
    pub fn finish(mut self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(encoder) = self.encoder.take() else {
            return Err(Error::internal("a file that is not open was finished"));
        };
        let sink = encoder.finish().map_err(|error| self.failed(&error))?;
        let file = match sink.out {
            Out::Upload(upload) => return upload.finish(check),
            Out::File(file) => file,
        };
        let file = file.into_inner().map_err(|error| unwritable(&self.path, &error.to_string()))?;
        file.sync_all().map_err(|error| unwritable(&self.path, &error.to_string()))?;
        check()?;
        let named = self.named.as_ref().map_or(Ok(()), Named::take_name);
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => unwritable(&self.path, &error.to_string()),
        })
    }

    /// Encoders flatten what the file said to text, or hide it.
    fn failed(&self, error: &str) -> Error {
        match self.fault.get() {
            Some(fault) => unwritable(&self.path, fault),
            None => Error::unsupported(format!("the rows cannot be written to `{}`: {error}", self.path))
                .with_hint("cast the columns in a query, or choose another format"),
        }
    }
}

impl Named {
    fn take_name(&self) -> io::Result<()> {
        if self.overwrite {
            std::fs::rename(&self.temporary, &self.target)?;
        } else {
            // Unlike a renaming, a link never takes the place of a file that is there. The other name goes with the writer.
            std::fs::hard_link(&self.temporary, &self.target)?;
        }
        match self.target.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // An upload takes itself back.
        self.encoder = None;
        let Some(named) = &self.named else { return };
        match std::fs::remove_file(&named.temporary) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(file = %named.temporary.display(), %error, "an unfinished file stays behind");
            }
        }
    }
}

impl Encoder {
    fn new(shape: Shape, schema: &SchemaRef, sink: Sink) -> Result<Self, String> {
        Ok(match shape.format {
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties));
                Self::Parquet(Box::new(writer.map_err(|error| error.to_string())?), RowGroups::default())
            }
            Format::Csv => {
                let mut writer = arrow::csv::WriterBuilder::new()
                    .with_header(shape.header)
                    .with_delimiter(shape.delimiter.unwrap_or(b','))
                    .build(sink);
                // The header comes with the first batch, of which there may be none.
                let first = RecordBatch::new_empty(Arc::clone(schema));
                writer.write(&first).map_err(|error| error.to_string())?;
                Self::Csv(Box::new(writer))
            }
            Format::Json => {
                let writer = WriterBuilder::new().with_encoder_factory(Arc::new(JsonEncoders));
                Self::Json(Box::new(writer.build::<_, LineDelimited>(sink)))
            }
            Format::Arrow => {
                let writer = ArrowFile::try_new(sink, schema);
                Self::Arrow(Box::new(writer.map_err(|error| error.to_string())?))
            }
            Format::Avro | Format::Orc | Format::Excel | Format::Text => {
                return Err(format!("{} is only read", shape.format));
            }
        })
    }

    fn finish(self) -> Result<Sink, String> {
        match self {
            Self::Parquet(writer, _) => writer.into_inner().map_err(|error| error.to_string()),
            Self::Csv(writer) => Ok(writer.into_inner()),
            Self::Json(mut writer) => {
                writer.finish().map_err(|error| error.to_string())?;
                Ok(writer.into_inner())
            }
            Self::Arrow(writer) => writer.into_inner().map_err(|error| error.to_string()),
        }
    }
}

fn write_parquet(
    writer: &mut ArrowWriter<Sink>,
    groups: &mut RowGroups,
    rows: &RecordBatch,
) -> Result<(), String> {
    groups.write(writer, rows).map_err(|error| error.to_string())?;
    if writer.in_progress_size() >= ROW_GROUP_BYTES {
        writer.flush().map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What the disk said first.
type Fault = Arc<OnceLock<String>>;

struct Sink {
    out: Out,
    fault: Fault,
}

enum Out {
    File(BufWriter<File>),
    Upload(Box<Upload>),
}

impl Out {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => file,
            Self::Upload(upload) => upload,
        }
    }
}

impl Sink {
    fn noted<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| {
            let _ = self.fault.set(error.to_string());
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.writer().write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.writer().flush();
        self.noted(done)
    }
}

fn exists(path: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("file `{path}` already exists"))
        .with_reason(Reason::DuplicateFile)
        .with_hint("choose another name, or write `WITH (OVERWRITE true)`")
}

fn unwritable(path: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("`{path}` cannot be written: {reason}"))
        .with_hint("check the permissions and the free space of the exchange folder, or the object store")
}
