//! `system.materialized_views`: how the server refreshes them, and what their rows show. All but the name is for who owns a view.

use super::ViewMeanings;
use super::tables::{self, batch};
use crate::definition_text::refresh_mode;
use crate::lazy_table::{Cell, cells, columns};
use bowshot_api::Result;
use bowshot_policy::Access;
use bowshot_policy::rules::place_of;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Privilege;
use bowshot_tables::durable::Version;
use bowshot_tables::{EntryName, Materialized, Snapshot, SourceVersion, Table, TableStore};
use datafusion::arrow::array::RecordBatch;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const NAME: &str = "materialized_views";
/// The state of a view that shows its tables as they are.
const FRESH: &str = "fresh";
/// Who has made the views that nobody asked for, and when they are refreshed.
const SERVER: &str = "server";
const BY_SERVER: &str = "when stale";

/// What is told of one view.
struct Row {
    refresh: String,
    state: &'static str,
    sources: String,
    ended: Option<i64>,
    milliseconds: Option<f64>,
    lag: Option<f64>,
    rows: i64,
    incremental: Option<bool>,
    reason: Option<String>,
    error: Option<String>,
    made_by: Option<String>,
    answered: i64,
    last_answered: Option<i64>,
    saved: Option<f64>,
}

/// The views that a statement sees.
pub(super) async fn rows(
    pinned: &Pinned,
    store: &TableStore,
    access: &Access,
    meanings: &dyn ViewMeanings,
) -> Result<RecordBatch> {
    let newest = store.snapshot();
    let tables: HashMap<_, String> =
        pinned.shared().tables().map(|(name, table)| (table.id(), name.to_string())).collect();
    let named = |source: &SourceVersion| {
        tables.get(&source.table).cloned().unwrap_or_else(|| source.table.to_string())
    };
    let (mut told, mut history) = (Vec::new(), None);
    let rules = access.rules();
    for (name, table) in views(pinned) {
        let Some(view) = &table.definition().materialized else { continue };
        let is_own = access.may_table(Privilege::Own, &name);
        let owner = || rules.owners.get(&place_of(&name)).cloned();
        let row = is_own.then(|| row(&table, view, (&newest, store), &named));
        let mut row = row.map(|row| Row { made_by: row.made_by.or_else(owner), ..row });
        if let Some(row) = &mut row {
            if row.state != FRESH && !view.sources.is_empty() {
                if history.is_none() {
                    history = Some(store.history()?);
                }
                row.lag = lag(view, history.as_deref().unwrap_or_default());
            } else if row.state == FRESH && !meanings.is_meant(view).await {
                (row.state, row.lag) = ("stale", None);
            }
        }
        told.push(full_row(&name, row));
    }
    let columns = columns![
        table_catalog Text, table_schema Text, table_name Text, refresh Text, state Text, sources Text,
        last_refresh Time, last_duration_ms Real, lag_ms Real, row_count Long, incremental Bool, full_reason Text,
        last_error Text, made_by Text, answered_queries Long, last_answered Time, saved_ms Real
    ];
    batch(columns, told)
}

fn views(pinned: &Pinned) -> Vec<(EntryName, Arc<Table>)> {
    let tables = pinned.shared().tables().chain(pinned.own().tables());
    let views = tables.filter(|(_, table)| table.definition().materialized.is_some());
    views.map(|(name, table)| (name, Arc::clone(table))).collect()
}

/// For how long, in milliseconds, a table has had rows that the view does not show. Maintenance changes none.
fn lag(view: &Materialized, history: &[Version]) -> Option<f64> {
    let is_missed = |commit: &&Version| {
        let is_later =
            |source: &SourceVersion| source.table == commit.table && source.version < commit.version;
        commit.operation != "OPTIMIZE" && view.sources.iter().any(is_later)
    };
    let since = history.iter().filter(is_missed).map(|commit| commit.committed.timestamp_micros()).min()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some((now.as_secs_f64() * 1_000.0 - since as f64 / 1_000.0).max(0.0))
}

/// What is told of a view: nothing beside its name to those who do not own it.
fn full_row(name: &EntryName, row: Option<Row>) -> Vec<Cell> {
    let told = row.map(|row| {
        let first =
            cells![row.refresh, row.state, row.sources, row.ended, row.milliseconds, row.lag, row.rows];
        let second = cells![row.incremental, row.reason, row.error, row.made_by];
        let last = cells![row.answered, row.last_answered, row.saved];
        first.into_iter().chain(second).chain(last)
    });
    tables::row(name, told.into_iter().flatten())
}

fn row(
    table: &Table,
    view: &Materialized,
    (newest, store): (&Snapshot, &TableStore),
    named: &dyn Fn(&SourceVersion) -> String,
) -> Row {
    let error = store.refresh_failure(table.id()).map(|(_, error)| error);
    let state = match newest.is_fresh(view) {
        Some(true) => FRESH,
        _ if error.is_some() => "failed",
        Some(false) => "stale",
        None => "unknown",
    };
    let sources = view.sources.iter();
    let sources = sources.map(|source| format!("{} version {}", named(source), source.version));
    let (last, usage) = (view.last.as_ref(), store.view_usage(table.id()));
    let full = last.and_then(|last| last.full_took);
    let micros =
        |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_micros() as i64);
    Row {
        refresh: if usage.by_server { BY_SERVER.to_owned() } else { refresh_mode(view) },
        state,
        sources: sources.collect::<Vec<_>>().join(", "),
        ended: last.map(|last| last.ended_us),
        lag: (state == FRESH).then_some(0.0),
        milliseconds: last.map(|last| last.took.as_secs_f64() * 1_000.0),
        rows: table.rows().cast_signed(),
        incremental: last.map(|last| last.full.is_none()),
        reason: last.and_then(|last| last.full.clone()),
        error,
        made_by: usage.by_server.then(|| SERVER.to_owned()),
        answered: usage.answered.cast_signed(),
        last_answered: usage.last.filter(|_| usage.answered > 0).and_then(micros),
        // What computing its rows took would have been the least of each query.
        saved: full.map(|full| full.as_secs_f64() * 1_000.0 * usage.answered as f64),
    }
}
