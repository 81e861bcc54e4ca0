//! The dependent join: a plan once for each combination of the values that it takes from outside. They are pushed down to where the
//! plan uses them; every node passes their columns on, beside its own, under the same names.

use super::correlation_values::Domain;
use super::limits::{self, Ordered};
use super::{Names, joins, plans, recursions};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result, not_impl_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::utils::enumerate_grouping_sets;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, EmptyRelation, Expr, GroupingSet, JoinType, Limit, LogicalPlan,
    Operator, Sort, SubqueryAlias, Union, Unnest, Values, Window, binary_expr, cast, lit,
};
use std::sync::Arc;

/// The rows of a plan for each combination of the values.
pub(super) struct Dependent<'a> {
    pub(super) domain: &'a Domain,
    pub(super) names: &'a Names,
}

impl Dependent<'_> {
    pub(super) fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if !self.domain.in_plan(&plan)? {
            return self.beside(plan);
        }
        match plan {
            LogicalPlan::Filter(node) => {
                let predicate = self.domain.bound(node.predicate)?;
                plans::filter(self.input(node.input)?, predicate)
            }
            LogicalPlan::Projection(node) => self.projection_of(self.input(node.input)?, node.expr),
            LogicalPlan::Aggregate(node) => self.aggregate(node),
            LogicalPlan::Sort(Sort { input, fetch: None, .. }) => self.input(input),
            LogicalPlan::Sort(Sort { expr, input, fetch: Some(fetch) }) => {
                let fetch = i64::try_from(fetch).unwrap_or(i64::MAX);
                let sort = LogicalPlan::Sort(Sort { expr, input, fetch: None });
                self.limit(Limit { skip: None, fetch: Some(Box::new(lit(fetch))), input: Arc::new(sort) })
            }
            LogicalPlan::Limit(node) => self.limit(node),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(self.input(input)?))))
            }
            LogicalPlan::Distinct(Distinct::On(node)) => self.distinct_on(node),
            LogicalPlan::SubqueryAlias(node) => self.subquery_alias(node),
            LogicalPlan::Subquery(node) => self.input(node.subquery),
            LogicalPlan::Window(node) => self.window(node),
            LogicalPlan::Unnest(node) => {
                let input = Arc::new(self.input(node.input)?);
                Ok(LogicalPlan::Unnest(Unnest::try_new(input, node.exec_columns, node.options)?))
            }
            LogicalPlan::Values(node) => self.values(node),
            LogicalPlan::Union(node) => self.union(node),
            LogicalPlan::Join(node) => joins::dependent(self, node),
            LogicalPlan::RecursiveQuery(node) => recursions::dependent(self, node),
            LogicalPlan::TableScan(node) => recursions::step_before(self, &node),
            other => not_impl_err!(
                "a subquery that refers to columns outside from within {} is not supported",
                in_words(&other)
            ),
        }
    }

    pub(super) fn input(&self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        self.plan(Arc::unwrap_or_clone(input))
    }

    /// A plan that takes nothing from outside is the same for all values.
    fn beside(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        match &plan {
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema })
                if schema.fields().is_empty() =>
            {
                Ok(self.domain.plan.clone())
            }
            _ => plans::join(self.domain.plan.clone(), plan, &Vec::new(), None, JoinType::Inner),
        }
    }

    /// Groups are made within each combination. One group over all rows is there even if there are none.
    fn aggregate(&self, node: Aggregate) -> Result<LogicalPlan> {
        if node.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return self.aggregate_of_sets(node);
        }
        if node.group_expr.is_empty() {
            return self.aggregate_of_all(node);
        }
        let mut group = self.domain.exprs();
        for expr in node.group_expr {
            group.push(self.domain.bound_by_name(expr)?);
        }
        let aggregates = node.aggr_expr.into_iter().map(|expr| self.domain.bound_by_name(expr));
        plans::aggregate(self.input(node.input)?, group, aggregates.collect::<Result<_>>()?)
    }

    fn aggregate_of_all(&self, node: Aggregate) -> Result<LogicalPlan> {
        let (input, _, aggregates) = self.with_missing(node.input, node.aggr_expr)?;
        plans::aggregate(input, self.domain.exprs(), aggregates)
    }

    /// Sets of keys within each combination. The group of the set without keys is there even if there are no rows.
    fn aggregate_of_sets(&self, node: Aggregate) -> Result<LogicalPlan> {
        let keys = node.schema.fields().len().saturating_sub(node.aggr_expr.len() + 1);
        let mut group = self.domain.exprs();
        group.extend(node.group_expr);
        let group = enumerate_grouping_sets(group)?;
        let [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] = group.as_slice() else {
            return not_impl_err!("these grouping sets in a correlated subquery are not supported");
        };
        // What tells the sets apart is a number of one bit for each key, whose type nodes above know.
        let width = self.domain.columns.len();
        let same_type = Aggregate::grouping_id_type(keys, 0) == Aggregate::grouping_id_type(keys + width, 0);
        let outer = sets.iter().flatten().any(|key| self.domain.in_expression(key).unwrap_or(true));
        if keys >= 32 || !same_type || outer || has_twins(sets) {
            return not_impl_err!(
                "grouping sets in a correlated subquery with many keys, equal sets, or keys of columns outside are not supported"
            );
        }
        if sets.iter().all(|set| set.len() > width) {
            let aggregates = node.aggr_expr.into_iter().map(|expr| self.domain.bound_by_name(expr));
            let aggregates = aggregates.collect::<Result<_>>()?;
            return plans::aggregate(self.input(node.input)?, group, aggregates);
        }
        let (input, there, mut aggregates) = self.with_missing(node.input, node.aggr_expr)?;
        let rows = Column::from_name(self.names.next("__rows"));
        aggregates.push(count(there).alias(rows.name.as_str()));
        let grouped = plans::aggregate(input, group, aggregates)?;
        let set = Expr::Column(Column::from_name(Aggregate::INTERNAL_GROUPING_ID));
        let without_keys = lit((1_u64 << keys) - 1);
        let set = binary_expr(cast(set, DataType::UInt64), Operator::BitwiseAnd, without_keys.clone());
        let has_rows = Expr::Column(rows.clone()).gt(lit(0_i64));
        let grouped = plans::filter(grouped, has_rows.or(set.eq(without_keys)))?;
        let columns = grouped.schema().columns().into_iter().filter(|column| *column != rows);
        let columns = columns.map(Expr::Column).collect();
        plans::project(grouped, columns)
    }

    /// The rows of an input, and one for each combination that has none, with what tells those apart and aggregates that pass
    /// over these.
    fn with_missing(
        &self,
        input: Arc<LogicalPlan>,
        aggregates: Vec<Expr>,
    ) -> Result<(LogicalPlan, Expr, Vec<Expr>)> {
        let (twin, pairs) = self.domain.twin(self.names)?;
        let rows = Dependent { domain: &twin, names: self.names }.input(input)?;
        let there = self.names.next("__there");
        let mut exprs = plans::all(&rows);
        exprs.push(lit(true).alias(there.as_str()));
        let rows = plans::project(rows, exprs)?;
        let input = plans::join(self.domain.plan.clone(), rows, &pairs, None, JoinType::Left)?;
        let there = Expr::Column(Column::from_name(there));
        let aggregates = aggregates
            .into_iter()
            .map(|expr| plans::renamed(expr, |expr| only_where(&there, twin.bound(expr)?)));
        let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        Ok((input, there, aggregates))
    }

    /// LIMIT and OFFSET within each combination.
    fn limit(&self, node: Limit) -> Result<LogicalPlan> {
        let Ordered { outputs, keys, rows } = Ordered::of(Arc::unwrap_or_clone(node.input));
        let keys = limits::bound(keys, self.domain)?;
        let range = (node.skip.map(|skip| *skip), node.fetch.map(|fetch| *fetch));
        let rows = limits::limited(self.plan(rows)?, keys, self.domain.exprs(), range, self.names)?;
        outputs.into_iter().rev().try_fold(rows, |rows, output| match output {
            LogicalPlan::Projection(node) => self.projection_of(rows, node.expr),
            LogicalPlan::SubqueryAlias(node) => self.requalified(rows, &node),
            other => not_impl_err!("`{}` between LIMIT and ORDER BY is not supported", other.display()),
        })
    }

    fn projection_of(&self, rows: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
        let exprs = exprs.into_iter().map(|expr| self.domain.bound_by_name(expr));
        let exprs = exprs.chain(self.domain.exprs().into_iter().map(Ok)).collect::<Result<_>>()?;
        plans::project(rows, exprs)
    }

    fn distinct_on(&self, node: DistinctOn) -> Result<LogicalPlan> {
        let columns = self.domain.exprs();
        let mut on = columns.clone();
        for expr in node.on_expr {
            on.push(self.domain.bound(expr)?);
        }
        let select = node.select_expr.into_iter().map(|expr| self.domain.bound_by_name(expr));
        let select = columns.iter().cloned().map(Ok).chain(select).collect::<Result<_>>()?;
        let mut sort: Vec<_> = columns.into_iter().map(|column| column.sort(true, false)).collect();
        let ordered = node.sort_expr.is_some();
        sort.extend(limits::bound(node.sort_expr.unwrap_or_default(), self.domain)?);
        let sort = ordered.then_some(sort);
        let input = Arc::new(self.input(node.input)?);
        Ok(LogicalPlan::Distinct(Distinct::On(DistinctOn::try_new(on, select, sort, input)?)))
    }

    fn subquery_alias(&self, node: SubqueryAlias) -> Result<LogicalPlan> {
        let rows = self.input(Arc::clone(&node.input))?;
        self.requalified(rows, &node)
    }

    /// Columns under the name of a subquery; those of the domain keep theirs.
    fn requalified(&self, rows: LogicalPlan, node: &SubqueryAlias) -> Result<LogicalPlan> {
        let below = node.input.schema().columns().into_iter();
        let exprs = below.zip(node.schema.iter()).map(|(column, (relation, field))| {
            plans::named(Expr::Column(column), relation.cloned(), field.name())
        });
        plans::project(rows, exprs.chain(self.domain.exprs()).collect())
    }

    fn window(&self, node: Window) -> Result<LogicalPlan> {
        let exprs = node
            .window_expr
            .into_iter()
            .map(|expr| plans::renamed(expr, |expr| within(self.domain.bound(expr)?, &self.domain.exprs())));
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlan::Window(Window::try_new(exprs, Arc::new(self.input(node.input)?))?))
    }

    /// Each row of VALUES for each combination.
    fn values(&self, node: Values) -> Result<LogicalPlan> {
        let mut rows = Vec::new();
        for row in node.values {
            let cells = row.into_iter().zip(node.schema.iter()).map(|(cell, (relation, field))| {
                let cell = cast(self.domain.bound(cell)?, field.data_type().clone());
                Ok(plans::named(cell, relation.cloned(), field.name()))
            });
            let exprs = cells.chain(self.domain.exprs().into_iter().map(Ok)).collect::<Result<_>>()?;
            rows.push(Arc::new(plans::project(self.domain.plan.clone(), exprs)?));
        }
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(Arc::unwrap_or_clone(row)),
            (Some(row), false) => {
                rows.push(row);
                let like =
                    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: node.schema });
                self.united(rows, &like)
            }
            (None, _) => not_impl_err!("VALUES without a row are not supported"),
        }
    }

    fn union(&self, node: Union) -> Result<LogicalPlan> {
        let mut inputs = Vec::new();
        for input in &node.inputs {
            let columns = input.schema().columns().into_iter().map(Expr::Column);
            let exprs = columns.chain(self.domain.exprs()).collect();
            inputs.push(Arc::new(plans::project(self.input(Arc::clone(input))?, exprs)?));
        }
        self.united(inputs, &LogicalPlan::Union(node))
    }

    /// Inputs of the same width together, under the names that a plan has and those of the domain.
    fn united(&self, inputs: Vec<Arc<LogicalPlan>>, like: &LogicalPlan) -> Result<LogicalPlan> {
        let union = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let names = like.schema().columns().into_iter().chain(self.domain.columns.iter().cloned());
        let columns = union.schema().columns().into_iter().map(Expr::Column);
        let exprs = columns.zip(names).map(|(expr, name)| plans::named(expr, name.relation, &name.name));
        let exprs = exprs.collect();
        plans::project(union, exprs)
    }
}

/// Whether two sets have the same keys.
fn has_twins(sets: &[Vec<Expr>]) -> bool {
    let within = |one: &[Expr], other: &[Expr]| one.iter().all(|key| other.contains(key));
    let before = |at: usize| sets.iter().take(at);
    sets.iter().enumerate().any(|(at, set)| before(at).any(|other| within(set, other) && within(other, set)))
}

/// An aggregate over those rows only that are there.
fn only_where(there: &Expr, expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Alias(mut alias) => {
            alias.expr = Box::new(only_where(there, *alias.expr)?);
            Ok(Expr::Alias(alias))
        }
        Expr::AggregateFunction(function) => Ok(only_rows(there, function)),
        _ => not_impl_err!("the aggregate `{expr}` in a correlated subquery is not supported"),
    }
}

/// A row that is missing has NULL in all its columns, which most functions pass over anyway.
fn only_rows(there: &Expr, mut function: AggregateFunction) -> Expr {
    let params = &mut function.params;
    let counts_rows = function.func.name() == "count"
        && params.filter.is_none()
        && !params.distinct
        && matches!(params.args.as_slice(), [Expr::Literal(value, _)] if !value.is_null());
    if counts_rows {
        return count(there.clone());
    }
    let passes_over = matches!(function.func.name(), "count" | "sum" | "avg" | "min" | "max")
        && matches!(params.args.as_slice(), [Expr::Column(_)])
        && params.null_treatment != Some(NullTreatment::RespectNulls);
    if !passes_over {
        let condition = binary_expr(there.clone(), Operator::IsNotDistinctFrom, lit(true));
        let condition = match params.filter.take() {
            Some(filter) => condition.and(*filter),
            None => condition,
        };
        params.filter = Some(Box::new(condition));
    }
    Expr::AggregateFunction(function)
}

/// A window function within each combination.
fn within(expr: Expr, columns: &[Expr]) -> Result<Expr> {
    match expr {
        Expr::Alias(mut alias) => {
            alias.expr = Box::new(within(*alias.expr, columns)?);
            Ok(Expr::Alias(alias))
        }
        Expr::WindowFunction(mut function) => {
            function.params.partition_by.extend(columns.iter().cloned());
            Ok(Expr::WindowFunction(function))
        }
        _ => not_impl_err!("the window expression `{expr}` in a correlated subquery is not supported"),
    }
}

fn in_words(node: &LogicalPlan) -> &'static str {
    match node {
        LogicalPlan::Extension(_) => "a query of WITH with random values",
        LogicalPlan::Repartition(_) => "a repartition",
        _ => "such a query",
    }
}
