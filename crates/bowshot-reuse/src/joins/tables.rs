//! `system.join_cache`, `system.join_history` and `system.cache_forecasts`. They show names of tables and columns, and no
//! values that statements compare with: those may be somebody else's secrets.

use super::JoinCache;
use crate::cache::{CachedJoin, Order, Place, Template, short_names};
use crate::columns::{batch, real, text, time, truth, whole};
use bowshot_api::Result;
use chrono::Utc;
use datafusion::arrow::record_batch::RecordBatch;
use std::sync::Arc;

pub(crate) const TABLE: &str = "join_cache";
/// The joins that were asked for.
pub(crate) const HISTORY: &str = "join_history";
/// What is computed next.
pub(crate) const FORECASTS: &str = "cache_forecasts";

/// The rows of one of these tables; none if there is no cache.
pub(crate) fn rows(cache: Option<&JoinCache>, table: &str) -> Option<Result<RecordBatch>> {
    if let (HISTORY | FORECASTS, Some(cache)) = (table, cache) {
        cache.learn();
    }
    match table {
        TABLE => Some(joins(&cache.map(|cache| cache.store.all()).unwrap_or_default())),
        HISTORY => Some(history(&cache.map(|cache| cache.history.templates()).unwrap_or_default())),
        FORECASTS => Some(forecasts(cache)),
        _ => None,
    }
}

fn joins(joins: &[Arc<CachedJoin>]) -> Result<RecordBatch> {
    batch(vec![
        ("id", whole(joins, |join| join.id)),
        ("tables", text(joins, |join| short_names(&join.about.shape.names()))),
        ("column_count", whole(joins, |join| join.about.columns.len() as u64)),
        ("row_count", whole(joins, |join| join.info.rows)),
        ("bytes", whole(joins, |join| join.info.bytes)),
        ("disk_bytes", whole(joins, |join| join.bytes_in(Place::Disk))),
        ("place", text(joins, |join| join.place().to_owned())),
        ("cost_ms", real(joins, |join| join.info.cost.as_secs_f64() * 1e3)),
        ("hits", whole(joins, |join| join.hits())),
        ("forecast", truth(joins, |join| join.about.forecast)),
        ("pinned", truth(joins, |join| join.is_pinned())),
        ("worth", real(joins, |join| join.worth())),
        ("created", time(joins, |join| join.info.created)),
    ])
}

fn history(templates: &[Template]) -> Result<RecordBatch> {
    let patterns = |template: &Template| template.patterns().collect::<Vec<_>>().join(", ");
    let latest = |template: &Template| template.seen.last().map(short_names).unwrap_or_default();
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

/// What was predicted, what waits to be computed, and what should be there because it was asked for before.
fn forecasts(cache: Option<&JoinCache>) -> Result<RecordBatch> {
    let mut rows: Vec<(Order, f64, &str)> = Vec::new();
    if let Some(cache) = cache {
        let waiting = cache.queue.waiting();
        rows.extend(waiting.into_iter().map(|job| (job.order, job.rank, "waiting")));
        rows.extend(cache.watch.predicted().into_iter().map(|(rank, order)| (order, rank, "foretold")));
        let slices = cache.history.next_slices(cache.config.fill_after, Utc::now());
        rows.extend(slices.into_iter().map(|(rank, order)| (order, rank, "foretold")));
        let latest = cache.history.latest(cache.config.fill_after, Utc::now());
        rows.extend(latest.into_iter().map(|(rank, order)| (order, rank, "repeated")));
    }
    batch(vec![
        ("tables", text(&rows, |(order, _, _)| short_names(&order.tables))),
        ("reason", text(&rows, |(_, _, reason)| (*reason).to_owned())),
        ("rank", real(&rows, |(_, rank, _)| *rank)),
    ])
}
