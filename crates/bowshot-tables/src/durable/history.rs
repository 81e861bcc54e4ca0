//! Earlier versions of a table.

use super::catalog::parsed;
use super::codec::definition_from_text;
use super::load::{SegmentRow, Shelf};
use crate::segment::Segment;
use crate::store::TableStore;
use crate::{Error, Table};
use bowshot_formats::table_version::AsOf;
use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension, Params, params};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub table: Uuid,
    /// Number of the commit; the first is 0.
    pub version: u64,
    pub committed: DateTime<Utc>,
    /// What it did: `CREATE`, `INSERT`, `UPDATE`, `DELETE`, `ALTER`, `OPTIMIZE`.
    pub operation: String,
    /// Rows that it put in; an updated row is one put in and one taken out.
    pub rows_added: u64,
    pub rows_removed: u64,
}

impl TableStore {
    /// The commits of all durable tables that are kept, by table and version. Blocks.
    pub fn history(&self) -> Result<Vec<Version>, Error> {
        self.commits("1 ORDER BY table_id, version", params![])
    }

    /// The commits of one table that are kept, from a version on. Blocks.
    pub fn history_of(&self, table: Uuid, from: u64) -> Result<Vec<Version>, Error> {
        let given = params![table.to_string(), i64::try_from(from).unwrap_or(i64::MAX)];
        self.commits("table_id = ? AND version >= ? ORDER BY version", given)
    }

    fn commits(&self, wanted: &str, given: impl Params) -> Result<Vec<Version>, Error> {
        let Some(folder) = self.folder() else { return Ok(Vec::new()) };
        folder.catalog.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT table_id, version, committed_us, operation, rows_added, rows_removed
                 FROM versions WHERE {wanted}"
            ))?;
            let rows = statement.query_map(given, |row| {
                Ok(Version {
                    table: Uuid::parse_str(&row.get::<_, String>(0)?).unwrap_or_default(),
                    version: row.get::<_, i64>(1)?.cast_unsigned(),
                    committed: DateTime::from_timestamp_micros(row.get(2)?).unwrap_or_default(),
                    operation: row.get(3)?,
                    rows_added: row.get::<_, i64>(4)?.cast_unsigned(),
                    rows_removed: row.get::<_, i64>(5)?.cast_unsigned(),
                })
            })?;
            rows.collect()
        })
    }

    /// The folder of a durable table, which is a Delta table; of one in a store its address.
    pub fn location(&self, table: &Table) -> Option<std::path::PathBuf> {
        let folder = self.folder().filter(|_| table.definition().is_durable())?;
        Some(match folder.disk.bucket() {
            Some(bucket) => bucket.address_of(&table.id().to_string()).into(),
            None => folder.disk.folder(table.id()),
        })
    }

    /// A table as it was. Fails for a state that is not kept, and for tables in memory, which keep none. Blocks.
    pub fn table_as_of(&self, table: &Table, as_of: AsOf) -> Result<Table, Error> {
        let Some(folder) = self.folder().filter(|_| table.definition().is_durable()) else {
            return Err(Error::NoVersion("tables in memory keep no earlier versions".to_owned()));
        };
        // Held against VACUUM, which else might take files away between the steps.
        let _turn = self.turn.lock();
        let id = table.id().to_string();
        let version = self.resolve(table, as_of)?;
        let signed = version.cast_signed();
        let (body, rows) = folder.catalog.read(|connection| {
            let body: Option<String> = connection
                .query_row(
                    "SELECT body FROM definitions WHERE table_id = ? AND version <= ? ORDER BY version DESC LIMIT 1",
                    params![id, signed],
                    |row| row.get(0),
                )
                .optional()?;
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {} FROM segments WHERE table_id = ?1 AND added <= ?2
                 AND (removed IS NULL OR removed > ?2) ORDER BY id",
                SegmentRow::COLUMNS
            ))?;
            let rows = statement.query_map(params![id, signed], SegmentRow::of)?;
            Ok((body, rows.collect::<rusqlite::Result<Vec<_>>>()?))
        })?;
        let body = parsed(body.ok_or("a version of a table has no definition"))?;
        // What the table still has is not read a second time.
        let now: HashMap<u64, &Arc<Segment>> =
            table.shared_segments().iter().map(|segment| (segment.id(), segment)).collect();
        let shelf = Shelf { disk: &folder.disk, account: self.account() };
        let segments = rows.into_iter().map(|row| match now.get(&row.id) {
            Some(segment) => Ok(Arc::clone(segment)),
            None => row.segment(table.id(), shelf),
        });
        let segments = segments.collect::<Result<Vec<_>, _>>()?;
        Ok(Table::restored(table.id(), definition_from_text(&body)?, segments, version))
    }

    fn resolve(&self, table: &Table, as_of: AsOf) -> Result<u64, Error> {
        let (condition, value) = match as_of {
            AsOf::Version(version) => ("version = ?2", version.cast_signed()),
            AsOf::Time(time) => ("committed_us <= ?2", time.timestamp_micros()),
        };
        let sql = format!(
            "SELECT max(version) FILTER (WHERE {condition}), min(version) FROM versions WHERE table_id = ?1"
        );
        let Some(folder) = self.folder() else { return Ok(table.version()) };
        let (found, oldest): (Option<i64>, Option<i64>) = folder.catalog.read(|connection| {
            let given = params![table.id().to_string(), value];
            connection.query_row(&sql, given, |row| Ok((row.get(0)?, row.get(1)?)))
        })?;
        let oldest = oldest.map_or_else(|| "none is".to_owned(), |oldest| format!("the oldest is {oldest}"));
        found.map(i64::cast_unsigned).ok_or_else(|| {
            Error::NoVersion(match as_of {
                AsOf::Version(version) => format!("version {version} of the table is not kept: {oldest}"),
                AsOf::Time(time) => format!("no version of the table at {time} is kept: {oldest}"),
            })
        })
    }
}
