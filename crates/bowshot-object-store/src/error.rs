//! What can go wrong between a path and its rows. Each error names the file or folder; [`crate::find_error`] digs it
//! out of whatever DataFusion or Arrow wrapped around it.

use bowshot_api::{ErrorKind, Reason};
use datafusion_common::DataFusionError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the operating system says when file handles run out.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// Columns that a message names.
const MOST_NAMED: usize = 10;

/// An error of the crates that read files. It is cheap to clone, because a table that cannot be read gives the same error to each query.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("`{}` does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: Arc<io::Error> },
    #[error("`{}` is not a regular file or folder", path.display())]
    NotRegular { path: PathBuf },
    #[error("`{}` holds no data file", path.display())]
    Empty { path: PathBuf },
    #[error("`{}` has no known format", path.display())]
    UnknownFormat { path: PathBuf },
    #[error("`{}` mixes formats: `{}` and `{}`", path.display(), one.display(), other.display())]
    MixedFormats { path: PathBuf, one: PathBuf, other: PathBuf },
    #[error("`{}` is {kind}, which cannot be part of another table", path.display())]
    ForeignTable { path: PathBuf, kind: &'static str },
    #[error("`{}` and `{}` would both be table `{name}`", one.display(), other.display())]
    SameName { name: String, one: PathBuf, other: PathBuf },
    #[error("`{}` holds more than {limit} files", path.display())]
    TooManyFiles { path: PathBuf, limit: usize },
    #[error("`{}` is nested deeper than {limit} folders", path.display())]
    TooDeep { path: PathBuf, limit: usize },
    #[error("`{}` has the partition columns ({found}), other files of the table have ({expected})", path.display())]
    Partitions { path: PathBuf, found: String, expected: String },
    #[error("column `{column}` of `{}` is {found}, in `{}` it is {expected}", path.display(), other.display())]
    Types { path: PathBuf, other: PathBuf, column: String, found: String, expected: String },
    #[error("{} encrypted, and this server has no keys", encrypted(path, columns))]
    Encrypted { path: PathBuf, columns: Vec<String> },
    #[error("column `{column}` of `{}` is not supported: {why}", path.display())]
    Column { path: PathBuf, column: String, why: String },
    #[error("`{}` uses a feature that is not supported: {detail}", path.display())]
    Unsupported { path: PathBuf, detail: String },
    #[error("`{}` cannot be read: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    #[error("`{}`, line {line}: {detail}", path.display())]
    Value { path: PathBuf, line: u64, detail: String },
    #[error("`{}`, line {line}: {detail}", path.display())]
    Record { path: PathBuf, line: u64, detail: String, hint: &'static str },
    #[error("`{}`, line {line}: {detail}, unlike the first rows of the file", path.display())]
    Outgrown { path: PathBuf, line: u64, detail: String },
    #[error("`{}` is not valid {asked}, the given encoding", path.display())]
    Characters { path: PathBuf, asked: &'static str },
    #[error("`{}` was changed or replaced while it was being read", path.display())]
    Changed { path: PathBuf },
    #[error("`{}` was removed or renamed since its table was last read", path.display())]
    Gone { path: PathBuf },
    #[error("the columns of table `{name}` changed since the statement was prepared")]
    Reshaped { name: String },
    #[error("`{}`: {detail}", path.display())]
    Lake { path: PathBuf, detail: String, kind: ErrorKind, hint: &'static str },
    #[error("`{}`: {detail}", path.display())]
    Feed { path: PathBuf, detail: String, kind: ErrorKind, hint: String },
    #[error("`{text}` is not a path")]
    Spec { text: String },
    #[error("`{text}`: {error}")]
    Option { text: String, error: Arc<bowshot_api::Error> },
    #[error("{detail}")]
    Options { detail: String, hint: String },
    #[error("`{text}` names no files of the server")]
    Pattern { text: String },
    #[error("invalid address of an object store: {detail}")]
    Address { detail: String },
    #[error("{}`{}` cannot be read: {detail}", of_table(table.as_deref()), path.display())]
    Remote { table: Option<String>, path: PathBuf, detail: String, hint: &'static str },
    #[error("`{text}` is not in a location that statements may read")]
    NotOpened { text: String },
    #[error("no file `{text}` is in the served folders")]
    NotServed { text: String },
    #[error("`{}` {detail}", path.display())]
    NoState { path: PathBuf, detail: String, kept: String },
    #[error("reading `{}` stopped: {detail}", path.display())]
    Interrupted { path: PathBuf, detail: String },
}

impl Error {
    pub fn io(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path: path.to_path_buf() },
            _ => Self::Unreadable { path: path.to_path_buf(), source: Arc::new(error) },
        }
    }

    /// The same of a file that was there before.
    pub fn of_known(path: &Path, error: io::Error) -> Self {
        match Self::io(path, error) {
            Self::Missing { path } => Self::Gone { path },
            other => other,
        }
    }

    /// The same with the table that cannot be had for it; other errors name their file, which is enough.
    pub fn of_table(self, name: &str) -> Self {
        match self {
            Self::Remote { table: None, path, detail, hint } => {
                Self::Remote { table: Some(name.to_owned()), path, detail, hint }
            }
            other => other,
        }
    }

    /// Whether it says nothing of the files, and may have passed soon.
    pub fn is_of_store(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }

    pub fn corrupt(path: &Path, detail: impl ToString) -> Self {
        let detail = detail.to_string();
        // Without the frames that libraries add where `RUST_BACKTRACE` is set.
        let said = detail.split_once("\n   0: ").map_or(detail.as_str(), |(said, _)| said);
        Self::Corrupt { path: path.to_path_buf(), detail: said.trim_end().to_owned() }
    }

    /// Whether the values of one batch have more bytes than offsets of 32 bits reach, of a file that has no fault.
    fn overflows(&self) -> bool {
        matches!(self, Self::Corrupt { detail, .. } if detail.contains("index overflow decoding byte array"))
    }

    /// Whether the process or the system has no file handle left, which says nothing about the file.
    fn lacks_handles(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if matches!(source.raw_os_error(), Some(EMFILE | ENFILE)))
    }

    fn kind(&self) -> ErrorKind {
        match self {
            _ if self.lacks_handles() || self.overflows() => ErrorKind::LimitReached,
            Self::Missing { .. } | Self::Empty { .. } | Self::NotServed { .. } | Self::NoState { .. } => {
                ErrorKind::NotFound
            }
            Self::Unreadable { .. }
            | Self::NotRegular { .. }
            | Self::MixedFormats { .. }
            | Self::Partitions { .. }
            | Self::Types { .. }
            | Self::Corrupt { .. }
            | Self::Characters { .. }
            | Self::Value { .. }
            | Self::Record { .. } => ErrorKind::Corrupt,
            Self::UnknownFormat { .. }
            | Self::ForeignTable { .. }
            | Self::Encrypted { .. }
            | Self::Column { .. }
            | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Lake { kind, .. } | Self::Feed { kind, .. } => *kind,
            Self::SameName { .. } => ErrorKind::AlreadyExists,
            Self::TooManyFiles { .. } | Self::TooDeep { .. } => ErrorKind::LimitReached,
            Self::Changed { .. } | Self::Gone { .. } | Self::Reshaped { .. } | Self::Outgrown { .. } => {
                ErrorKind::Conflict
            }
            Self::Spec { .. } | Self::Option { .. } | Self::Options { .. } | Self::Pattern { .. } => {
                ErrorKind::Invalid
            }
            Self::Address { .. } => ErrorKind::Invalid,
            Self::NotOpened { .. } => ErrorKind::Denied,
            Self::Interrupted { .. } | Self::Remote { .. } => ErrorKind::Unavailable,
        }
    }

    fn hint(&self) -> Option<&str> {
        Some(match self {
            _ if self.overflows() => {
                "the rows of one batch have more than 2 GiB of text in a column; lower `engine.batch_rows`"
            }
            _ if self.lacks_handles() => {
                "raise the limit of open files (`ulimit -n`), or lower `max_open_files`"
            }
            Self::Missing { .. } => "check the path; relative paths start at the server's working directory",
            Self::Unreadable { .. } => "check the file's permissions and its disk",
            Self::NotRegular { .. } => "pipes, sockets and devices are not served; name a file or a folder",
            Self::Empty { .. } => {
                "data files end in .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .arrow, .feather, .ipc, .avro, .orc or .xlsx"
            }
            Self::UnknownFormat { .. } => {
                "known endings: .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .arrow, .feather, .ipc, .avro, .orc, .xlsx, the text ones also with .gz, .zst, .bz2, .xz, .lz4, .br or .zip"
            }
            Self::MixedFormats { .. } => "keep one format in a folder that is one table",
            Self::ForeignTable { .. } => {
                "Delta and Iceberg tables are served by their own path, or by that of the folder that they are in; of other \
                 formats, copy the current files into a plain folder and serve that"
            }
            Self::SameName { .. } => "give one of them another name with NAME=PATH",
            Self::TooManyFiles { .. } => "raise `max_files_per_table`, or name a smaller folder",
            Self::TooDeep { .. } => "name a folder further down",
            Self::Partitions { .. } => "keep the same KEY=VALUE folders above each file of a table",
            Self::Types { .. } => "rewrite one of the files, or serve them as two tables",
            Self::Encrypted { columns, .. } if columns.is_empty() => {
                "encryption keys are not supported: rewrite the file without encryption, and serve that copy"
            }
            Self::Encrypted { .. } => {
                "encryption keys are not supported: select other columns, or rewrite the file without encryption and serve that copy"
            }
            Self::Column { .. } => "select other columns, or rewrite it as text or another type",
            Self::Unsupported { .. } => "rewrite the file without it",
            Self::Corrupt { .. } => "repair or replace the file",
            Self::Value { .. } => {
                "correct the value, or read the column as text: `types={'column': 'VARCHAR'}`, or a `sample_size` (for all files \
                 `storage.sample_rows`) up to that line; `ignore_errors=true` leaves such lines out"
            }
            Self::Record { hint, .. } | Self::Lake { hint, .. } => hint,
            Self::Outgrown { .. } => "run the query again: it then reads all rows to find the types",
            Self::Characters { .. } => "leave out the option `encoding`, or set the file's encoding",
            Self::Changed { .. } | Self::Gone { .. } => "run the query again",
            Self::Reshaped { .. } => "prepare the statement again",
            Self::Spec { .. } => "write PATH or NAME=PATH, and options as in NAME=PATH?header=false&delim=;",
            Self::Pattern { .. } => "name files below a served folder, as 'orders/*.csv'",
            Self::NotServed { .. } => {
                "name files below a served folder, relative to it or with the path that it is served by; the operator \
                 decides which folders those are"
            }
            Self::Options { hint, .. } | Self::Feed { hint, .. } => hint.as_str(),
            Self::Option { .. } => "see the options of sources in the guide `sources`",
            Self::Interrupted { .. } => "run the query again",
            Self::NoState { kept, .. } => kept.as_str(),
            Self::Address { .. } => {
                "write s3://bucket/prefix, gs://…, az://container/…, or https://host/file.parquet"
            }
            Self::NotOpened { .. } => {
                "the operator can allow locations with the setting `object_store.read`; query served files by their table names"
            }
            Self::Remote { hint, .. } => hint,
        })
    }
}

/// The file as a whole, or columns of it.
fn encrypted(path: &Path, columns: &[String]) -> String {
    let path = path.display();
    let named =
        || columns.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match columns {
        [] => format!("`{path}` is"),
        [column] => format!("column `{column}` of `{path}` is"),
        _ if columns.len() > MOST_NAMED => {
            format!("{} columns of `{path}`, among them {}, are", columns.len(), named())
        }
        _ => format!("columns {} of `{path}` are", named()),
    }
}

fn of_table(table: Option<&str>) -> String {
    table.map(|name| format!("table `{name}`: ")).unwrap_or_default()
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        let converted = Self::new(error.kind(), error.to_string());
        let converted = match &error {
            Error::Missing { .. } | Error::Empty { .. } => converted.with_reason(Reason::UndefinedFile),
            Error::SameName { .. } => converted.with_reason(Reason::DuplicateTable),
            _ => converted,
        };
        let converted = match error.hint() {
            Some(hint) => converted.with_hint(hint),
            None => converted,
        };
        converted.with_source(error)
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(bowshot_api::Error::from(error)))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

/// The error of these crates, or of the server API, that hides in what DataFusion gave back.
pub fn find_error(error: &DataFusionError) -> Option<bowshot_api::Error> {
    if let DataFusionError::Collection(errors) = error {
        return errors.iter().find_map(find_error);
    }
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<bowshot_api::Error>() {
            return Some(found.duplicate());
        }
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found.clone().into());
        }
        // An `io::Error` hides its inner error from `source`, and DataFusion's shared errors hide theirs too.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_backtrace() {
        let detail = "Missing column: a\n   0: std::backtrace::Backtrace::create\n             at lib.rs:1\n   1: main\n";
        let error = Error::corrupt(Path::new("lake"), detail);
        assert_eq!(error.to_string(), "`lake` cannot be read: Missing column: a");
    }
}
