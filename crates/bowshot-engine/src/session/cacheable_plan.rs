//! Decides which optimized plans may run again, also with other parameters. Every node must be on the list: scans of tables of this
//! server, and functions that depend on their arguments only.

use super::EngineSession;
use super::plan_binding::{on_tables, tables_of, without_rows};
use crate::authorize::optimized_slot::{NextRun, Optimized, OptimizedFor};
use crate::authorize::{Action, AuthorizedPlan};
use crate::catalog::defaults::without_defaults;
use crate::error::classify;
use crate::plan;
use crate::reuse::SessionCache;
use bowshot_api::{Layout, Result};
use bowshot_sql::DialectName;
use bowshot_tables::{Table, has_plain_equality};
use bowshot_types::result_metadata::result_schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Signature, Volatility,
};
use std::sync::Arc;

/// A query that is about to run: its plan with the values of its parameters, and these values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) state: &'a SessionState,
    pub(super) plan: &'a LogicalPlan,
    pub(super) values: Option<&'a ParamValues>,
    pub(super) layout: Layout,
}

/// Whether the session uses plans again.
pub(super) fn reuses_plans(options: &ConfigOptions) -> bool {
    options.extensions.get::<SessionCache>().is_some_and(|session| session.plans)
}

impl EngineSession {
    /// The optimized plan of a query and the schema of its rows, of an earlier run if there was one.
    ///
    /// # Errors
    /// From optimizing.
    pub(super) fn optimized(
        &self,
        authorized: &AuthorizedPlan,
        bound: Bound<'_>,
    ) -> Result<(LogicalPlan, SchemaRef)> {
        let _span = tracing::info_span!(target: bowshot_api::TRACES, "optimise").entered();
        if let Some(found) = self.optimized_before(authorized, bound) {
            return Ok(found);
        }
        let optimized = bound.state.optimize(bound.plan).map_err(classify)?;
        Ok((optimized, result_schema(bound.state, bound.plan, bound.layout)))
    }

    pub(super) fn made_for(&self, Bound { state, layout, .. }: Bound<'_>) -> OptimizedFor {
        OptimizedFor { options: self.options(), partitions: state.config().target_partitions(), layout }
    }

    /// The schema of the rows of an earlier run with these settings.
    pub(super) fn schema_of_run(&self, authorized: &AuthorizedPlan, layout: Layout) -> Option<SchemaRef> {
        let NextRun::Reuses(optimized) = authorized.optimized().get() else { return None };
        let OptimizedFor { options, layout: made_for, .. } = &optimized.made_for;
        let is_same = *made_for == layout && Arc::ptr_eq(options, &self.options());
        is_same.then(|| SchemaRef::clone(&optimized.schema))
    }

    /// `None` for a plan that is optimized anew each time, and where something is wrong, which that tells.
    fn optimized_before(
        &self,
        authorized: &AuthorizedPlan,
        bound: Bound<'_>,
    ) -> Option<(LogicalPlan, SchemaRef)> {
        let made_for = self.made_for(bound);
        let is_on = reuses_plans(&made_for.options) && !self.scratch && !self.distribution().is_active();
        if !is_on || !matches!(authorized.action(), Action::Query) {
            return None;
        }
        let template = authorized.planned().plan();
        if let Some(values) = bound.values
            && !have_types_of(values, template)
        {
            return None;
        }
        let optimized = match authorized.optimized().get() {
            NextRun::Anew => return None,
            NextRun::Reuses(optimized) if optimized.made_for == made_for => optimized,
            NextRun::Reuses(_) | NextRun::Unknown => {
                let made = optimize(template, bound, made_for).map(Arc::new);
                let next = made.as_ref().map_or(NextRun::Anew, |made| NextRun::Reuses(Arc::clone(made)));
                authorized.optimized().put(next);
                made?
            }
        };
        let plan = on_tables(&optimized.plan, &tables_of(template)?)?;
        let plan = match bound.values {
            None => plan,
            Some(values) => plan.with_param_values(values.clone()).ok()?,
        };
        Some((plan, SchemaRef::clone(&optimized.schema)))
    }
}

/// Optimizes a plan for several runs, if it may be used for these.
fn optimize(template: &LogicalPlan, bound: Bound<'_>, made_for: OptimizedFor) -> Option<Optimized> {
    let is_mysql = plan::dialect(&made_for.options).name() == DialectName::MySql;
    let may_have_values = || bound.values.is_none() || has_plain_parameters(template, is_mysql);
    // A table in two states would be put on one of them.
    if !is_repeatable(template) || tables_of(template).is_none() || !may_have_values() {
        return None;
    }
    let plan = bound.state.optimize(template).ok()?;
    let has_values = bound.values.is_some();
    let mut is_plain = true;
    let walked = plan.apply_with_subqueries(|node| {
        // Nodes of our own may hold what one run has computed, and values of a list would get other types.
        is_plain = match node {
            LogicalPlan::Extension(_) => false,
            LogicalPlan::Values(_) => !has_values,
            _ => true,
        };
        Ok(if is_plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    if walked.is_err() || !is_plain {
        return None;
    }
    // No rule looks at rows or statistics. Where rows are kept decides which conditions a scan gets too, and changes no answer.
    let plan = on_tables(&plan, &without_rows(&tables_of(&plan)?))?;
    // The values are in conditions alone: the schema is that of all others.
    let schema = result_schema(bound.state, bound.plan, bound.layout);
    Some(Optimized { made_for, plan, schema })
}

/// Whether a plan gives the same rows each time that it runs over the same tables: nothing that is settled when it is planned or
/// optimized is of one run alone.
pub(super) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut is_repeatable = true;
    let walked = plan.apply_with_subqueries(|node| {
        is_repeatable = is_known(node) && has_immutable_functions(node)?;
        Ok(if is_repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && is_repeatable
}

fn is_known(node: &LogicalPlan) -> bool {
    match node {
        // Behind a row policy or a mask, and for files and system tables, there is another source.
        LogicalPlan::TableScan(scan) => source_as_provider(&scan.source)
            .is_ok_and(|provider| Table::of_provider(without_defaults(provider.as_ref())).is_some()),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Distinct(_) => true,
        _ => false,
    }
}

fn has_immutable_functions(node: &LogicalPlan) -> DataFusionResult<bool> {
    let mut is_immutable = true;
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            is_immutable = !may_change(part);
            Ok(if is_immutable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })
    })?;
    Ok(is_immutable)
}

/// Whether an expression may have another value in another run, as `now()`, `current_user` and `random()` do.
fn may_change(expr: &Expr) -> bool {
    let changes = |signature: &Signature| signature.volatility != Volatility::Immutable;
    match expr {
        Expr::ScalarFunction(call) => changes(call.func.signature()),
        Expr::AggregateFunction(call) => changes(call.func.signature()),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => changes(function.signature()),
            WindowFunctionDefinition::WindowUDF(function) => changes(function.signature()),
        },
        Expr::HigherOrderFunction(_) | Expr::ScalarVariable(..) => true,
        _ => false,
    }
}

/// Whether parameters are compared with something of their own type in conditions, and are nowhere else: then the plan with a
/// value is the optimized plan with the value in it. One of LIMIT, of a function or of a column makes another plan.
fn has_plain_parameters(plan: &LogicalPlan, is_mysql: bool) -> bool {
    let (mut all, mut plain) = (0_usize, 0_usize);
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                all += usize::from(matches!(part, Expr::Placeholder(_)));
                if let (Expr::BinaryExpr(comparison), LogicalPlan::Filter(filter)) = (part, node) {
                    plain += usize::from(is_plain_comparison(comparison, filter, is_mysql));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.is_ok() && all == plain
}

/// Whether one side is a parameter and the other one a value of its type, whose comparison is that of bytes.
fn is_plain_comparison(comparison: &BinaryExpr, filter: &Filter, is_mysql: bool) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let BinaryExpr { left, op, right } = comparison;
    let (parameter, other) = match (left.as_ref(), right.as_ref()) {
        (Expr::Placeholder(_), Expr::Placeholder(_)) => return false,
        (Expr::Placeholder(parameter), other) | (other, Expr::Placeholder(parameter)) => (parameter, other),
        _ => return false,
    };
    let Some(field) = &parameter.field else { return false };
    let Ok((_, compared)) = other.to_field(filter.input.schema().as_ref()) else { return false };
    let data_type = compared.data_type();
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
        && field.data_type() == data_type
        && compared.metadata().is_empty()
        && has_plain_equality(data_type)
        && !(is_mysql && data_type.is_string())
}

/// Whether each parameter has a value, which is of its type.
pub(super) fn have_types_of(values: &ParamValues, plan: &LogicalPlan) -> bool {
    let Ok(fields) = plan.get_parameter_fields() else { return false };
    fields.iter().all(|(name, field)| {
        let value = values.get_placeholders_with_values(name).map(|given| given.value);
        let field = field.as_ref();
        value.is_ok_and(|value| {
            !value.is_null() && field.is_some_and(|field| *field.data_type() == value.data_type())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::{Parallelism, merged};
    use crate::reuse::SESSION_PLANS;
    use crate::session::key_lookup::tests::{engine, planned};
    use bowshot_api::Principal;
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::common::ScalarValue;
    use futures::TryStreamExt;

    #[test]
    fn only_plans_that_mean_the_same_each_time_are_repeatable() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for (sql, expected) in [
                ("SELECT 1", true),
                ("SELECT word FROM t WHERE id > 7 ORDER BY word LIMIT 3", true),
                ("SELECT count(*) FROM t AS a JOIN t AS b USING (id)", true),
                ("SELECT now()", false),
                ("SELECT current_user", false),
                ("SELECT id FROM t WHERE random() > 0.5", false),
                ("SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE random() > 0.5)", false),
                ("SELECT * FROM generate_series(1, 3)", false),
                ("SELECT table_name FROM information_schema.tables", false),
                ("EXPLAIN SELECT 1", false),
            ] {
                let plan = planned(&session, sql).await;
                assert_eq!(is_repeatable(plan.planned().plan()), expected, "{sql}");
            }
        });
    }

    #[test]
    fn parameters_that_make_another_plan_are_not_plain() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for (sql, expected) in [
                ("SELECT word FROM t WHERE id > $1", true),
                ("SELECT word FROM t WHERE $1 >= id AND word <> $2", true),
                ("SELECT word FROM t WHERE id > $1 LIMIT $2", false),
                ("SELECT word FROM t WHERE id = $1 + 1", false),
                ("SELECT word FROM t WHERE upper(word) LIKE $1", false),
                ("SELECT id + $1 FROM t", false),
            ] {
                let plan = planned(&session, sql).await;
                assert_eq!(has_plain_parameters(plan.planned().plan(), false), expected, "{sql}");
            }
            let plan = planned(&session, "SELECT word FROM t WHERE word <> $1").await;
            assert!(!has_plain_parameters(plan.planned().plan(), true), "texts of MySQL have other equals");
        });
    }

    async fn answer(session: &EngineSession, plan: &AuthorizedPlan, value: &ScalarValue) -> String {
        let bound = RecordBatch::try_from_iter([("$1", value.to_array().unwrap())]).unwrap();
        let execution =
            session.execute(plan, &[bound], Parallelism::Default, Layout::default()).await.unwrap();
        let rows: Vec<RecordBatch> = merged(execution.streams).try_collect().await.unwrap();
        pretty_format_batches(&rows).unwrap().to_string()
    }

    #[test]
    fn values_that_are_put_into_an_optimized_plan_give_the_same_rows() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let ordinary = engine.open_session(&Principal::anonymous()).unwrap();
            ordinary.set_config(SESSION_PLANS, "false").unwrap();
            for (sql, is_reused) in [
                ("SELECT id, word FROM t WHERE id < $1 ORDER BY id", true),
                ("SELECT count(*) AS n, max(word) AS m FROM t WHERE id >= $1 AND id <> 990", true),
                ("SELECT count(*) AS n FROM t AS a JOIN t AS b USING (id) WHERE a.id > $1", true),
                ("SELECT id FROM t WHERE id < 9 ORDER BY id LIMIT $1", false),
            ] {
                let (plan, other) = (planned(&session, sql).await, planned(&ordinary, sql).await);
                for value in [
                    ScalarValue::from(3_i32),
                    ScalarValue::from(5_i64),
                    ScalarValue::Int32(None),
                    ScalarValue::from(8_i32),
                ] {
                    let expected = answer(&ordinary, &other, &value).await;
                    assert_eq!(answer(&session, &plan, &value).await, expected, "{sql} {value}");
                }
                assert_eq!(matches!(plan.optimized().get(), NextRun::Reuses(_)), is_reused, "{sql}");
                assert!(matches!(other.optimized().get(), NextRun::Unknown), "{sql}");
            }
        });
    }
}
