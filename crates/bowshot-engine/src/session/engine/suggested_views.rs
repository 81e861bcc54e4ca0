//! Which materialized views would answer the queries of the log. Nothing of it is on the way of a query: their texts are planned again
//! in the background, with the rights of the server, and only texts and sizes are kept of them.

use super::Engine;
use super::server_session::server_session;
use crate::authorize::{Action, AuthorizedPlan};
use crate::catalog::materialized_query;
use crate::execute::{Execution, Parallelism};
use crate::materialized::block::Block;
use crate::materialized::rewrite::{View, rewritten};
use crate::materialized::suggest::{Draft, Grouping, drafts, with_any_parameters};
use crate::plan;
use crate::session::EngineSession;
use crate::write::Write;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_api::{Layout, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::DialectName;
use bowshot_sql::rewrite::Source;
use bowshot_tables::{EntryName, Table};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Texts that are looked at, those that took the longest time.
const MAX_TEXTS: usize = 500;
/// Drafts that are planned, and kinds of queries that each is tried with.
const MAX_DRAFTS: usize = 20;
const MAX_KINDS: usize = 8;
/// Views that are suggested.
const MAX_VIEWS: usize = 20;
/// How often, and for how long in all, queries must have run.
const FEWEST_RUNS: u64 = 3;
const LEAST_TIME: Duration = Duration::from_millis(50);
/// Rows of the tables from which the rows of a view are estimated.
const SAMPLE_ROWS: u64 = 100_000;
/// A view with more rows than this part of its tables saves too little.
const LARGEST_PART: f64 = 0.25;
/// Bytes of a value whose type does not say it.
const TEXT_BYTES: usize = 24;

/// The text of a query, and what its names and its words mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueryText {
    /// Without secrets.
    pub sql: String,
    /// Catalog of names that do not say theirs.
    pub catalog: String,
    /// Schema of names that do not say theirs.
    pub schema: String,
    /// What it is written in.
    pub dialect: DialectName,
}

/// A query of the log.
#[derive(Debug, Clone)]
pub struct LoggedQuery {
    /// Its text.
    pub text: QueryText,
    /// The tables that it has read, as its log has them.
    pub tables: Vec<String>,
    /// How often it has run.
    pub runs: u64,
    /// How long all runs took together.
    pub took: Duration,
}

/// A materialized view that would answer queries.
#[derive(Debug, Clone)]
pub struct SuggestedView {
    /// Its query.
    pub definition: String,
    /// What the query is written in: the view answers sessions of this dialect.
    pub dialect: DialectName,
    /// The tables that it reads.
    pub tables: Vec<String>,
    /// Runs of queries of the log that it would have answered.
    pub queries: u64,
    /// How long these took.
    pub took: Duration,
    /// Its estimated rows.
    pub rows: u64,
    /// The estimated bytes of these.
    pub bytes: u64,
    /// What of the time it would have saved, as estimated by the rows that are read.
    pub saving: Duration,
}

/// A draft that was planned, with the numbers of the queries that it answers.
struct Proved {
    view: SuggestedView,
    queries: BTreeSet<usize>,
}

/// Looks for views from time to time, and remembers what it has found of texts.
#[derive(Debug, Default)]
pub struct ViewSuggester {
    groupings: HashMap<QueryText, Arc<Vec<Grouping>>>,
    /// Estimated rows by the text of a view and the magnitude of its tables.
    rows: HashMap<(String, u32), u64>,
}

impl ViewSuggester {
    /// The views that would save most. To be called on the query runtime.
    pub fn suggest<'a>(
        &'a mut self,
        engine: &'a Engine,
        mut queries: Vec<LoggedQuery>,
    ) -> BoxFuture<'a, Vec<SuggestedView>> {
        async move {
            // Whoever decides on statements beside the rules was not asked about these.
            if engine.shared.scratch || engine.shared.decider().is_some() {
                return Vec::new();
            }
            queries.sort_by_key(|query| Reverse(query.took));
            queries.truncate(MAX_TEXTS);
            let texts: HashSet<&QueryText> = queries.iter().map(|query| &query.text).collect();
            self.groupings.retain(|text, _| texts.contains(text));
            let snapshot = engine.shared.parts.tables.snapshot();
            let pinned = Pinned::new(snapshot, Arc::clone(&engine.shared.parts.nothing));
            let mut found = Vec::new();
            for (at, query) in queries.iter().enumerate() {
                let groupings = Box::pin(self.groupings(engine, query, &pinned)).await;
                found.extend(groupings.iter().map(|grouping| (at, query.text.dialect, grouping.clone())));
            }
            let mut drafts: Vec<(Duration, Draft)> = drafts(&found)
                .into_iter()
                .map(|draft| (totals(&draft.queries(), &queries).1, draft))
                .collect();
            drafts.sort_by_key(|(took, _)| Reverse(*took));
            drafts.truncate(MAX_DRAFTS);
            let (mut proved, mut estimated) = (Vec::new(), HashMap::new());
            for (_, draft) in drafts {
                if is_worth_it(totals(&draft.queries(), &queries)) {
                    let proof = self.proved(engine, (&draft, &queries), &pinned, &mut estimated);
                    proved.extend(Box::pin(proof).await);
                }
            }
            self.rows = estimated;
            chosen(proved, &queries)
        }
        .boxed()
    }

    /// What a query groups; nothing of one that cannot be planned any more, or reads other tables now.
    async fn groupings(
        &mut self,
        engine: &Engine,
        query: &LoggedQuery,
        pinned: &Pinned,
    ) -> Arc<Vec<Grouping>> {
        if let Some(known) = self.groupings.get(&query.text) {
            return Arc::clone(known);
        }
        let planned = engine.plan_logged(query, pinned).await;
        let found = Arc::new(planned.map_or_else(Vec::new, |(_, plan)| Grouping::all(&plan)));
        self.groupings.insert(query.text.clone(), Arc::clone(&found));
        found
    }

    /// A draft with what it answers, unless that is too little.
    async fn proved(
        &self,
        engine: &Engine,
        (draft, queries): (&Draft, &[LoggedQuery]),
        pinned: &Pinned,
        estimated: &mut HashMap<(String, u32), u64>,
    ) -> Option<Proved> {
        let shared = pinned.shared();
        let names: BTreeMap<Uuid, EntryName> =
            shared.tables().map(|(name, table)| (table.id(), name)).collect();
        let read = draft.grouping.tables.iter().filter_map(|id| shared.table(*id));
        let all_rows = read.map(|table| table.rows()).max().filter(|rows| *rows > 0)?;
        let definition = draft.text(&names)?;
        let view = engine.imagined((&definition, draft.dialect), pinned).await?;
        let mut answered = BTreeSet::new();
        for alike in draft.alike.iter().take(MAX_KINDS) {
            if engine.would_answer(queries.get(*alike.first()?)?, &view, pinned).await {
                answered.extend(alike);
            }
        }
        let (runs, took) = totals(&answered, queries);
        if !is_worth_it((runs, took)) {
            return None;
        }
        let key = (definition.clone(), all_rows.ilog2());
        let rows = match self.rows.get(&key) {
            Some(known) => *known,
            None => engine.estimated_rows((draft, &names), all_rows, pinned).await?,
        };
        estimated.insert(key, rows);
        let part = rows as f64 / all_rows as f64;
        if part > LARGEST_PART {
            return None;
        }
        let width = row_bytes(&view.table);
        let tables = draft.grouping.tables.iter().filter_map(|id| names.get(id)).map(ToString::to_string);
        let view = SuggestedView {
            definition,
            dialect: draft.dialect,
            tables: tables.collect(),
            queries: runs,
            took,
            rows,
            bytes: rows.saturating_mul(width),
            saving: took.mul_f64(1.0 - part),
        };
        Some(Proved { view, queries: answered })
    }
}

/// How often some queries have run, and for how long.
fn totals(which: &BTreeSet<usize>, queries: &[LoggedQuery]) -> (u64, Duration) {
    let queries = which.iter().filter_map(|at| queries.get(*at));
    queries.fold((0, Duration::ZERO), |(runs, took), query| (runs + query.runs, took + query.took))
}

fn is_worth_it((runs, took): (u64, Duration)) -> bool {
    runs >= FEWEST_RUNS && took >= LEAST_TIME
}

/// The views that save most, one after the other, each with what is left of the queries.
fn chosen(mut proved: Vec<Proved>, queries: &[LoggedQuery]) -> Vec<SuggestedView> {
    let mut chosen = Vec::new();
    while chosen.len() < MAX_VIEWS {
        proved.retain(|proved| is_worth_it(totals(&proved.queries, queries)));
        proved.sort_by_key(|proved| proved.view.saving);
        let Some(Proved { view, queries: answered }) = proved.pop() else { break };
        for other in &mut proved {
            other.queries.retain(|query| !answered.contains(query));
            let (runs, took) = totals(&other.queries, queries);
            let part = took.as_secs_f64() / other.view.took.as_secs_f64().max(f64::MIN_POSITIVE);
            (other.view.queries, other.view.took) = (runs, took);
            other.view.saving = other.view.saving.mul_f64(part.min(1.0));
        }
        chosen.push(view);
    }
    chosen
}

/// Bytes of a row, about.
fn row_bytes(table: &Table) -> u64 {
    let schema = table.schema();
    let widths =
        schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(TEXT_BYTES));
    widths.sum::<usize>() as u64
}

impl Engine {
    /// A query of the log as it would be planned now, if it still reads the same.
    async fn plan_logged(
        &self,
        query: &LoggedQuery,
        pinned: &Pinned,
    ) -> Option<(EngineSession, LogicalPlan)> {
        let QueryText { sql, catalog, schema, dialect } = &query.text;
        let session = server_session(self, *dialect, (catalog, schema)).ok()?;
        let plan = planned(&session, sql, pinned).await.ok()?;
        let tables = plan.tables();
        let is_same = matches!(plan.action(), Action::Query)
            && tables.iter().map(|(name, _)| name).eq(query.tables.iter());
        let plan = with_any_parameters(plan.planned().plan().clone()).ok().filter(|_| is_same)?;
        Some((session, plan))
    }

    /// The view that a text would make now, without rows.
    async fn imagined(&self, (text, dialect): (&str, DialectName), pinned: &Pinned) -> Option<View> {
        let session = server_session(self, dialect, (DEFAULT_CATALOG, DEFAULT_SCHEMA)).ok()?;
        let sql = format!("CREATE MATERIALIZED VIEW {DEFAULT_CATALOG}.{DEFAULT_SCHEMA}.suggested AS {text}");
        let plan = planned(&session, &sql, pinned).await.ok()?;
        let Action::Write(change) = plan.action() else { return None };
        let Write::CreateAs(new) = change.write.as_ref() else { return None };
        let view = new.definition.materialized.as_ref().filter(|view| !view.sources.is_empty())?;
        let query = Box::pin(materialized_query::query(view, &session.visible(pinned))).await.ok()?;
        let (block, table) = (Arc::new(Block::read(&query)?), Arc::new(Table::new(new.definition.clone())));
        Some(View { name: new.name.clone(), table, block })
    }

    /// Whether a view answers a query that none of those that are there answers.
    async fn would_answer(&self, query: &LoggedQuery, view: &View, pinned: &Pinned) -> bool {
        let Some((session, plan)) = self.plan_logged(query, pinned).await else { return false };
        let state = session.state(pinned);
        if Box::pin(session.read_from_views(&plan, pinned, &state)).await.is_some() {
            return false;
        }
        let view =
            View { name: view.name.clone(), table: Arc::clone(&view.table), block: Arc::clone(&view.block) };
        matches!(rewritten(&plan, &[view], Duration::ZERO, &state), Ok(Some(_)))
    }

    /// The rows of a view, estimated from the first ones of its tables: groups that were seen once stand for as many more as there
    /// are rows (the estimator GEE of Charikar and others).
    async fn estimated_rows(
        &self,
        (draft, names): (&Draft, &BTreeMap<Uuid, EntryName>),
        all_rows: u64,
        pinned: &Pinned,
    ) -> Option<u64> {
        let session = server_session(self, draft.dialect, (DEFAULT_CATALOG, DEFAULT_SCHEMA)).ok()?;
        let sql = draft.sample_text(names, SAMPLE_ROWS)?;
        let plan = planned(&session, &sql, pinned).await.ok()?;
        let run = Box::pin(session.execute(&plan, &[], Parallelism::Default, Layout::default())).await;
        let [groups, single, rows] = first_row(run.ok()?).await?;
        if rows < SAMPLE_ROWS as f64 {
            return Some(groups as u64);
        }
        let more = (all_rows as f64 / rows).max(1.0).sqrt();
        let estimated = (groups - single) + single * more;
        Some((estimated as u64).min(all_rows))
    }

    /// The bytes of all rows of a view, which are counted: the first rows of a table are often alike, and tell little of the others.
    pub(super) async fn counted_bytes(&self, session: &EngineSession, view: &SuggestedView) -> Option<u64> {
        let sql = format!("SELECT count(*) AS a, 0 AS b, 0 AS c FROM ({}) AS counted", view.definition);
        let plan = planned(session, &sql, &session.pin()).await.ok()?;
        let run = Box::pin(session.execute(&plan, &[], Parallelism::Default, Layout::default())).await;
        let [rows, ..] = first_row(run.ok()?).await?;
        Some((rows as u64).saturating_mul((view.bytes / view.rows.max(1)).max(TEXT_BYTES as u64)))
    }
}

/// Three numbers of the one row of a result.
async fn first_row(run: Execution) -> Option<[f64; 3]> {
    for mut stream in run.streams {
        while let Some(batch) = stream.next().await {
            let batch: RecordBatch = batch.ok()?;
            if batch.num_rows() > 0 {
                return Some([number(&batch, 0)?, number(&batch, 1)?, number(&batch, 2)?]);
            }
        }
    }
    None
}

fn number(batch: &RecordBatch, column: usize) -> Option<f64> {
    let values = cast(batch.columns().get(column)?, &DataType::Float64).ok()?;
    values.as_primitive_opt::<Float64Type>()?.iter().next().map(Option::unwrap_or_default)
}

/// Plans a statement without keeping its plan.
async fn planned(session: &EngineSession, sql: &str, pinned: &Pinned) -> Result<AuthorizedPlan> {
    let options = session.options();
    let source = Source { text: sql, dialect: plan::dialect(&options).name() };
    session.plan_parsed(plan::parse(&options, sql)?, pinned, source).await
}
