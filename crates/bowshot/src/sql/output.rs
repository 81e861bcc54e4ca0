//! Where results are written and in which format: one [`Sink`] for each result.

use super::pager::Paged;
use super::table::TableWriter;
use super::usage;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use arrow::array::{Array, ArrayRef, StringArray};
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::json;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bowshot_api::variant::{JsonEncoders, is_variant_type, json_texts};
use bowshot_formats::parquet::row_groups::RowGroups;
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

const BUFFER_BYTES: usize = 256 << 10;

/// Form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// One JSON object per line
    Json,
    /// Parquet, compressed with zstd
    Parquet,
    /// Arrow IPC: a stream on stdout, a file with --output
    Arrow,
}

/// Form and place, the same for all results.
#[derive(Debug)]
pub(super) struct Destination {
    format: Format,
    path: Option<PathBuf>,
}

/// How a table looks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    /// Rows that are shown; 0 for all.
    pub(super) max_rows: usize,
    /// One line per value instead of one per row.
    pub(super) expanded: bool,
    /// Lines of the screen: a longer table goes through a pager.
    pub(super) screen_lines: Option<usize>,
}

impl Destination {
    pub(super) fn new(format: Option<Format>, path: Option<&Path>) -> Result<Self> {
        let format = match (format, path) {
            (Some(format), _) => format,
            (None, None) => Format::Table,
            (None, Some(path)) => by_extension(path).ok_or_else(|| unknown_ending(path))?,
        };
        let binary = matches!(format, Format::Parquet | Format::Arrow);
        if binary && path.is_none() && io::stdout().is_terminal() {
            bail!(usage(format!("a terminal cannot show {format}; redirect stdout or give --output FILE")));
        }
        Ok(Self { format, path: path.map(Path::to_owned) })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Files and the binary forms hold one result.
    pub(super) fn check_count(&self, statements: usize) -> Result<()> {
        let single = self.path.is_some() || matches!(self.format, Format::Parquet | Format::Arrow);
        if single && statements > 1 {
            let what =
                if self.path.is_some() { "--output".to_owned() } else { format!("--format {}", self.format) };
            bail!(usage(format!("{what} needs exactly one statement, got {statements}")));
        }
        Ok(())
    }

    pub(super) fn is_table(&self) -> bool {
        self.format == Format::Table && self.path.is_none()
    }

    /// Whether batches appear on the terminal as they come, so that a line of progress would be in the way.
    pub(super) fn draws_on_terminal(&self) -> bool {
        self.path.is_none() && matches!(self.format, Format::Csv | Format::Json) && io::stdout().is_terminal()
    }

    pub(super) fn open(&self, schema: &SchemaRef, layout: Layout) -> Result<Sink> {
        let output = match layout.screen_lines.filter(|_| self.is_table()) {
            Some(lines) => Output::Paged(Paged::new(lines)),
            None => Output::open(self.path.as_deref())?,
        };
        let writer = match self.format {
            Format::Table => Writer::Table(output, TableWriter::new(schema, layout)),
            Format::Csv => Writer::Csv(csv::Writer::new(output), csv_schema(schema), false),
            Format::Json => {
                let writer = json::WriterBuilder::new().with_encoder_factory(Arc::new(JsonEncoders));
                Writer::Json(writer.with_explicit_nulls(true).build(output))
            }
            Format::Parquet => {
                Writer::Parquet(Box::new(parquet_writer(output, schema)?), RowGroups::default())
            }
            Format::Arrow if self.path.is_some() => Writer::ArrowFile(FileWriter::try_new(output, schema)?),
            Format::Arrow => Writer::ArrowStream(StreamWriter::try_new(output, schema)?),
        };
        Ok(Sink { writer })
    }
}

/// The output could not be written: the disk is full, or nobody reads the pipe.
#[derive(Debug, thiserror::Error)]
#[error("the result cannot be written")]
pub(super) struct WriteFailed;

/// Takes the batches of one result.
pub(super) struct Sink {
    writer: Writer,
}

enum Writer {
    Table(Output, TableWriter),
    /// With the schema as it is written, and whether the header is out.
    Csv(csv::Writer<Output>, SchemaRef, bool),
    Json(json::LineDelimitedWriter<Output>),
    Parquet(Box<ArrowWriter<Output>>, RowGroups),
    ArrowFile(FileWriter<Output>),
    ArrowStream(StreamWriter<Output>),
}

impl Sink {
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_batch(batch).context(WriteFailed)
    }

    /// Completes the output; returns the number of rows that were read but not written.
    pub(super) fn finish(self) -> Result<u64> {
        self.complete().context(WriteFailed)
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.writer {
            Writer::Table(output, table) => table.write(&with_json(batch)?, output)?,
            Writer::Csv(writer, schema, header) => {
                writer.write(&csv_batch(batch, schema)?)?;
                *header = true;
            }
            Writer::Json(writer) => writer.write(batch)?,
            Writer::Parquet(writer, groups) => groups.write(writer, batch)?,
            Writer::ArrowFile(writer) => writer.write(batch)?,
            Writer::ArrowStream(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn complete(self) -> Result<u64> {
        let mut cut = 0;
        let output = match self.writer {
            Writer::Table(mut output, table) => {
                cut = table.finish(&mut output)?;
                output
            }
            Writer::Csv(mut writer, schema, header) => {
                if !header {
                    writer.write(&RecordBatch::new_empty(schema))?;
                }
                writer.into_inner()
            }
            Writer::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Writer::Parquet(writer, _) => writer.into_inner()?,
            Writer::ArrowFile(writer) => writer.into_inner()?,
            Writer::ArrowStream(writer) => writer.into_inner()?,
        };
        output.commit()?;
        Ok(cut)
    }
}

/// Bytes out: stdout, perhaps by a pager, a new file that gets its name at the end, or something that is no regular file.
enum Output {
    Stdout(BufWriter<Stdout>),
    Paged(Paged),
    File(BufWriter<NamedTempFile>, PathBuf),
    Device(BufWriter<File>),
}

impl Output {
    fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())));
        };
        let context = || format!("cannot write `{}`", path.display());
        if path.exists() && !path.is_file() {
            let file = File::options().write(true).open(path).with_context(context)?;
            return Ok(Self::Device(BufWriter::with_capacity(BUFFER_BYTES, file)));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.prefix(".bowshot-").tempfile_in(folder).with_context(context)?;
        Ok(Self::File(BufWriter::with_capacity(BUFFER_BYTES, file), path.to_owned()))
    }

    fn commit(mut self) -> Result<()> {
        self.flush()?;
        match self {
            Self::File(file, path) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.persist(&path).with_context(|| format!("cannot write `{}`", path.display()))?;
            }
            Self::Paged(paged) => paged.show()?,
            Self::Stdout(_) | Self::Device(_) => {}
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Paged(paged) => paged.write(bytes),
            Self::File(file, _) => file.write(bytes),
            Self::Device(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Paged(paged) => paged.flush(),
            Self::File(file, _) => file.flush(),
            Self::Device(file) => file.flush(),
        }
    }
}

fn parquet_writer(output: Output, schema: &SchemaRef) -> Result<ArrowWriter<Output>> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    Ok(ArrowWriter::try_new(output, SchemaRef::clone(schema), Some(properties))?)
}

fn unknown_ending(path: &Path) -> anyhow::Error {
    let message = format!("cannot determine the format of `{}` from its ending", path.display());
    let hint = "endings are .txt, .csv, .json, .jsonl, .ndjson, .parquet, .arrow, .feather and .ipc; or give --format";
    anyhow::Error::new(Usage::new(message).with_hint(hint))
}

fn by_extension(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "txt" => Format::Table,
        "csv" => Format::Csv,
        "json" | "jsonl" | "ndjson" => Format::Json,
        "parquet" => Format::Parquet,
        "arrow" | "feather" | "ipc" => Format::Arrow,
        _ => return None,
    })
}

/// CSV has no nesting: lists, structs, maps and unions become text.
fn csv_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        if is_nested(field.data_type()) {
            Arc::new(Field::new(field.name(), DataType::Utf8, field.is_nullable()))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn csv_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| if is_nested(column.data_type()) { as_text(column) } else { Ok(Arc::clone(column)) });
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns.collect::<Result<_>>()?)?)
}

/// VARIANT columns as JSON text.
fn with_json(batch: &RecordBatch) -> Result<RecordBatch> {
    let layout = bowshot_api::Layout {
        views: true,
        dictionaries: true,
        json_variants: true,
        ..bowshot_api::Layout::default()
    };
    Ok(layout.apply(batch.clone(), &layout.schema(batch.schema_ref()))?)
}

fn as_text(column: &ArrayRef) -> Result<ArrayRef> {
    if is_variant_type(column.data_type()) {
        return Ok(Arc::new(json_texts(column)?));
    }
    let formatter = ArrayFormatter::try_new(column, &FormatOptions::default())?;
    let text = |row| column.is_valid(row).then(|| formatter.value(row).try_to_string()).transpose();
    Ok(Arc::new((0..column.len()).map(text).collect::<Result<StringArray, _>>()?))
}

fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() || matches!(data_type, DataType::Union(_, _))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, ListArray};
    use arrow::datatypes::Int32Type;

    fn batch() -> RecordBatch {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
        RecordBatch::try_from_iter([
            ("n", Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
            ("text", Arc::new(StringArray::from(vec!["a,b", "ü\"x\""]))),
            ("list", Arc::new(list)),
        ])
        .unwrap()
    }

    #[test]
    fn the_ending_tells_the_format() {
        let format =
            |format, name: &str| Destination::new(format, Some(Path::new(name))).map(|found| found.format);
        for (name, expected) in [("a.CSV", Format::Csv), ("a.txt", Format::Table), ("b.ipc", Format::Arrow)] {
            assert_eq!(format(None, name).unwrap(), expected, "{name}");
        }
        for name in ["a", "a.xls", "a.csv.gz"] {
            assert!(format(None, name).unwrap_err().is::<Usage>(), "{name}");
            assert_eq!(format(Some(Format::Json), name).unwrap(), Format::Json);
        }
    }

    #[test]
    fn an_unfinished_result_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.csv");
        std::fs::write(&path, "old").unwrap();
        let destination = Destination::new(None, Some(&path)).unwrap();
        let layout = Layout::default();
        let mut sink = destination.open(&batch().schema(), layout).unwrap();
        sink.write(&batch()).unwrap();
        drop(sink);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
