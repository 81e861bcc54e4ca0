//! Looks the joins of a plan up in the cache.

use super::block::{Block, Reader, Shaped};
use super::codes::grouped_by_codes;
use super::learner::Sighting;
use super::prefilter::parts;
use super::queue::Job;
use super::report::Report;
use super::substitute::{Found, Replacements, address, rebuilt};
use super::{JoinCache, log};
use crate::cache::{CachedJoin, JoinStore, Match, Order};
use crate::settings::{in_settings, joins_are_on, meaning};
use bowshot_engine::reuse::Purpose;
use bowshot_tables::Snapshot;
use chrono::{DateTime, Utc};
use datafusion::common::plan_datafusion_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use std::sync::Arc;
use std::time::Instant;

/// Most parts of a plan that are analysed as joins.
const MAX_ATTEMPTS: usize = 64;

/// Rank of a join for each request: before all predictions.
const ASKED_FOR: f64 = 1e15;

/// What the joins of a plan are known by, beside the plan.
#[derive(Debug)]
pub(super) struct View {
    catalog: String,
    schema: String,
    settings: String,
    /// The committed state of all tables.
    newest: Arc<Snapshot>,
    /// Whether the plan has run, or is about to.
    run: bool,
}

pub(super) struct Candidate<'a> {
    node: &'a LogicalPlan,
    block: Block,
    pub(super) shaped: Shaped,
    /// Whether only the first rows of it are wanted, so that all of them may be far more than anybody needs.
    pub(super) cut: bool,
}

struct Candidates<'a> {
    candidates: Vec<Candidate<'a>>,
    /// Whether there may be others.
    skipped: bool,
}

impl JoinCache {
    /// The optimised plan with cached joins in it. For EXPLAIN, the plan that is explained, with a line for each join.
    pub(crate) async fn substitute(
        self: &Arc<Self>,
        plan: LogicalPlan,
        state: &SessionState,
        purpose: Purpose,
    ) -> LogicalPlan {
        if !has_join(&plan) {
            return plan;
        }
        match plan {
            LogicalPlan::Explain(explain) if explain.logical_optimization_succeeded => {
                let mut report = Report::wanted();
                let inner = if joins_are_on(state) {
                    self.replaced(&explain.plan, state, Purpose::Show, &mut report).await
                } else {
                    report.off();
                    None
                };
                LogicalPlan::Explain(report.explain(explain, inner))
            }
            plan if joins_are_on(state) => {
                let started = Instant::now();
                let replaced = self.replaced(&plan, state, purpose, &mut Report::default()).await;
                // With `join_cache.wait`, this is also how long it was waited for joins.
                metrics::histogram!("bowshot_join_cache_lookup_seconds")
                    .record(started.elapsed().as_secs_f64());
                replaced.unwrap_or(plan)
            }
            plan => plan,
        }
    }

    async fn replaced(
        self: &Arc<Self>,
        plan: &LogicalPlan,
        state: &SessionState,
        purpose: Purpose,
        report: &mut Report,
    ) -> Option<LogicalPlan> {
        let view = self.view(state);
        // What a query may wait for has to be noted before.
        let later = !report.is_wanted() && self.config.wait.is_zero();
        let known = later.then_some(self.store.as_ref());
        let mut replacements = Replacements::new();
        let Candidates { candidates, mut skipped } = self.candidates(plan, &view, report, known);
        for candidate in candidates {
            let found = match self.find(&candidate) {
                None if purpose == Purpose::Run && !candidate.cut && !later => self.missed(&candidate).await,
                found => found,
            };
            let Some((join, how)) = found else {
                skipped = true;
                report.miss(&candidate.shaped, || self.why_not(&candidate));
                self.parts_of(&candidate, (&view, purpose), &mut replacements, report).await;
                continue;
            };
            let to = (&mut replacements, &mut *report);
            skipped |= !self.replace(&candidate, (&join, &how), purpose, to).await;
        }
        if skipped && later {
            self.learn_later(plan, view, purpose);
        }
        if replacements.is_empty() {
            return None;
        }
        let rebuilt = rebuilt(plan, &replacements).unwrap_or_else(|error| {
            log("substitute", &error);
            None
        })?;
        Some(grouped_by_codes(&rebuilt).unwrap_or_else(|error| {
            log("codes", &error);
            rebuilt
        }))
    }

    fn view(&self, state: &SessionState) -> View {
        let names = &state.config_options().catalog;
        View {
            catalog: names.default_catalog.clone(),
            schema: names.default_schema.clone(),
            settings: meaning(state),
            newest: self.sources.tables.snapshot(),
            run: false,
        }
    }

    /// Has the joins of a plan that are not there noted in the background; here and now when too many plans wait there.
    fn learn_later(&self, plan: &LogicalPlan, view: View, purpose: Purpose) {
        if purpose != Purpose::Run {
            return;
        }
        let sighting = Sighting { plan: plan.clone(), view: View { run: true, ..view }, at: Utc::now() };
        if let Err(sighting) = self.learner.push(sighting) {
            self.learn_from(&sighting);
        }
    }

    /// Notes the joins of a plan that ran.
    pub(super) fn learn_from(&self, sighting: &Sighting) {
        let found = self.candidates(&sighting.plan, &sighting.view, &mut Report::default(), None);
        for candidate in found.candidates {
            if !candidate.cut && self.find(&candidate).is_none() {
                self.note(&candidate, sighting.at);
            }
        }
    }

    /// The largest parts of a plan that join tables of known versions; with `known`, those only of whose tables that has
    /// joins, in whatever version.
    fn candidates<'a>(
        &self,
        plan: &'a LogicalPlan,
        view: &View,
        report: &mut Report,
        known: Option<&JoinStore>,
    ) -> Candidates<'a> {
        let defaults = (view.catalog.as_str(), view.schema.as_str());
        let reader = Reader::new(defaults, &view.newest, view.run);
        let (mut candidates, mut attempts, mut skipped, parts) = (Vec::new(), 0, false, parts(plan));
        // A stack of its own, since plans may be deep.
        let mut waiting = vec![(plan, false)];
        while let Some((node, cut)) = waiting.pop() {
            let of_known = match (parts.get(&address(node)), known) {
                (Some(tables), Some(known)) => known.has(*tables),
                (Some(_), None) => true,
                // Taking apart what cannot be a join is for those who want to know why it is none.
                (None, _) => report.is_wanted(),
            };
            skipped |= may_join(node) && !of_known && parts.contains_key(&address(node));
            if attempts < MAX_ATTEMPTS && may_join(node) && of_known {
                attempts += 1;
                let shaped = Block::of(node, &reader).and_then(|block| {
                    let shaped = block.shape(view.settings.clone())?;
                    Ok(Candidate { node, block, shaped, cut })
                });
                match shaped {
                    Ok(candidate) => {
                        candidates.push(candidate);
                        continue;
                    }
                    Err(reason) if matches!(node, LogicalPlan::Join(_)) => report.refused(reason),
                    Err(_) => {}
                }
            }
            let cut = match node {
                LogicalPlan::Limit(_) => true,
                LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Window(_) => false,
                _ => cut,
            };
            waiting.extend(node.inputs().into_iter().rev().map(|input| (input, cut)));
        }
        Candidates { candidates, skipped }
    }

    /// What would have to be computed for a plan.
    pub(super) fn orders(&self, plan: &LogicalPlan, state: &SessionState, now: DateTime<Utc>) -> Vec<Order> {
        let candidates = self.candidates(plan, &self.view(state), &mut Report::default(), None).candidates;
        let seen = candidates.iter().map(|it| self.history.see(&it.shaped.shape, &it.shaped.columns, now));
        seen.map(|seen| seen.order).collect()
    }

    fn find(&self, candidate: &Candidate<'_>) -> Option<(Arc<CachedJoin>, Match)> {
        let Shaped { shape, conditions, columns, .. } = &candidate.shaped;
        let found = self.store.find(shape, conditions, columns);
        found.filter(|(_, how)| may_be_applied(candidate, how))
    }

    /// Notes a join that is not there, and waits for it if it is being computed and that is configured.
    async fn missed(self: &Arc<Self>, candidate: &Candidate<'_>) -> Option<(Arc<CachedJoin>, Match)> {
        // Before it is ordered: from then on somebody may be at it.
        let urgent = (!self.config.wait.is_zero()).then(|| self.throttle.urgent());
        let order = self.note(candidate, Utc::now())?;
        urgent.as_ref()?;
        // Whether it has come to its end or not, what is there is there.
        let _ = tokio::time::timeout(self.config.wait, self.queue.wait(&order)).await;
        drop(urgent);
        self.find(candidate)
    }

    /// Notes a join that is not there; if it is worth computing, has that done and gives what was ordered.
    fn note(&self, candidate: &Candidate<'_>, at: DateTime<Utc>) -> Option<Order> {
        metrics::counter!("bowshot_join_cache_misses_total").increment(1);
        let seen = self.history.see(&candidate.shaped.shape, &candidate.shaped.columns, at);
        let order = seen.order;
        if seen.count < self.config.fill_after || self.watch.rests(&order, seen.unused) {
            return None;
        }
        let rank = seen.count as f64 * ASKED_FOR;
        self.queue.push(Job { order: order.clone(), rank, forecast: false });
        Some(order)
    }

    /// The smaller joins of a join that is not there.
    async fn parts_of(
        self: &Arc<Self>,
        candidate: &Candidate<'_>,
        (view, purpose): (&View, Purpose),
        replacements: &mut Replacements,
        report: &mut Report,
    ) {
        let mut waiting = below(candidate.node);
        while let Some(node) = waiting.pop() {
            if !has_join(node) {
                continue;
            }
            let parts = self.candidates(node, view, &mut Report::default(), Some(&self.store));
            for part in &parts.candidates {
                match self.find(part) {
                    Some((join, how)) => {
                        let to = (&mut *replacements, &mut *report);
                        self.replace(part, (&join, &how), purpose, to).await;
                    }
                    None => waiting.extend(below(part.node)),
                }
            }
        }
    }

    /// Has a cached join read in place of a node; false if its rows are lost, and with them the join.
    async fn replace(
        &self,
        candidate: &Candidate<'_>,
        (join, how): (&Arc<CachedJoin>, &Match),
        purpose: Purpose,
        (replacements, report): (&mut Replacements, &mut Report),
    ) -> bool {
        match self.read(candidate, join, how).await {
            Ok(Some(plan)) => {
                report.hit(&candidate.shaped, join);
                replacements.insert(address(candidate.node), plan);
                if purpose == Purpose::Run {
                    self.count_hit(candidate, join);
                } else if !report.is_wanted() {
                    self.history.read_ahead(&join.about.shape);
                }
            }
            Ok(None) => return false,
            Err(error) => log("substitute", &error),
        }
        true
    }

    /// The plan that reads a cached join in place of a node; `None` if its rows are lost, and with them the join.
    async fn read(
        &self,
        candidate: &Candidate<'_>,
        join: &Arc<CachedJoin>,
        how: &Match,
    ) -> Result<Option<LogicalPlan>, DataFusionError> {
        let rows = match join.loaded() {
            Some(rows) => rows.check().map(|()| rows),
            None => {
                let loading = Arc::clone(join);
                let loaded = tokio::task::spawn_blocking(move || loading.batches()).await;
                loaded.map_err(|error| plan_datafusion_err!("{error}"))?
            }
        };
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => {
                self.store.remove_broken(join.id, &error);
                return Ok(None);
            }
        };
        let Candidate { node, block, shaped, .. } = candidate;
        let options = in_settings(self.state.config_options(), &shaped.shape.settings);
        Found { block, shaped, join, how, rows, store: &self.store, options }.plan(node.schema()).map(Some)
    }

    fn count_hit(&self, candidate: &Candidate<'_>, join: &CachedJoin) {
        metrics::counter!("bowshot_join_cache_hits_total").increment(1);
        self.store.hit(join);
        self.history.see(&candidate.shaped.shape, &candidate.shaped.columns, Utc::now());
        self.history.used(&join.about.shape, true);
    }
}

/// Whether the conditions that are missing may be asked of all rows of a cached join: several at once only if none of them
/// fails for rows that another one takes out where the plan has them. Those that the join has can fail no more.
fn may_be_applied(candidate: &Candidate<'_>, how: &Match) -> bool {
    let conditions = candidate.block.conditions();
    how.missing.len() < 2 || how.missing.iter().all(|place| conditions.get(*place).is_some_and(cannot_fail))
}

/// Whether a condition gives a value for every row, also for those that another condition would have taken out before.
fn cannot_fail(condition: &Expr) -> bool {
    let fails = condition.exists(|expr| {
        Ok(match expr {
            Expr::BinaryExpr(binary) => {
                let logic = matches!(binary.op, Operator::And | Operator::Or);
                // A pattern that is not constant may be none.
                let pattern = is_regex(binary.op) && !matches!(binary.right.as_ref(), Expr::Literal(..));
                pattern || !(logic || binary.op.supports_propagation())
            }
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Like(_)
            | Expr::TryCast(_) => false,
            _ => true,
        })
    });
    fails.is_ok_and(|fails| !fails)
}

fn is_regex(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch
    )
}

/// The inputs of the join that a node is, or whose columns it picks: what is not there with fewer columns is not there
/// with more.
fn below(node: &LogicalPlan) -> Vec<&LogicalPlan> {
    match node {
        LogicalPlan::Projection(projection) => below(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input),
        other => other.inputs(),
    }
}

fn has_join(plan: &LogicalPlan) -> bool {
    // Cannot fail: the closure does not.
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(_)))).unwrap_or(false)
}

fn may_join(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Join(_) => true,
        LogicalPlan::Projection(projection) => may_join(&projection.input),
        LogicalPlan::Filter(filter) => may_join(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => may_join(&alias.input),
        _ => false,
    }
}
