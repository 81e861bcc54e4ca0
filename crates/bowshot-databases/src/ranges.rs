//! Large tables of PostgreSQL over several connections: ranges of the primary key, which is one column of whole numbers.
//!
//! All connections of one scan read the snapshot that the first of them has exported, so that together they give the rows of one
//! moment, each once. The outermost ranges have no end: rows that came after the ends were asked for are in one of them. Other
//! kinds of databases, MySQL among them, have no snapshot that several connections share, and are read over one.

use crate::describe::{Described, texts};
use crate::fault::Fault;
use crate::pool::{Lease, Permit, Pool};
use crate::reading::{Stop, rows_of};
use crate::scan::Request;
use crate::settings::Kind;
use crate::source::Source;
use std::sync::Arc;
use std::thread;

/// Rows from which on a table is worth more than one connection, and rows that are worth one.
const LEAST_ROWS: u64 = 200_000;
const ROWS_OF_ONE: u64 = 100_000;
/// Most connections of one scan.
const MAX_RANGES: usize = 8;

/// What a transaction begins with that only reads.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(crate) const END: &str = "COMMIT";

/// The conditions of the parts in which a table is read; none for one that is read as a whole.
pub(crate) async fn of(
    source: &Source,
    described: &Described,
    request: &Request,
    threads: usize,
) -> Result<Vec<String>, Fault> {
    let settings = &source.settings;
    let (Some(key), Some(rows)) = (&described.key, described.rows) else { return Ok(Vec::new()) };
    let whole = settings.kind != Kind::Postgres
        || !settings.parallel
        || request.limit.is_some()
        || request.columns.is_empty()
        || rows < LEAST_ROWS;
    // One connection keeps the snapshot.
    let connections = settings.pool.saturating_sub(1).min(threads).min(MAX_RANGES);
    let parts = usize::try_from(rows / ROWS_OF_ONE).unwrap_or(MAX_RANGES).min(connections);
    if whole || parts < 2 {
        return Ok(Vec::new());
    }
    let ends = described.ends.get_or_try_init(|| ends(&source.pool, key, &described.relation)).await?;
    Ok(ends.map(|ends| split(key, ends, parts)).unwrap_or_default())
}

async fn ends(pool: &Arc<Pool>, key: &str, relation: &str) -> Result<Option<(i64, i64)>, Fault> {
    let sql = format!("SELECT min({key})::text, max({key})::text FROM {relation}");
    let settings = Arc::clone(&pool.settings);
    let rows = pool.ask(move |connection, stop| texts(&rows_of(connection, &sql, stop, &settings)?)).await?;
    let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse().ok();
    Ok(end(0).zip(end(1)))
}

/// Ranges of about the same width, of which the first and the last have no end.
fn split(key: &str, (least, most): (i64, i64), parts: usize) -> Vec<String> {
    let width = (i128::from(most) - i128::from(least)) / parts as i128;
    if width < 1 {
        return Vec::new();
    }
    let border = |part: usize| i128::from(least) + width * part as i128;
    let written = |part: usize| match border(part) {
        negative if negative < 0 => format!("({negative})"),
        border => border.to_string(),
    };
    let range = |part: usize| match part {
        0 => format!("({key} < {})", written(1)),
        last if last + 1 == parts => format!("({key} >= {})", written(last)),
        part => format!("({key} >= {} AND {key} < {})", written(part), written(part + 1)),
    };
    (0..parts).map(range).collect()
}

/// The transaction whose snapshot the parts of one scan read. It ends with the last of them that has begun.
pub(crate) struct Leader {
    lease: Option<Lease>,
    pub(crate) snapshot: String,
}

impl Leader {
    /// Begins it. May block.
    pub(crate) fn begin(pool: &Arc<Pool>, permit: Permit) -> Result<Self, Fault> {
        let mut lease = pool.lease(permit)?;
        let mut snapshot = exported(&mut lease);
        if matches!(snapshot, Err(Fault::Unreachable(_))) && lease.reused {
            lease = lease.renewed()?;
            snapshot = exported(&mut lease);
        }
        Ok(Self { snapshot: snapshot?, lease: Some(lease) })
    }

    /// What another connection is told to see the same.
    pub(crate) fn words(&self) -> Vec<String> {
        vec![BEGIN.to_owned(), format!("SET TRANSACTION SNAPSHOT '{}'", self.snapshot)]
    }
}

fn exported(lease: &mut Lease) -> Result<String, Fault> {
    let (settings, stop) = (lease.settings(), Stop::new());
    let connection = lease.connection()?;
    connection.tell(BEGIN, &stop, &settings)?;
    let rows =
        texts(&rows_of(connection, "SELECT pg_catalog.pg_export_snapshot()::text", &stop, &settings)?)?;
    let snapshot = rows.into_iter().flatten().flatten().next();
    let plain = |snapshot: &String| snapshot.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    snapshot.filter(plain).ok_or_else(|| Fault::Unexpected("it has exported no snapshot".to_owned()))
}

impl Drop for Leader {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else { return };
        // Drivers block.
        let end = move || {
            let settings = lease.settings();
            let ended =
                lease.connection().and_then(|connection| connection.tell(END, &Stop::new(), &settings));
            if ended.is_ok() {
                lease.give_back();
            }
        };
        let _ = thread::Builder::new().name("database".to_owned()).spawn(end);
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn ranges_hold_every_number_once() {
        let ranges = split("k", (-10, 9), 4);
        assert_eq!(ranges, ["(k < (-6))", "(k >= (-6) AND k < (-2))", "(k >= (-2) AND k < 2)", "(k >= 2)"]);
        assert_eq!(split("k", (i64::MIN, i64::MAX), 2).len(), 2);
        assert!(split("k", (1, 1), 2).is_empty());
        assert!(split("k", (5, 1), 2).is_empty());
    }
}
