//! Large tables of PostgreSQL over several connections: ranges of an integer primary key, all read from one snapshot. The outermost ranges
//! are open, so that rows that are added meanwhile belong to one of them. Other kinds have no snapshot that connections share.

use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::metadata::TableMetadata;
use crate::pool::Pool;
use crate::request::ScanRequest;
use crate::source::Source;
use std::sync::Arc;

/// Fewest rows of a table that is split, and rows for each connection.
const LEAST_ROWS: u64 = 200_000;
const ROWS_OF_ONE: u64 = 100_000;
/// Most connections of one scan.
const MAX_RANGES: usize = 8;

/// The filters that split a table; none if it is read as a whole.
pub(crate) async fn plan_ranges(
    source: &Source,
    described: &TableMetadata,
    request: &ScanRequest,
    threads: usize,
) -> Result<Vec<String>, DatabaseError> {
    let settings = &source.settings;
    let (Some(key), Some(rows)) = (&described.key, described.rows) else { return Ok(Vec::new()) };
    let whole = settings.kind != Kind::Postgres
        || !settings.parallel
        || request.limit.is_some()
        || request.columns.is_empty()
        || rows < LEAST_ROWS;
    // One connection holds the snapshot.
    let connections = settings.pool.saturating_sub(1).min(threads).min(MAX_RANGES);
    let parts = usize::try_from(rows / ROWS_OF_ONE).unwrap_or(MAX_RANGES).min(connections);
    if whole || parts < 2 {
        return Ok(Vec::new());
    }
    let ends = described.ends.get_or_try_init(|| key_bounds(&source.pool, key, &described.relation)).await?;
    Ok(ends.map(|ends| split(key, ends, parts)).unwrap_or_default())
}

async fn key_bounds(
    pool: &Arc<Pool>,
    key: &str,
    relation: &str,
) -> Result<Option<(i64, i64)>, DatabaseError> {
    let sql = format!("SELECT min({key})::text, max({key})::text FROM {relation}");
    let rows = pool.query_texts(sql).await?;
    let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse().ok();
    Ok(end(0).zip(end(1)))
}

/// Ranges of about equal width; the first and the last are open.
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
