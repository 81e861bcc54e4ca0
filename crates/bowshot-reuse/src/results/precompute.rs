//! Runs queries in advance: when a table appears that continues a sequence, the last query is run for it with the rights of the user who ran
//! it, on the background thread.

use super::ResultCache;
use super::query_patterns::Prediction;
use crate::cache::{TableKey, TableName};
use crate::joins::JoinCache;
use crate::keys;
use bowshot_api::{Error, Result, batch_bytes};
use bowshot_engine::reuse::{Asked, Background};
use bowshot_engine::{Action, Engine, Parallelism, WeakEngine};
use futures::{FutureExt, StreamExt, stream};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
const MAX_WAITING: usize = 256;
/// Looks after which a question is given up whose tables do not come.
const MAX_LOOKS: u32 = 3_600;

/// Looks at the same versions before a question is asked: the joins that it is made of are computed after two.
const SETTLED_LOOKS: u32 = 3;
/// A question is asked again of tables that have changed after so many times what asking it took.
const REST: u32 = 10;

struct Waiting {
    predicted: Prediction,
    looks: u32,
    /// What its tables held at the last look, and for how many looks.
    versions: Vec<TableKey>,
    settled: u32,
    /// What they held when it was asked, and how long it rests from then.
    asked: Option<Vec<TableKey>>,
    rests_until: Option<Instant>,
}

impl Waiting {
    fn new(predicted: Prediction) -> Self {
        let (versions, looks, settled) = (Vec::new(), 0, 0);
        Self { predicted, looks, versions, settled, asked: None, rests_until: None }
    }

    /// Notes what the tables hold. Whether it is time to ask.
    fn look(&mut self, versions: Option<Vec<TableKey>>) -> bool {
        self.looks += 1;
        let Some(versions) = versions else {
            self.settled = 0;
            return false;
        };
        self.settled = if versions == self.versions { self.settled + 1 } else { 1 };
        self.versions = versions;
        self.settled >= SETTLED_LOOKS
            && self.asked.as_ref() != Some(&self.versions)
            && self.rests_until.is_none_or(|end| end < Instant::now())
    }
}

/// Looks every second, for as long as the engine is there.
pub(crate) async fn work(engine: WeakEngine, joins: Arc<JoinCache>, results: Arc<ResultCache>) {
    let (mut waiting, mut cleared) = (Vec::new(), 0);
    // What is there at the start is no news.
    let mut known = joins.listed().await;
    loop {
        tokio::time::sleep(TICK).await;
        if engine.upgrade().is_none() {
            return;
        }
        if cleared != results.cleared() {
            cleared = results.cleared();
            waiting.clear();
        }
        let now = joins.known_tables();
        let appeared: Vec<TableName> = now.difference(&known).cloned().collect();
        if !appeared.is_empty() {
            predict(&results, &appeared, joins.config.fill_after, &mut waiting);
        }
        // None before the first look of those who list them.
        if !now.is_empty() {
            known = now;
        }
        let mut later = Vec::with_capacity(waiting.len());
        for question in waiting.drain(..) {
            let Some(engine) = engine.upgrade() else { return };
            let asked = ask(engine, (&joins, &results), question).await;
            later.extend(asked.filter(|question| question.looks < MAX_LOOKS));
        }
        waiting = later;
    }
}

/// Has the next questions wait, each in place of the last one of its template.
fn predict(results: &ResultCache, appeared: &[TableName], least: u64, waiting: &mut Vec<Waiting>) {
    for predicted in results.questions.continued_by(appeared, least) {
        if waiting.iter().any(|other| other.predicted.asked.text == predicted.asked.text) {
            continue;
        }
        waiting.retain(|other| other.predicted.template != predicted.template);
        if waiting.len() < MAX_WAITING {
            waiting.push(Waiting::new(predicted));
        }
    }
}

/// Asks a question if its tables are there, have not changed for some looks, and no join waits to be computed: joins are
/// what it is made of. Gives it back to be asked again when they have changed.
async fn ask(
    engine: Engine,
    (joins, results): (&Arc<JoinCache>, &Arc<ResultCache>),
    mut question: Waiting,
) -> Option<Waiting> {
    if joins.is_busy() {
        return Some(question);
    }
    let versions = versions(joins, &question.predicted.tables).await;
    if !question.look(versions) {
        return Some(question);
    }
    let turn = joins.throttle.turn().await;
    let started = Instant::now();
    let (asked, largest) = (question.predicted.asked.clone(), results.largest);
    let limited = Arc::clone(joins);
    let asking = async move {
        let background = Background { environment: limited.environment(), rule: limited.throttle_rule() };
        let asking = AssertUnwindSafe(answer(engine, background, asked, largest)).catch_unwind();
        Box::pin(limited.throttle.within(limited.config.fill_timeout, asking)).await
    };
    let outcome = match joins.handoff.run(asking.boxed()).await {
        Some(Some(Ok(Ok(())))) => "asked",
        Some(Some(Ok(Err(error)))) => {
            tracing::debug!(%error, "a question that was predicted has no answer");
            "failed"
        }
        Some(Some(Err(_))) | None => "failed",
        Some(None) => "timeout",
    };
    drop(turn);
    metrics::counter!("bowshot_result_cache_forecasts_total", "outcome" => outcome).increment(1);
    if question.asked.is_none() {
        results.questions.asked_ahead(&question.predicted.template);
    }
    question.asked = Some(question.versions.clone());
    question.rests_until =
        started.elapsed().checked_mul(REST).and_then(|rest| Instant::now().checked_add(rest));
    (outcome == "asked").then_some(question)
}

/// What the tables of a question hold; `None` if one of them is not there yet, or may still change unnoticed.
async fn versions(joins: &JoinCache, tables: &[TableName]) -> Option<Vec<TableKey>> {
    let mut versions = Vec::with_capacity(tables.len());
    for table in tables {
        versions.push(keys::find(table, &joins.sources).await?.key);
    }
    Some(versions)
}

/// Runs a query to its end, if its result is small enough to be kept. Whether it is kept is the recording's affair.
async fn answer(engine: Engine, background: Background, asked: Asked, largest: u64) -> Result<()> {
    let session = engine.session_in_background(&asked.principal, asked.config.clone(), background);
    let pinned = session.pin();
    let plan = session.plan(&asked.text, &pinned).await?;
    if !matches!(plan.action(), Action::Query) {
        return Err(Error::internal("a question that was predicted is no query"));
    }
    let execution = session.execute(&plan, &[], Parallelism::Default, asked.layout).await?;
    drop(session);
    let mut rows = stream::select_all(execution.streams);
    let mut bytes = 0;
    while let Some(batch) = rows.next().await {
        if engine.is_last() {
            return Err(Error::internal("the engine has ended"));
        }
        bytes += batch_bytes(&batch?) as u64;
        if bytes > largest {
            return Err(Error::invalid("the result is too large to be kept"));
        }
    }
    Ok(())
}
