//! A table of which a user sees a part: a leaf of the logical and of the physical plan, with the policies (filter) and the masks and
//! columns (projection) below it, without statistics and metrics. What a user writes runs on the rows that are left, except for
//! comparisons of unmasked columns with constants ([`cannot_fail`]), by which files and row groups are skipped: they have no
//! error and no effect, but what is skipped, and so the time, depends on hidden values too (`SECURITY.md`).

mod dialect;
pub(crate) mod mask;
mod scrub;
pub(crate) mod spelling;

use crate::error::classify;
use crate::plan::{self, row_expressions};
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind};
use bowshot_optimizer::cooperative;
use bowshot_policy::access::{Limits, unseen};
use bowshot_tables::EntryName;
use bowshot_types::layered_table::{LayeredTable, TableLayer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, Result, TableReference, internal_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlanBuilder, Operator, TableProviderFilterPushDown, TableSource, TableType,
    cast, ident, lit,
};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use dialect::in_policy_dialect;
use futures::StreamExt;
use mask::Mask;
use scrub::Scrub;
use spelling::{Names, SEVERAL, Spelling};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The part of a table that these limits leave. Columns of `kept` are passed on whatever the limits say.
///
/// # Errors
/// `Denied` for policies that do not fit the table any more.
pub(crate) fn guarded(
    name: &EntryName,
    raw: Arc<dyn TableProvider>,
    limits: &Limits,
    (state, kept, spelling): (&SessionState, Option<&str>, Spelling),
) -> Result<Arc<dyn TableProvider>> {
    let state = &in_policy_dialect(state);
    let schema = raw.schema();
    let names = Names::of(&schema, spelling);
    let limits = &names.limits(limits).map_err(|reason| broken(name, reason))?;
    let columns = DFSchema::try_from(Arc::clone(&schema))?;
    let policy = |error: DataFusionError| unplanned(name, &error);
    let filter = limits.filters.as_ref().map(|filters| condition(filters, &columns, state));
    let filter = filter.transpose().map_err(policy)?;
    let (mut outputs, mut fields, mut plain) = (Vec::new(), Vec::new(), BTreeSet::new());
    for field in schema.fields() {
        let column = field.name();
        let is_kept = kept == Some(column.as_str());
        if !is_kept && limits.columns.as_ref().is_some_and(|columns| !columns.contains(column)) {
            continue;
        }
        match limits.masks.get(column).filter(|_| !is_kept) {
            None => {
                plain.insert(column.clone());
                outputs.push(ident(column));
                fields.push(Arc::clone(field));
            }
            Some(mask) => {
                outputs.push(masked(mask, field, (&columns, &limits.salt), state).map_err(policy)?);
                fields.push(shown(field));
            }
        }
    }
    let mut of_rules = outputs.iter().filter(|output| matches!(output, Expr::Alias(_))).chain(&filter);
    if !of_rules.all(|expr| names.are_clear(expr)) {
        return Err(broken(name, SEVERAL));
    }
    if fields.is_empty() {
        return Err(DataFusionError::External(Box::new(unseen(name))));
    }
    let table = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let all = columns.fields().iter().map(|field| field.name().clone()).collect();
    let policy_holds = filter.as_ref().is_none_or(|filter| policy_holds(filter, &all));
    let name = name.clone();
    Ok(LayeredTable::wrap(Guarded { name, table, raw, schema, filter, outputs, plain, policy_holds }))
}

/// One of the conditions must hold; none of them, and nothing does.
fn condition(filters: &[String], columns: &DFSchema, state: &SessionState) -> Result<Expr> {
    let planned = filters.iter().map(|sql| plan::kept_expression(state, sql, columns));
    let all = planned.collect::<Result<Vec<_>>>()?.into_iter().reduce(Expr::or);
    Ok(all.unwrap_or_else(|| lit(false)))
}

/// The condition that rows must fulfil that somebody writes into a table.
///
/// # Errors
/// `Denied` for policies that do not fit the table any more.
pub(crate) fn plan_filter(
    name: &EntryName,
    filters: &[String],
    schema: &SchemaRef,
    state: &SessionState,
) -> Result<Arc<dyn PhysicalExpr>> {
    let state = &in_policy_dialect(state);
    let columns = DFSchema::try_from(Arc::clone(schema))?;
    let planned = condition(filters, &columns, state).and_then(|filter| {
        let planned = row_expressions::physical(state, filter, &columns)?;
        match planned.data_type(schema)? {
            DataType::Boolean => Ok(planned),
            other => Err(DataFusionError::Plan(format!("a policy is no condition but {other}"))),
        }
    });
    planned.map_err(|error| unplanned(name, &error))
}

fn unplanned(name: &EntryName, error: &DataFusionError) -> DataFusionError {
    tracing::warn!(table = %name, %error, "a policy cannot be planned");
    broken(name, "a policy cannot be planned")
}

fn masked(
    mask: &str,
    field: &Field,
    (columns, salt): (&DFSchema, &str),
    state: &SessionState,
) -> Result<Expr> {
    let sql = Mask::read(mask).and_then(|mask| mask.sql(field.name(), field.data_type(), salt));
    let sql = sql.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let value = plan::kept_expression(state, &sql, columns)?;
    Ok(cast(value, field.data_type().clone()).alias(field.name()))
}

/// A masked column: it may be null, and what is declared of its values need not hold.
fn shown(field: &Field) -> FieldRef {
    Arc::new(Field::new(field.name(), field.data_type().clone(), true))
}

/// Checks that policies fit a table, before they are kept.
///
/// # Errors
/// `Invalid` with what is wrong.
pub(crate) fn check(
    (column, using): (Option<&str>, &str),
    schema: &SchemaRef,
    state: &SessionState,
) -> bowshot_api::Result<()> {
    let state = &in_policy_dialect(state);
    let columns = DFSchema::try_from(Arc::clone(schema)).map_err(classify)?;
    let expr = match column {
        None => plan::kept_expression(state, using, &columns),
        Some(column) => {
            let field = schema.field_with_name(column).map_err(|_| {
                Error::not_found(format!("column `{column}` not found"))
                    .with_hint("a mask is for one column of its table")
            })?;
            masked(using, field, (&columns, ""), state)
        }
    };
    let expr = expr.map_err(classify)?;
    let over_rows = expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
                | Expr::Unnest(_)
        ))
    });
    if over_rows.map_err(classify)? || expr.is_volatile() {
        return Err(Error::unsupported("a row policy must be deterministic and use one row only").with_hint(
            "leave out subqueries, aggregates and random(); compare with `user_attribute('name')`",
        ));
    }
    let expr = match expr {
        Expr::Alias(alias) => *alias.expr,
        other => other,
    };
    let physical = state.create_physical_expr(expr, &columns).map_err(classify)?;
    match (column, physical.data_type(schema).map_err(classify)?) {
        (Some(_), _) | (None, DataType::Boolean) => Ok(()),
        (None, other) => {
            Err(Error::invalid(format!("a row policy must be a boolean condition, and this one is {other}")))
        }
    }
}

fn broken(name: &EntryName, reason: &str) -> DataFusionError {
    DataFusionError::External(Box::new(
        Error::new(ErrorKind::Denied, format!("`{name}` cannot be read: {reason}"))
            .with_hint("its owner can find the policy in `system.policies`, and drop or replace it"),
    ))
}

#[derive(Debug)]
struct Guarded {
    name: EntryName,
    table: TableReference,
    raw: Arc<dyn TableProvider>,
    schema: SchemaRef,
    filter: Option<Expr>,
    /// One for each column of the schema.
    outputs: Vec<Expr>,
    /// Columns that are shown as they are.
    plain: BTreeSet<String>,
    /// Whether the policy cannot fail. Of one that can, a user could tell by its errors which hidden rows a comparison leaves.
    policy_holds: bool,
}

impl Guarded {
    async fn inner(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        (filters, limit): (&[Expr], Option<usize>),
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = state.as_any().downcast_ref::<SessionState>() else {
            return internal_err!("a guarded table is scanned outside of a session");
        };
        let source = provider_as_source(Arc::clone(&self.raw));
        let mut plan = LogicalPlanBuilder::scan(self.table.clone(), source, None)?;
        if let Some(filter) = &self.filter {
            plan = plan.filter(filter.clone())?;
        }
        let passing = if self.policy_holds { filters } else { &[] };
        for filter in passing.iter().filter(|filter| cannot_fail(filter, &self.plain)) {
            plan = plan.filter(unqualified(filter.clone())?)?;
        }
        let wanted: Vec<Expr> = match projection {
            None => self.outputs.clone(),
            Some(places) => places.iter().filter_map(|place| self.outputs.get(*place)).cloned().collect(),
        };
        // A plan has a column, though nobody wants one.
        plan = if wanted.is_empty() { plan.project([lit(true)])? } else { plan.project(wanted)? };
        if let Some(limit) = limit.filter(|_| filters.is_empty()) {
            plan = plan.limit(0, Some(limit))?;
        }
        let physical = in_policy_dialect(state).create_physical_plan(&plan.build()?).await?;
        cooperative::ensure(physical)
    }

    /// Which columns of a scan are masked.
    fn masked(&self, projection: Option<&Vec<usize>>) -> Vec<bool> {
        let all = self.schema.fields().iter().map(|field| !self.plain.contains(field.name()));
        let all: Vec<bool> = all.collect();
        match projection {
            None => all,
            Some(places) => places.iter().filter_map(|place| all.get(*place)).copied().collect(),
        }
    }
}

#[async_trait]
impl TableProvider for Guarded {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.raw.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = self.inner(state, projection, (filters, limit)).await;
        let inner = inner.map_err(|error| told(error, &self.name))?;
        let schema = match projection {
            None => Arc::clone(&self.schema),
            Some(places) => Arc::new(self.schema.project(places)?),
        };
        let shown = Scrub { schema, masked: self.masked(projection), has_hidden_rows: self.filter.is_some() };
        Ok(GuardedScan::of(self.name.clone(), inner, shown))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported =
            filters.iter().map(|filter| match self.policy_holds && cannot_fail(filter, &self.plain) {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            });
        Ok(supported.collect())
    }
}

/// Whether a condition may run on rows that are hidden: comparisons of columns that are shown as they are with constants,
/// with AND and OR between them. Everything else may not, casts and functions among it.
fn cannot_fail(filter: &Expr, plain: &BTreeSet<String>) -> bool {
    let column = |expr: &Expr| matches!(expr, Expr::Column(column) if plain.contains(&column.name));
    let constant = |expr: &Expr| matches!(expr, Expr::Literal(..));
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            cannot_fail(left, plain) && cannot_fail(right, plain)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let compares = matches!(
                op,
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
            );
            compares && (column(left) && constant(right) || constant(left) && column(right))
        }
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => column(inner),
        Expr::Between(between) => column(&between.expr) && constant(&between.low) && constant(&between.high),
        Expr::InList(list) => column(&list.expr) && list.list.iter().all(constant),
        _ => false,
    }
}

/// Whether a policy cannot fail, whatever a row has in it: comparisons, of columns and of what is known of the user.
fn policy_holds(filter: &Expr, columns: &BTreeSet<String>) -> bool {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            policy_holds(left, columns) && policy_holds(right, columns)
        }
        Expr::Literal(..) => true,
        other if is_of_user(other) => true,
        other => {
            let known = |part: Expr| match is_of_user(&part) {
                true => Ok(Transformed::yes(lit(""))),
                false => Ok(Transformed::no(part)),
            };
            other.clone().transform(known).is_ok_and(|known| cannot_fail(&known.data, columns))
        }
    }
}

/// What policies ask about who asks, of a name that they say.
fn is_of_user(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => {
            matches!(call.func.name(), "user_attribute" | "has_role" | "current_user")
                && call.args.iter().all(|argument| matches!(argument, Expr::Literal(..)))
        }
        _ => false,
    }
}

/// The same over the columns of the table, whatever the statement calls it.
fn unqualified(expr: Expr) -> Result<Expr> {
    expr.transform(|part| match part {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// An error from behind the guard as it may be told: one of a policy may have values of hidden rows in it.
fn told(error: DataFusionError, name: &EntryName) -> DataFusionError {
    let classified = classify(error);
    match classified.kind() {
        ErrorKind::Cancelled
        | ErrorKind::Timeout
        | ErrorKind::LimitReached
        | ErrorKind::Unavailable
        | ErrorKind::Conflict
        | ErrorKind::Corrupt
        | ErrorKind::Denied
        | ErrorKind::Unauthenticated => DataFusionError::External(Box::new(classified)),
        _ => {
            tracing::debug!(table = %name, error = %classified, "a policy has failed");
            broken(name, "a policy failed on a row of the table")
        }
    }
}

/// The physical scan of a table with policies, masks or column rights.
#[derive(Debug)]
struct GuardedScan {
    name: EntryName,
    inner: Arc<dyn ExecutionPlan>,
    shown: Arc<Scrub>,
    properties: Arc<PlanProperties>,
}

impl GuardedScan {
    fn of(name: EntryName, inner: Arc<dyn ExecutionPlan>, shown: Scrub) -> Arc<dyn ExecutionPlan> {
        let below = inner.properties();
        let schema = &shown.schema;
        // Neither order nor distribution of what is hidden below.
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(schema)),
            Partitioning::UnknownPartitioning(below.partitioning.partition_count()),
            below.emission_type,
            below.boundedness,
        ));
        Arc::new(Self { name, inner, shown: Arc::new(shown), properties })
    }
}

/// Whether somebody sees a part of a table alone.
pub(crate) fn is_guarded(source: &Arc<dyn TableSource>) -> bool {
    source_as_provider(source).is_ok_and(|table| LayeredTable::layer::<Guarded>(table.as_ref()).is_some())
}

/// The table behind a guard, for who reads none of its rows.
pub(crate) fn unguarded(table: &dyn TableProvider) -> &dyn TableProvider {
    LayeredTable::layer::<Guarded>(table).map_or(table, |guard| guard.raw.as_ref())
}

impl TableLayer for Guarded {
    fn below(&self, column: &str) -> Option<&dyn TableProvider> {
        self.plain.contains(column).then_some(self.raw.as_ref())
    }
}

/// The plan behind a guard, for who must look at the files that rows may be views of.
pub(crate) fn inside(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    plan.downcast_ref::<GuardedScan>().map(|guard| &guard.inner)
}

impl DisplayAs for GuardedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: table={}", ExecutionPlan::name(self), self.name)
    }
}

impl ExecutionPlan for GuardedScan {
    fn name(&self) -> &'static str {
        "GuardedScan"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a guarded table is a leaf") }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inner = self.inner.execute(partition, context).map_err(|error| told(error, &self.name))?;
        let (shown, name) = (Arc::clone(&self.shown), self.name.clone());
        let batches = inner.map(move |batch| match batch {
            Ok(batch) => shown.of(&batch),
            Err(error) => Err(told(error, &name)),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.shown.schema), batches)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, in_list};

    #[test]
    fn only_what_cannot_fail_passes_the_guard() {
        let plain = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let passes = |expr: Expr| cannot_fail(&expr, &plain);
        assert!(passes(col("a").eq(lit(1))));
        assert!(passes(col("t.a").lt(lit(1)).and(lit("x").gt_eq(col("b")).or(col("b").is_null()))));
        assert!(passes(col("a").between(lit(1), lit(2))));
        assert!(passes(in_list(col("a"), vec![lit(1), lit(2)], true)));
        for expr in [
            col("masked").eq(lit(1)),
            (lit(1) / col("a")).eq(lit(1)),
            cast(col("b"), DataType::Int64).eq(lit(1)),
            col("a").eq(col("b")),
            col("a").eq(lit(1)).and(cast(col("b"), DataType::Int64).eq(lit(1))),
            col("b").like(lit("x%")),
            Expr::Not(Box::new(col("a").eq(lit(1)))),
            in_list(col("a"), vec![lit(1) / lit(0)], false),
            lit(true),
        ] {
            assert!(!passes(expr.clone()), "{expr}");
        }
    }
}
