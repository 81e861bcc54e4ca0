//! What is known about a file before any row is read. Facts are kept as long as the file keeps its identity.

use crate::batches::{Batches, Request};
use crate::csv::{self, CsvFacts};
use crate::data_file::DataFile;
use crate::intervals::schema_as_bytes;
use crate::json::{self, JsonFacts, Sampling, Strange};
use crate::read_options::ReadOptions;
use crate::rejects::Reject;
use crate::{arrow_ipc, avro, orc, parquet};
use arrow::datatypes::{Schema, SchemaRef};
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Format, Kind};
use bowshot_orc::OrcFile;
use datafusion::common::Statistics;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub struct FileFacts {
    /// The file's columns in plain types; `Null` where a text file shows no value yet.
    pub columns: SchemaRef,
    /// Rows, exact or estimated as the format has it.
    pub rows: Option<usize>,
    pub detail: Detail,
}

#[derive(Debug)]
pub enum Detail {
    /// A text file without content: no columns, no rows.
    Nothing,
    Parquet {
        statistics: Statistics,
        views: bool,
        /// The columns as they are read, if VARIANT values come in parts.
        parts: Option<SchemaRef>,
    },
    Csv(Arc<CsvFacts>),
    Json(Arc<JsonFacts>),
    Avro,
    ArrowFile {
        batches: usize,
    },
    ArrowStream,
    Orc(Arc<OrcFile>),
}

impl FileFacts {
    pub fn empty() -> Self {
        Self { columns: Arc::new(Schema::empty()), rows: Some(0), detail: Detail::Nothing }
    }

    pub fn read(
        file: &Arc<DataFile>,
        kind: &Kind,
        options: &ReadOptions,
        sources: &FactSources,
    ) -> Result<Self, Error> {
        let mut facts = match kind.format {
            Format::Parquet => parquet::facts(file, sources),
            Format::Csv | Format::Excel | Format::Text => {
                csv::facts(file, kind, options, sources.sample_rows)
            }
            Format::Json => json::facts(file, kind, options, sources.sampling()),
            Format::Arrow => arrow_ipc::facts(file),
            Format::Avro => avro::facts(file),
            Format::Orc => orc::facts(file),
        }?;
        facts.columns = sources.shared(facts.columns);
        Ok(facts)
    }

    /// The batches of a file in the file's own shape. Parquet has its own way, see [`parquet`].
    pub fn open(&self, file: &Arc<DataFile>, request: &Request) -> Result<Batches, Error> {
        match &self.detail {
            Detail::Nothing | Detail::Parquet { .. } => Ok(Batches::empty()),
            Detail::Csv(facts) => csv::open(file, facts, request),
            Detail::Json(facts) => json::open(file, facts, request),
            Detail::Avro => avro::open(file, self, request),
            Detail::Orc(orc) => orc::open(file, orc, request),
            Detail::ArrowFile { batches } => arrow_ipc::open(file, *batches, request),
            Detail::ArrowStream => Ok(arrow_ipc::open_stream(file)),
        }
    }

    /// What the reader of a Parquet file is told of the columns, whose own schema asks for views: it makes plain arrays at once.
    pub fn told_schema(&self) -> Option<SchemaRef> {
        match &self.detail {
            Detail::Parquet { views: true, parts, .. } => {
                Some(schema_as_bytes(parts.as_ref().unwrap_or(&self.columns)))
            }
            _ => None,
        }
    }

    pub fn story(&self) -> Option<String> {
        match &self.detail {
            Detail::Csv(facts) => Some(facts.story()),
            Detail::Json(facts) => Some(facts.story()),
            _ => None,
        }
    }

    /// Whether all rows were looked at, which nobody does without need.
    pub fn is_of_all_rows(&self) -> bool {
        matches!(&self.detail, Detail::Json(facts) if facts.is_of_all_rows())
    }

    /// Whether a scan has met what the first rows do not show, so that all rows have to be looked at.
    pub fn is_outgrown(&self) -> bool {
        matches!(&self.detail, Detail::Json(facts) if facts.is_outgrown())
    }

    pub fn rejects(&self) -> Vec<Reject> {
        match &self.detail {
            Detail::Csv(facts) => facts.rejects.list(),
            Detail::Json(facts) => facts.rejects.list(),
            _ => Vec::new(),
        }
    }

    /// Whether a file may be cut into byte ranges that are read at the same time.
    pub fn splittable(&self, file: &Arc<DataFile>) -> Result<bool, Error> {
        match &self.detail {
            Detail::Csv(facts) => facts.splittable(file),
            Detail::Json(facts) => Ok(facts.lines),
            Detail::ArrowFile { .. } | Detail::Orc(_) | Detail::Parquet { .. } | Detail::Nothing => Ok(true),
            Detail::Avro | Detail::ArrowStream => Ok(false),
        }
    }
}

#[derive(Debug)]
pub struct FactSources {
    pub sample_rows: usize,
    /// How often files were found to have what their first rows do not show.
    pub surprises: Arc<AtomicU64>,
    /// The columns of the file that was looked at last.
    pub last: Mutex<Weak<Schema>>,
    pub store: Arc<crate::snapshot_store::SnapshotStore>,
    pub metadata_cache: Arc<datafusion::execution::cache::cache_manager::FileMetadataCache>,
}

impl FactSources {
    fn sampling(&self) -> Sampling {
        Sampling { rows: self.sample_rows, strange: Strange::Outgrows(Arc::clone(&self.surprises)) }
    }

    /// The same columns, shared with the file before if they are equal: a table may have a hundred thousand files.
    fn shared(&self, columns: SchemaRef) -> SchemaRef {
        let mut last = self.last.lock();
        match last.upgrade().filter(|last| *last == columns) {
            Some(last) => last,
            None => {
                *last = Arc::downgrade(&columns);
                columns
            }
        }
    }

    pub fn surprises(&self) -> u64 {
        self.surprises.load(Ordering::Acquire)
    }
}
