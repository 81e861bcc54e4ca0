//! Keeps the Delta log of a table up to date: what the catalog says, for others to read.
//! <https://github.com/delta-io/delta/blob/master/PROTOCOL.md>
//!
//! Rows that are still in the catalog are not in the log, nor is a state in which files have rows that are deleted, or lack rows
//! that took the place of others. Each entry of the log names the version of the table that it shows, so that after a crash the
//! log and the catalog find together again. Of tables in a store the log is there, and what is here is a copy of it.

use super::bucket::names_in;
use super::catalog::Catalog;
use super::disk::{Disk, make_folder, put_new, sync_folder};
use super::file::StoredFile;
use super::types::{field_to_json, has_local_timestamps};
use crate::{Error, Table};
use bowshot_formats::file_metadata::Detail;
use bowshot_object_store::private;
use chrono::Utc;
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Where an entry of the log names our version.
const OUR_VERSION: &str = "bowshotVersion";
/// Entries of the log of one table of which the catalog need not know: they are read again after a crash.
const UNRECORDED: u64 = 16;

/// What the log of a table says.
#[derive(Debug, Clone)]
struct Published {
    delta_version: u64,
    version: u64,
    columns: String,
    /// The version of the log that the catalog knows of.
    recorded: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Logs {
    known: HashMap<Uuid, Published>,
}

impl Logs {
    /// Writes what the log lacks of this state of a table. Gives the version of the log if it was written to.
    pub(super) fn publish(
        &mut self,
        table: &Table,
        catalog: &Catalog,
        disk: &Disk,
    ) -> Result<Option<u64>, Error> {
        let log = Log { folder: disk.folder(table.id()).join("_delta_log"), id: table.id() };
        // Of a log in a store, what is here is a copy that somebody may have taken away.
        let counts = |known: &&Published| disk.bucket().is_none() || log.entry(known.delta_version).exists();
        let before = match self.known.get(&table.id()).filter(counts) {
            Some(published) => Some(published.clone()),
            // Dropped meanwhile: its folder is removed, and must not come back.
            None if !is_there(catalog, table.id())? => return Ok(None),
            None => log.caught_up(catalog, disk)?,
        };
        if before.as_ref().is_some_and(|before| before.version >= table.version()) {
            return Ok(None);
        }
        if table.has_deleted_rows() {
            // Others go on to see the state before, until no file has rows that are deleted.
            self.known.extend(before.map(|before| (table.id(), before)));
            return Ok(None);
        }
        let columns = schema_text(table);
        let old_files = match &before {
            Some(before) => files_at(catalog, table.id(), before.version)?,
            None => HashMap::new(),
        };
        let mut actions = changes(table, &old_files)?;
        let shown = before.as_ref().map_or(0, |before| before.version);
        let removes = actions.iter().any(|action| !action["remove"].is_null());
        if removes && waits_for_rows(catalog, table, shown)? {
            // Others would see rows go, and those in their place later.
            self.known.extend(before.map(|before| (table.id(), before)));
            return Ok(None);
        }
        let redefined = before.as_ref().is_none_or(|before| before.columns != columns);
        let delta_version = match &before {
            Some(before) if actions.is_empty() && !redefined => before.delta_version,
            before => {
                let next = before.as_ref().map_or(0, |before| before.delta_version + 1);
                if redefined {
                    actions.splice(0..0, definition(table, &columns));
                }
                disk.made_folder(table.id())?;
                log.write(next, table, actions, disk)?;
                next
            }
        };
        let written = before.as_ref().is_none_or(|before| before.delta_version < delta_version);
        let recorded = before.as_ref().and_then(|before| before.recorded);
        let mut published = Published { delta_version, version: table.version(), columns, recorded };
        if recorded.is_none_or(|recorded| delta_version >= recorded + UNRECORDED) {
            record(catalog, table.id(), &mut published)?;
        }
        self.known.insert(table.id(), published);
        Ok(written.then_some(delta_version))
    }

    /// Tells the catalog what the log says, before versions are forgotten that connect the two.
    pub(super) fn record(&mut self, table: Uuid, catalog: &Catalog) -> Result<(), Error> {
        self.known.get_mut(&table).map_or(Ok(()), |published| record(catalog, table, published))
    }

    /// The version of a table that its log shows, as far as that is known.
    pub(super) fn shown(&self, table: Uuid) -> Option<u64> {
        self.known.get(&table).map(|published| published.version)
    }

    pub(super) fn forget(&mut self, table: Uuid) {
        self.known.remove(&table);
    }
}

struct Log {
    folder: PathBuf,
    id: Uuid,
}

impl Log {
    fn entry(&self, version: u64) -> PathBuf {
        self.folder.join(format!("{version:020}.json"))
    }

    /// What the log says: what the catalog knows of it, and what was written since.
    fn caught_up(&self, catalog: &Catalog, disk: &Disk) -> Result<Option<Published>, Error> {
        let known = self.recorded(catalog)?;
        if let Some(bucket) = disk.bucket() {
            let recorded = known.as_ref().map(|known| known.delta_version);
            bucket.bring_log(self.id, &self.folder, recorded)?;
        }
        let mut published = known;
        loop {
            let next = published.as_ref().map_or(0, |published| published.delta_version + 1);
            let path = self.entry(next);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(published),
                Err(error) => return Err(Error::file("read", &path, error)),
            };
            let (version, columns) = our_entry(&text).ok_or_else(|| foreign(&path))?;
            let columns = columns.or_else(|| published.as_ref().map(|published| published.columns.clone()));
            let recorded = published.as_ref().and_then(|published| published.recorded);
            let columns = columns.ok_or_else(|| foreign(&path))?;
            published = Some(Published { delta_version: next, version, columns, recorded });
        }
    }

    fn recorded(&self, catalog: &Catalog) -> Result<Option<Published>, Error> {
        catalog.read(|connection| {
            let sql = "SELECT delta_version, version, columns FROM published WHERE table_id = ?";
            let row = connection.query_row(sql, [self.id.to_string()], |row| {
                let delta_version = row.get::<_, i64>(0)?.cast_unsigned();
                Ok(Published {
                    delta_version,
                    version: row.get::<_, i64>(1)?.cast_unsigned(),
                    columns: row.get(2)?,
                    recorded: Some(delta_version),
                })
            });
            row.optional()
        })
    }

    fn write(&self, version: u64, table: &Table, mut actions: Vec<Value>, disk: &Disk) -> Result<(), Error> {
        if !self.folder.is_dir() {
            make_folder(&self.folder)?;
            sync_folder(self.folder.parent().unwrap_or(Path::new(".")))?;
        }
        actions.insert(0, commit_info(table));
        let mut text = String::new();
        for action in &actions {
            text.push_str(&action.to_string());
            text.push('\n');
        }
        let path = self.entry(version);
        if let Some(bucket) = disk.bucket() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !bucket.put_entry(self.id, &name, text.as_bytes())? {
                return Err(foreign(&path));
            }
        }
        if put_new(&path, text.as_bytes())? { Ok(()) } else { Err(foreign(&path)) }
    }
}

/// The version of a table that the newest entry of its log shows. `None` without a log, or with one that is not ours.
pub(super) fn newest_version(disk: &Disk, table: Uuid) -> Result<Option<u64>, Error> {
    let folder = disk.folder(table).join("_delta_log");
    let failed = |error| Error::file("read", &folder, error);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let numbered = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.extension().is_some_and(|ending| ending == "json") && stem.parse::<u64>().is_ok()
    };
    let Some(newest) = paths.map_err(failed)?.into_iter().filter(numbered).max() else { return Ok(None) };
    let text = fs::read_to_string(&newest).map_err(|error| Error::file("read", &newest, error))?;
    Ok(our_entry(&text).map(|(version, _)| version))
}

fn foreign(path: &Path) -> Error {
    let reason =
        io::Error::other("another program has written to the Delta log, which only Bowshot may change");
    Error::file("write", path, reason)
}

/// The version of the table that an entry shows, and the columns if it names them. `None` if it is not ours.
pub(super) fn our_entry(text: &str) -> Option<(u64, Option<String>)> {
    let (mut version, mut columns) = (None, None);
    for line in text.lines() {
        let action: Value = serde_json::from_str(line).ok()?;
        if let Some(found) = action["commitInfo"][OUR_VERSION].as_u64() {
            version = Some(found);
        }
        if let Some(found) = action["metaData"]["schemaString"].as_str() {
            columns = Some(found.to_owned());
        }
    }
    Some((version?, columns))
}

fn record(catalog: &Catalog, table: Uuid, published: &mut Published) -> Result<(), Error> {
    catalog.write(|connection| {
        let values = params![
            table.to_string(),
            published.delta_version.cast_signed(),
            published.version.cast_signed(),
            published.columns
        ];
        let sql = "INSERT OR REPLACE INTO published (table_id, delta_version, version, columns)
                   SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM entries WHERE id = ?1)";
        let done = connection.execute(sql, values);
        done.map(drop).map_err(|error| catalog.failed("cannot be written", &error))
    })?;
    published.recorded = Some(published.delta_version);
    Ok(())
}

fn is_there(catalog: &Catalog, table: Uuid) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM entries WHERE id = ?)";
    catalog.read(|connection| connection.query_row(sql, [table.to_string()], |row| row.get(0)))
}

/// Names and sizes of the files that a version of a table has.
fn files_at(catalog: &Catalog, table: Uuid, version: u64) -> Result<HashMap<String, u64>, Error> {
    catalog.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT file, bytes FROM segments WHERE table_id = ?1 AND file IS NOT NULL
             AND added <= ?2 AND (removed IS NULL OR removed > ?2)",
        )?;
        let rows = statement.query_map(params![table.to_string(), version.cast_signed()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        rows.collect()
    })
}

/// Whether rows that are still in the catalog came in the place of others, in versions after the one that the log shows. Rows that
/// were united there have lost their versions: they do if any of these took rows out, or is forgotten.
fn waits_for_rows(catalog: &Catalog, table: &Table, shown: u64) -> Result<bool, Error> {
    if table.shared_segments().iter().all(|segment| segment.memory().is_none()) {
        return Ok(false);
    }
    let sql = "SELECT EXISTS (
                   SELECT 1 FROM segments s LEFT JOIN versions v ON v.table_id = s.table_id AND v.version = s.added
                   WHERE s.table_id = ?1 AND s.file IS NULL
                   AND s.added > ?2 AND s.added <= ?3 AND (s.removed IS NULL OR s.removed > ?3)
                   AND (v.version IS NULL OR v.rows_removed > 0 OR v.rows_added = 0 OR (s.row_count > v.rows_added AND (
                       EXISTS (SELECT 1 FROM versions o WHERE o.table_id = ?1
                               AND o.version > ?2 AND o.version <= ?3 AND o.rows_removed > 0)
                       OR NOT EXISTS (SELECT 1 FROM versions o WHERE o.table_id = ?1 AND o.version = ?2 + 1)))))";
    let values = params![table.id().to_string(), shown.cast_signed(), table.version().cast_signed()];
    catalog.read(|connection| connection.query_row(sql, values, |row| row.get(0)))
}

/// The actions that lead from the old files to those of the table.
fn changes(table: &Table, old: &HashMap<String, u64>) -> Result<Vec<Value>, Error> {
    let now = Utc::now().timestamp_millis();
    let mut gone = old.clone();
    let mut actions = Vec::new();
    for file in table.shared_segments().iter().filter_map(|segment| segment.file()) {
        if gone.remove(&file.name()).is_none() {
            actions.push(add(file, now)?);
        }
    }
    let removals = gone.into_iter().map(|(path, size)| {
        json!({"remove": {
            "path": path,
            "deletionTimestamp": now,
            "dataChange": true,
            "extendedFileMetadata": true,
            "partitionValues": {},
            "size": size,
        }})
    });
    actions.splice(0..0, removals);
    Ok(actions)
}

fn add(file: &StoredFile, now: i64) -> Result<Value, Error> {
    Ok(json!({"add": {
        "path": file.name(),
        "partitionValues": {},
        "size": file.bytes(),
        "modificationTime": now,
        "dataChange": true,
        "stats": statistics(file)?.to_string(),
    }}))
}

/// Number of rows, and bounds and nulls of the columns at the top whose bounds have one form in all readers.
fn statistics(file: &StoredFile) -> Result<Value, Error> {
    let look = file.look()?;
    let (mut min, mut max, mut nulls) = (Map::new(), Map::new(), Map::new());
    if let Detail::Parquet { statistics, .. } = &look.facts.detail {
        for (field, known) in look.facts.columns.fields().iter().zip(&statistics.column_statistics) {
            if let Precision::Exact(count) = known.null_count {
                nulls.insert(field.name().clone(), json!(count));
            }
            if let (Some(low), Some(high)) = (bound(&known.min_value), bound(&known.max_value)) {
                min.insert(field.name().clone(), low);
                max.insert(field.name().clone(), high);
            }
        }
    }
    Ok(json!({"numRecords": file.rows(), "minValues": min, "maxValues": max, "nullCount": nulls}))
}

fn bound(value: &Precision<ScalarValue>) -> Option<Value> {
    let Precision::Exact(value) = value else { return None };
    Some(match value {
        ScalarValue::Int8(Some(value)) => json!(value),
        ScalarValue::Int16(Some(value)) => json!(value),
        ScalarValue::Int32(Some(value)) => json!(value),
        ScalarValue::Int64(Some(value)) => json!(value),
        ScalarValue::Utf8(Some(value)) => json!(value),
        ScalarValue::Date32(Some(_)) => json!(value.to_string()),
        _ => return None,
    })
}

fn commit_info(table: &Table) -> Value {
    json!({"commitInfo": {
        "timestamp": Utc::now().timestamp_millis(),
        "operation": "WRITE",
        "operationParameters": {},
        "engineInfo": concat!("bowshot/", env!("CARGO_PKG_VERSION")),
        OUR_VERSION: table.version(),
    }})
}

fn definition(table: &Table, columns: &str) -> Vec<Value> {
    let local = table.schema().fields().iter().any(|field| has_local_timestamps(field.data_type()));
    let protocol = if local {
        json!({
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz"],
            "writerFeatures": ["timestampNtz"],
        })
    } else {
        json!({"minReaderVersion": 1, "minWriterVersion": 2})
    };
    let metadata = json!({
        "id": table.id().to_string(),
        "description": table.definition().comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": Utc::now().timestamp_millis(),
    });
    vec![json!({"protocol": protocol}), json!({"metaData": metadata})]
}

fn schema_text(table: &Table) -> String {
    let columns = table.definition().columns.iter();
    let fields = columns.filter_map(|column| field_to_json(&column.field, column.comment.as_deref()));
    json!({"type": "struct", "fields": fields.collect::<Vec<_>>()}).to_string()
}

/// Unites the log of a table in a checkpoint, and removes entries older than Delta's retention. To be called outside
/// of any runtime.
pub(super) fn checkpoint(disk: &Arc<Disk>, table: Uuid, version: u64) -> Result<(), Error> {
    let folder = disk.folder(table);
    let log = folder.join("_delta_log");
    let failed = |reason: String| Error::file("write", &log, io::Error::other(reason));
    let before = names_in(&log)?;
    let absolute = fs::canonicalize(&folder).map_err(|error| Error::file("read", &folder, error))?;
    let url =
        url::Url::from_directory_path(&absolute).map_err(|()| failed("the path is no URL".to_owned()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Error::file("read", &folder, error))?;
    let work =
        deltalake_core::checkpoints::create_checkpoint_from_table_url_and_cleanup(url, version, None, None);
    runtime.block_on(work).map_err(|error| failed(error.to_string()))?;
    // The library makes its files as everybody does.
    private::all_in(&log).map_err(|error| failed(error.to_string()))?;
    match disk.bucket() {
        Some(bucket) => bucket.after_checkpoint(table, &log, &before),
        None => Ok(()),
    }
}
