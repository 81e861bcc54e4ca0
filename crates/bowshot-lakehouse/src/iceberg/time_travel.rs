//! Which state of a table a number or a point in time means.

use super::metadata::{Snapshot, TableMetadata};
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::Error;
use chrono::{DateTime, SecondsFormat};
use std::cmp::Reverse;
use std::path::Path;

const MOST_NAMED: usize = 5;

/// The state of this number, or the one that was current at this time.
pub(super) fn state_at<'m>(
    metadata: &'m TableMetadata,
    as_of: AsOf,
    path: &Path,
) -> Result<&'m Snapshot, Error> {
    let no_state = |detail: String| Error::NoState { path: path.to_path_buf(), detail, kept: kept(metadata) };
    match as_of {
        AsOf::Version(id) => {
            let found = i64::try_from(id).ok().and_then(|id| metadata.snapshot(id));
            found.ok_or_else(|| no_state(format!("has no snapshot {id}")))
        }
        AsOf::Time(time) => {
            let id = current_at(metadata, time.timestamp_millis())
                .ok_or_else(|| no_state(format!("has no snapshot of {time}, or it has expired")))?;
            let gone = || no_state(format!("no longer has the snapshot {id} of {time}"));
            metadata.snapshot(id).ok_or_else(gone)
        }
    }
}

/// The number of the state that was current at a time: as the table's log has it, else as the states say who came before whom.
fn current_at(metadata: &TableMetadata, time_ms: i64) -> Option<i64> {
    let mut log: Vec<(i64, i64)> =
        metadata.snapshot_log.iter().map(|entry| (entry.timestamp_ms, entry.snapshot_id)).collect();
    let mut next = metadata.current().ok().flatten();
    if log.last().map(|(_, id)| *id) != next.map(|state| state.snapshot_id) {
        // A writer that keeps no log, or has forgotten it: the ancestors up to what the log has.
        let mut ancestors = Vec::new();
        for _ in 0..metadata.snapshots.len() {
            let Some(state) = next.filter(|state| !log.iter().any(|(_, id)| *id == state.snapshot_id)) else {
                break;
            };
            ancestors.push((state.timestamp_ms?, state.snapshot_id));
            next = state.parent_snapshot_id.and_then(|id| metadata.snapshot(id));
        }
        log.extend(ancestors.into_iter().rev());
    }
    // Of two of one moment the later one counts.
    let latest = log.iter().enumerate().filter(|(_, (of, _))| *of <= time_ms);
    latest.max_by_key(|(place, (of, _))| (*of, *place)).map(|(_, (_, id))| *id)
}

/// The states that are kept, from the last one on.
fn kept(metadata: &TableMetadata) -> String {
    let mut states: Vec<(i64, i64)> =
        metadata.snapshots.iter().map(|state| (state.timestamp_ms.unwrap_or(0), state.snapshot_id)).collect();
    states.sort_unstable_by_key(|state| Reverse(*state));
    let shown = |(time, id): &(i64, i64)| {
        let time = DateTime::from_timestamp_millis(*time).unwrap_or_default();
        format!("{id} of {}", time.to_rfc3339_opts(SecondsFormat::Millis, true))
    };
    let named: Vec<String> = states.iter().take(MOST_NAMED).map(shown).collect();
    match named.len() {
        0 => "it has no snapshots".to_owned(),
        count if count < states.len() => {
            format!("the last of its {} snapshots are {}", states.len(), named.join(", "))
        }
        _ => format!("its snapshots are {}", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(log: &str) -> TableMetadata {
        let json = format!(
            r#"{{"format-version": 2, "location": "s3://b/t", "current-snapshot-id": 30,
                "snapshots": [{{"snapshot-id": 10, "timestamp-ms": 1000}},
                    {{"snapshot-id": 20, "timestamp-ms": 2000, "parent-snapshot-id": 10}},
                    {{"snapshot-id": 30, "timestamp-ms": 3000, "parent-snapshot-id": 20}}],
                "snapshot-log": [{log}]}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn logged(states: &[(i64, i64)]) -> String {
        let of = |(time, id): &(i64, i64)| format!(r#"{{"timestamp-ms": {time}, "snapshot-id": {id}}}"#);
        states.iter().map(of).collect::<Vec<_>>().join(",")
    }

    fn at(metadata: &TableMetadata, time_ms: i64) -> Option<i64> {
        let time = DateTime::from_timestamp_millis(time_ms).unwrap();
        state_at(metadata, AsOf::Time(time), Path::new("t")).ok().map(|state| state.snapshot_id)
    }

    #[test]
    fn the_log_says_what_was_current() {
        // Somebody went back to 10 for a while.
        let with = metadata(&logged(&[(1000, 10), (2000, 20), (2500, 10), (3000, 30)]));
        let found: Vec<_> = [999, 1000, 1999, 2000, 2600, 3000, 9000].map(|time| at(&with, time)).into();
        assert_eq!(found, [None, Some(10), Some(10), Some(20), Some(10), Some(30), Some(30)]);
        let without = metadata("");
        let found: Vec<_> = [999, 1000, 2999, 3000].map(|time| at(&without, time)).into();
        assert_eq!(found, [None, Some(10), Some(20), Some(30)]);
        let behind = metadata(&logged(&[(1000, 10)]));
        assert_eq!([at(&behind, 1500), at(&behind, 2000), at(&behind, 3000)], [Some(10), Some(20), Some(30)]);
    }

    #[test]
    fn a_state_that_is_not_there_names_those_that_are() {
        let with = metadata(&logged(&[(1000, 10), (1500, 15), (3000, 30)]));
        assert_eq!(state_at(&with, AsOf::Version(20), Path::new("t")).unwrap().snapshot_id, 20);
        let refused = |as_of| state_at(&with, as_of, Path::new("t")).unwrap_err();
        let Error::NoState { detail, kept, .. } = refused(AsOf::Version(7)) else { panic!() };
        assert!(detail.contains("no snapshot 7") && kept.contains("30 of 1970-01-01T00:00:03.000Z"));
        assert!(refused(AsOf::Version(u64::MAX)).to_string().contains("no snapshot"));
        let expired = refused(AsOf::Time(DateTime::from_timestamp_millis(1600).unwrap()));
        assert!(expired.to_string().contains("no longer has the snapshot 15"), "{expired}");
    }
}
