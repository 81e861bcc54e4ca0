//! `system.join_cache`, `system.join_history`, `system.cache_forecasts` and `system.result_cache`. They show names of tables and columns, and no
//! values that statements compare with: those may be somebody else's secrets.

use super::{Caches, JoinCache, results};
use crate::about_tables::batch;
use bowshot_api::Result;
use bowshot_cache::{CachedJoin, Order, Template};
use chrono::Utc;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use std::sync::Arc;
use std::time::SystemTime;

/// The tables that are made here.
pub(crate) const NAMES: [&str; 4] = ["cache_forecasts", "join_cache", "join_history", results::NAME];

/// The rows of one of [`NAMES`]; none if there is no cache.
pub(crate) fn about(caches: &Caches, name: &str) -> Option<Result<RecordBatch>> {
    let cache = caches.joins.as_deref();
    if let ("join_history" | "cache_forecasts", Some(cache)) = (name, cache) {
        cache.learn();
    }
    match name {
        results::NAME => Some(results::about(caches.results.as_deref())),
        "join_cache" => Some(joins(&cache.map(|cache| cache.store.all()).unwrap_or_default())),
        "join_history" => Some(history(&cache.map(|cache| cache.history.templates()).unwrap_or_default())),
        "cache_forecasts" => Some(forecasts(cache)),
        _ => None,
    }
}

fn joins(joins: &[Arc<CachedJoin>]) -> Result<RecordBatch> {
    let now = SystemTime::now();
    let names = |join: &CachedJoin| {
        let tables = join.about.shape.tables.iter().map(|key| key.name.short());
        tables.collect::<Vec<_>>().join(", ")
    };
    batch(vec![
        ("id", whole(joins, |join| join.id)),
        ("tables", text(joins, |join| names(join))),
        ("column_count", whole(joins, |join| join.about.columns.len() as u64)),
        ("row_count", whole(joins, |join| join.about.rows)),
        ("bytes", whole(joins, |join| join.about.bytes)),
        ("disk_bytes", whole(joins, |join| join.disk_bytes())),
        ("place", text(joins, |join| join.place().name().to_owned())),
        ("cost_ms", real(joins, |join| join.about.cost.as_secs_f64() * 1e3)),
        ("hits", whole(joins, |join| join.hits())),
        ("forecast", truth(joins, |join| join.about.forecast)),
        ("pinned", truth(joins, |join| join.is_pinned())),
        ("worth", real(joins, |join| join.worth(now))),
        ("created", time(joins, |join| join.about.created)),
    ])
}

fn history(templates: &[Template]) -> Result<RecordBatch> {
    let patterns = |template: &Template| template.patterns().collect::<Vec<_>>().join(", ");
    let latest = |template: &Template| template.seen.last().map(|names| shown(names)).unwrap_or_default();
    let hours = |template: &Template| {
        let hours = template.hours.iter().enumerate().filter(|(_, count)| **count > 0);
        hours.map(|(hour, count)| format!("{hour}:{count}")).collect::<Vec<_>>().join(" ")
    };
    batch(vec![
        ("tables", text(templates, patterns)),
        ("latest", text(templates, latest)),
        ("conditions", whole(templates, |template| template.tree().conditions.len() as u64)),
        ("column_count", whole(templates, |template| template.columns.len() as u64)),
        ("count", whole(templates, |template| template.count)),
        ("cost_ms", whole(templates, |template| template.cost_ms)),
        ("unused", whole(templates, |template| u64::from(template.unused))),
        ("hours", text(templates, hours)),
        ("first_seen", time(templates, |template| template.first)),
        ("last_seen", time(templates, |template| template.last)),
    ])
}

/// What was foretold, what waits to be computed, and what should be there because it was asked for before.
fn forecasts(cache: Option<&JoinCache>) -> Result<RecordBatch> {
    let mut rows: Vec<(Order, f64, &str)> = Vec::new();
    if let Some(cache) = cache {
        let waiting = cache.queue.waiting();
        rows.extend(waiting.into_iter().map(|job| (job.order, job.rank, "waiting")));
        rows.extend(cache.watch.foretold().into_iter().map(|(rank, order)| (order, rank, "foretold")));
        let slices = cache.history.next_slices(cache.config.fill_after, Utc::now());
        rows.extend(slices.into_iter().map(|(rank, order)| (order, rank, "foretold")));
        let latest = cache.history.latest(cache.config.fill_after, Utc::now());
        rows.extend(latest.into_iter().map(|(rank, order)| (order, rank, "repeated")));
    }
    batch(vec![
        ("tables", text(&rows, |(order, _, _)| shown(&order.tables))),
        ("reason", text(&rows, |(_, _, reason)| (*reason).to_owned())),
        ("rank", real(&rows, |(_, rank, _)| *rank)),
    ])
}

fn shown(names: &[bowshot_cache::TableName]) -> String {
    names.iter().map(bowshot_cache::TableName::short).collect::<Vec<_>>().join(", ")
}

pub(super) fn text<T>(rows: &[T], value: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<StringArray>())
}

pub(super) fn whole<T>(rows: &[T], value: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| value(row).cast_signed()).collect::<Int64Array>())
}

pub(super) fn real<T>(rows: &[T], value: impl Fn(&T) -> f64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Float64Array>())
}

fn truth<T>(rows: &[T], value: impl Fn(&T) -> bool) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>())
}

pub(super) fn time<T>(rows: &[T], value: impl Fn(&T) -> SystemTime) -> ArrayRef {
    let micros = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    };
    let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| micros(value(row))));
    Arc::new(times.with_timezone("UTC"))
}
