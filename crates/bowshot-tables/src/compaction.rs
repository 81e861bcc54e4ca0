//! Unites small segments, so that a table that is filled row by row stays fast to scan.

use super::merge::changed_tables;
use super::segment::{MemoryRows, Segment, without_dead_texts};
use super::snapshot::Snapshot;
use super::{Entry, Error, Table, TableStore};
use arrow::compute::concat_batches;
use std::sync::Arc;

/// Segments with fewer rows are small, as long as
const SMALL_ROWS: usize = 4096;
/// they have fewer bytes.
const SMALL_BYTES: u64 = 16 << 20;

const SMALL_SEGMENTS: usize = 64;

/// Rows that a united segment may have: after one transaction of very many small appends there is more than one.
const UNITED_ROWS: usize = 1 << 20;

/// Unites the small segments of the tables of `merged` that differ from the head. What cannot be united stays as it is.
pub(super) fn unite_small_segments(store: &TableStore, head: &Snapshot, merged: &mut Snapshot) {
    for (name, table) in changed_tables(head, merged) {
        let small = table.shared_segments().iter().filter(|segment| is_small(segment)).count();
        let tidying = store.folder().is_some_and(|folder| folder.keeper.is_tidying(table.id()));
        if small <= SMALL_SEGMENTS || tidying {
            continue;
        }
        match united(store, &table) {
            Ok(table) => merged.replace(&name, Entry::Table(Arc::new(table))),
            Err(error) => tracing::debug!(table = %name, %error, "small segments stay"),
        }
    }
}

fn is_small(segment: &Segment) -> bool {
    segment.memory().is_some() && segment.rows() < SMALL_ROWS && segment.bytes() < SMALL_BYTES
}

/// The table with its small segments in one, at the place of the first.
fn united(store: &TableStore, table: &Table) -> Result<Table, Error> {
    let (small, large): (Vec<_>, Vec<_>) =
        table.shared_segments().iter().cloned().enumerate().partition(|(_, segment)| is_small(segment));
    let first = small.first().map_or(0, |(position, _)| *position);
    let mut segments: Vec<_> = large.into_iter().map(|(_, segment)| segment).collect();
    // All before the first small one are large.
    for (place, group) in (first..).zip(groups(small.into_iter().map(|(_, segment)| segment))) {
        let batches = group.iter().filter_map(|segment| segment.memory()).map(MemoryRows::batch);
        let rows = concat_batches(&table.schema(), batches)?;
        segments.insert(place, store.united(without_dead_texts(&rows)?, &group)?);
    }
    Ok(table.with_segments(segments))
}

fn groups(segments: impl Iterator<Item = Arc<Segment>>) -> Vec<Vec<Arc<Segment>>> {
    let mut groups: Vec<Vec<Arc<Segment>>> = Vec::new();
    let mut room = 0;
    for segment in segments {
        let rows = segment.rows();
        match groups.last_mut() {
            Some(group) if rows <= room => {
                room -= rows;
                group.push(segment);
            }
            _ => {
                room = UNITED_ROWS.saturating_sub(rows);
                groups.push(vec![segment]);
            }
        }
    }
    groups
}
