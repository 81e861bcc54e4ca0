//! Asks questions before they are asked: when a table appears that continues one, the next question is asked as the one who
//! asked the last would, with his rights, on the thread for background work, and its result is kept like any other.

use super::super::{JoinCache, keys};
use super::ResultCache;
use super::questions::{Asked, Foretold};
use crate::enforce::Action;
use crate::engine::Shared;
use crate::execute::Parallelism;
use crate::session::EngineSession;
use bowshot_api::{Error, Result, batch_bytes};
use bowshot_cache::{TableKey, TableName};
use futures::{FutureExt, StreamExt, stream};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
/// Questions that may wait.
const MAX_WAITING: usize = 256;
/// Looks after which a question is given up whose tables do not come.
const MAX_LOOKS: u32 = 3_600;

struct Waiting {
    foretold: Foretold,
    looks: u32,
    /// What its tables held at the last look.
    versions: Vec<TableKey>,
}

/// Looks every second, for as long as the engine is there.
pub(crate) async fn work(engine: Weak<Shared>) {
    let (mut known, mut waiting) = (None, Vec::new());
    loop {
        tokio::time::sleep(TICK).await;
        let Some(shared) = engine.upgrade() else { return };
        let (Some(reuse), Some(results)) = (&shared.reuse, &shared.results) else { return };
        let now = reuse.cache.table_names();
        if let Some(before) = known.replace(now.clone()) {
            let least = reuse.cache.config.fill_after;
            foretell(results, now.difference(&before), least, &mut waiting);
        }
        ask(&shared, (&reuse.cache, results), &mut waiting).await;
    }
}

fn foretell<'t>(
    results: &ResultCache,
    appeared: impl Iterator<Item = &'t TableName>,
    least: u64,
    waiting: &mut Vec<Waiting>,
) {
    for foretold in appeared.flat_map(|table| results.questions.continued_by(table, least)) {
        let same = |other: &Waiting| other.foretold.is_same(&foretold);
        if !waiting.iter().any(same) && waiting.len() < MAX_WAITING {
            waiting.push(Waiting { foretold, looks: 0, versions: Vec::new() });
        }
    }
}

/// Asks what waits and has tables that did not change between two looks. Joins that wait to be computed go first, since
/// they are what the questions are made of.
async fn ask(shared: &Arc<Shared>, (joins, results): (&JoinCache, &ResultCache), waiting: &mut Vec<Waiting>) {
    let mut later = Vec::new();
    for mut question in waiting.drain(..) {
        question.looks += 1;
        let versions = versions(joins, &question.foretold.tables).await;
        let settled = versions.as_ref().is_some_and(|versions| *versions == question.versions);
        question.versions = versions.unwrap_or_default();
        if !settled || joins.queue.is_busy() {
            if question.looks < MAX_LOOKS {
                later.push(question);
            }
            continue;
        }
        let asking = AssertUnwindSafe(answer(shared, results, &question.foretold.asked)).catch_unwind();
        let outcome = match tokio::time::timeout(joins.config.fill_timeout, asking).await {
            Ok(Ok(Ok(()))) => "computed",
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "a question that was foretold has no answer");
                "failed"
            }
            Ok(Err(_)) => "failed",
            Err(_) => "timeout",
        };
        metrics::counter!("bowshot_result_cache_forecasts_total", "outcome" => outcome).increment(1);
    }
    *waiting = later;
}

/// What the tables of a question hold; `None` if one of them is not there yet, or may still change unnoticed.
async fn versions(joins: &JoinCache, tables: &[TableName]) -> Option<Vec<TableKey>> {
    let mut versions = Vec::with_capacity(tables.len());
    for table in tables {
        versions.push(keys::find(table, &joins.parts).await?.key);
    }
    Some(versions)
}

/// Runs a query to its end, if its result is small enough to be kept. Whether it is kept is the recording's affair.
async fn answer(shared: &Arc<Shared>, results: &ResultCache, asked: &Asked) -> Result<()> {
    let session = EngineSession::ahead(shared, &asked.principal, asked.config.clone());
    let pinned = session.pin();
    let plan = session.plan(&asked.text, &pinned).await?;
    if !matches!(plan.action(), Action::Query) {
        return Err(Error::internal("a question that was foretold is no query"));
    }
    let execution = session.execute(&plan, &[], Parallelism::Default, asked.layout).await?;
    let mut rows = stream::select_all(execution.streams);
    let mut bytes = 0;
    while let Some(batch) = rows.next().await {
        bytes += batch_bytes(&batch?) as u64;
        if bytes > results.store.largest() {
            return Err(Error::invalid("the result is too large to be kept"));
        }
    }
    Ok(())
}

impl Foretold {
    fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.asked, &other.asked);
        one.text == other.text && one.principal == other.principal && one.layout == other.layout
    }
}
