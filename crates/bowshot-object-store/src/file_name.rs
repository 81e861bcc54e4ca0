//! Formats and compressions, told by the ending of a file's name.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Parquet,
    /// Separated values with a header line.
    Csv,
    /// JSON lines, or one JSON array of objects.
    Json,
    /// Arrow IPC, file or stream.
    Arrow,
    Avro,
    Orc,
    /// Excel workbooks, of which one sheet is read.
    Excel,
    Text,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Arrow => "arrow",
            Self::Avro => "avro",
            Self::Orc => "orc",
            Self::Excel => "xlsx",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    /// In frames.
    Lz4,
    Brotli,
    /// An archive that one file is in.
    Zip,
    /// A sheet of a workbook, which is made a text.
    Sheet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub format: Format,
    pub compression: Compression,
    /// Set by the ending `.tsv`.
    pub tabs: bool,
    /// The name without the endings.
    pub stem: String,
}

impl Kind {
    /// Of a file whose ending tells nothing.
    pub fn unknown(path: &Path, format: Format) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (rest, compression) = split_compression(&name);
        let stem = rest.rsplit_once('.').map_or(rest, |(stem, _)| stem).to_owned();
        let compression = if format == Format::Excel { Compression::Sheet } else { compression };
        Self { format, compression, tabs: false, stem }
    }
}

/// `None` for a name that no format claims, and for names that mark a file as hidden or unfinished.
pub fn kind_of(path: &Path) -> Option<Kind> {
    let name = path.file_name()?;
    if is_ignored(name) {
        return None;
    }
    let name = name.to_string_lossy();
    let (rest, compression) = split_compression(&name);
    let (stem, ending) = rest.rsplit_once('.')?;
    let (format, tabs) = match ending.to_ascii_lowercase().as_str() {
        "parquet" | "pq" | "parq" => (Format::Parquet, false),
        "csv" => (Format::Csv, false),
        "tsv" | "tab" => (Format::Csv, true),
        "psv" => (Format::Csv, false),
        "json" | "jsonl" | "ndjson" | "geojson" => (Format::Json, false),
        "arrow" | "arrows" | "feather" | "ipc" => (Format::Arrow, false),
        "avro" => (Format::Avro, false),
        "orc" => (Format::Orc, false),
        "xlsx" | "xlsm" => (Format::Excel, false),
        _ => return None,
    };
    let text = matches!(format, Format::Csv | Format::Json);
    if compression != Compression::None && !text {
        return None;
    }
    let compression = if format == Format::Excel { Compression::Sheet } else { compression };
    Some(Kind { format, compression, tabs, stem: stem.to_owned() })
}

/// Names that a table never reads: hidden files, markers (`_SUCCESS`, `_delta_log`, `.crc`) and unfinished copies.
pub fn is_ignored(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let marker = name.starts_with('_') && !name.contains('=');
    name.starts_with('.')
        || (marker && !has_data_ending(&name))
        || name.ends_with('~')
        || name.starts_with("~$")
        || [".crc", ".tmp", ".temp", ".part", ".partial", ".crdownload", ".swp"]
            .iter()
            .any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

/// `_orders.csv` is data with an unusual name; `_metadata`, `_SUCCESS` and `_temporary` are markers.
fn has_data_ending(name: &str) -> bool {
    let (rest, _) = split_compression(name);
    rest.rsplit_once('.').is_some_and(|(_, ending)| {
        [
            "csv", "tsv", "tab", "psv", "geojson", "json", "jsonl", "ndjson", "parquet", "pq", "arrow",
            "arrows", "feather", "ipc", "avro", "orc", "xlsx", "xlsm",
        ]
        .contains(&ending.to_ascii_lowercase().as_str())
    })
}

fn split_compression(name: &str) -> (&str, Compression) {
    let Some((rest, ending)) = name.rsplit_once('.') else {
        return (name, Compression::None);
    };
    match ending.to_ascii_lowercase().as_str() {
        "gz" | "gzip" => (rest, Compression::Gzip),
        "zst" | "zstd" => (rest, Compression::Zstd),
        "bz2" => (rest, Compression::Bzip2),
        "xz" => (rest, Compression::Xz),
        "lz4" => (rest, Compression::Lz4),
        "br" => (rest, Compression::Brotli),
        "zip" => (rest, Compression::Zip),
        _ => (name, Compression::None),
    }
}
