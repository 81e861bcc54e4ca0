//! The formats of files that COPY reads and writes.

use arrow::datatypes::{DataType, Field, Schema};
use bowshot_api::variant::is_variant_type;
use bowshot_api::{Error, Layout, Result};
use bowshot_object_store::file_name::{Compression, Format, Kind, kind_of};
use std::path::Path;

/// How the rows of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// One of Parquet, CSV, JSON and Arrow.
    pub format: Format,
    /// Whether the first line of a CSV file names the columns.
    pub header: bool,
    /// What separates the values of a CSV file; `None`: a comma, or what the first line has most of.
    pub delimiter: Option<u8>,
}

impl Shape {
    /// The format that a statement names, else the one that the ending of the path tells.
    ///
    /// # Errors
    /// `Invalid` where neither does; `Unsupported` for formats that are served but not exchanged.
    pub fn format_of(path: &str, named: Option<&str>) -> Result<Format> {
        let format = match named.map(str::to_ascii_lowercase).as_deref() {
            Some("parquet") => Format::Parquet,
            Some("csv") => Format::Csv,
            Some("json" | "ndjson" | "jsonl") => Format::Json,
            Some("arrow" | "ipc" | "feather") => Format::Arrow,
            Some(other) => {
                return Err(Error::unsupported(format!("format `{other}` is not known"))
                    .with_hint("the formats are parquet, csv, json and arrow"));
            }
            None => kind_of(Path::new(path)).map(|kind| kind.format).ok_or_else(|| {
                Error::invalid(format!("cannot determine the format of `{path}` from its name"))
                    .with_hint("name one: `WITH (FORMAT parquet)`, csv, json or arrow")
            })?,
        };
        match format {
            Format::Avro | Format::Orc | Format::Excel | Format::Text => {
                Err(Error::unsupported(format!("COPY does not support {format} files"))
                    .with_hint("the formats are parquet, csv, json and arrow"))
            }
            other => Ok(other),
        }
    }

    /// What the name of a file tells, with the format that is known already.
    pub(super) fn kind(self, path: &Path) -> Kind {
        let told = kind_of(path);
        let text = matches!(self.format, Format::Csv | Format::Json);
        let compression = told.as_ref().map_or(Compression::None, |kind| kind.compression);
        Kind {
            format: self.format,
            compression: if text { compression } else { Compression::None },
            tabs: told.is_some_and(|kind| kind.tabs),
            stem: String::new(),
        }
    }

    /// How rows are laid out for the format: CSV has VARIANT as JSON text.
    pub fn layout(self) -> Layout {
        Layout { json_variants: self.format == Format::Csv, ..Layout::default() }
    }

    /// Whether the format has a form for every column that comes back as it was.
    ///
    /// # Errors
    /// `Unsupported`, naming the first column that has none; `Invalid` for two columns of one name.
    pub fn check(self, schema: &Schema) -> Result<()> {
        let fields = schema.fields();
        if fields.is_empty() {
            return Err(Error::invalid("a file needs at least one column"));
        }
        for (at, field) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|before| before.name() == field.name()) {
                return Err(Error::invalid(format!("column `{}` is there twice", field.name()))
                    .with_hint("give the columns different names"));
            }
            if !self.has_form_for(field) {
                return Err(Error::unsupported(format!(
                    "column `{}` of type {} cannot be written as {}",
                    field.name(),
                    field.data_type(),
                    self.format
                ))
                .with_hint("cast it in a query, or use the format parquet or arrow"));
            }
        }
        Ok(())
    }

    fn has_form_for(self, field: &Field) -> bool {
        let data_type = field.data_type();
        match self.format {
            Format::Csv => !data_type.is_nested() && is_written_as_text(data_type),
            Format::Json => match data_type {
                of if is_variant_type(of) => true,
                DataType::Struct(fields) => fields.iter().all(|field| self.has_form_for(field)),
                DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                    self.has_form_for(item)
                }
                other => !other.is_nested() && is_written_as_text(other),
            },
            // Whatever they cannot take, their writers refuse.
            Format::Parquet | Format::Arrow | Format::Avro | Format::Orc | Format::Excel | Format::Text => {
                true
            }
        }
    }
}

/// Types whose text is read back as the value that it was.
fn is_written_as_text(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Float16
    )
}
