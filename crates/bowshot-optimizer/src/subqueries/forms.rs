//! What each kind of subquery is for one row outside: a value, whether there is a row, whether some or all rows compare so. Each
//! becomes a join with the plan outside, and a column of it or an expression over columns.

use super::Names;
use super::comparison::Comparison;
use super::correlation_values::Domain;
use super::dependent::Dependent;
use super::one_row::one_row;
use super::plans::{self, Pairs};
use datafusion::common::{Column, Result, ScalarValue, Spans, TableReference};
use datafusion::functions_aggregate::expr_fn::{count, first_value, max, min};
use datafusion::logical_expr::{
    Expr, ExprSchemable, JoinType, Limit, LogicalPlan, Operator, Subquery, binary_expr, lit, not, when,
};
use std::sync::Arc;

/// What the rows of a subquery are called in plans.
const SUBQUERY: &str = "__subquery";
/// The column of its values, of the number of its rows, and of a join that marks.
const VALUE: &str = "__value";
const ROWS: &str = "__rows";
const MARK: &str = "mark";

/// The plan outside, which grows by what its expressions need of subqueries.
pub(super) struct Outside<'a> {
    pub(super) plan: LogicalPlan,
    /// The plan before it grew, which all subqueries refer to: the values that they take are those of its rows.
    base: LogicalPlan,
    pub(super) names: &'a Names,
    /// Subqueries that have been here, with what stands for them.
    pub(super) known: Vec<(Expr, Expr)>,
}

/// The answer to a comparison: whether a row is so, and whether it is unknown of one, if that can be.
struct Answer {
    yes: Expr,
    unknown: Option<Expr>,
}

/// The rows of a subquery with the values from outside that each belongs to.
struct Attached {
    plan: LogicalPlan,
    name: String,
    pairs: Pairs,
}

impl Attached {
    fn column(&self, name: &str) -> Expr {
        Expr::Column(Column::new(Some(TableReference::bare(self.name.as_str())), name))
    }

    fn value(&self) -> Expr {
        self.column(VALUE)
    }
}

impl<'a> Outside<'a> {
    pub(super) fn new(plan: LogicalPlan, names: &'a Names) -> Self {
        Self { base: plan.clone(), plan, names, known: Vec::new() }
    }

    fn references(&self, query: &LogicalPlan) -> Result<Vec<Column>> {
        let mut references = plans::outer_columns(query)?;
        references.retain(|column| self.base.schema().index_of_column(column).is_ok());
        Ok(references)
    }

    fn attached(&self, query: &Arc<LogicalPlan>) -> Result<Attached> {
        let value = match query.schema().columns().into_iter().next() {
            Some(first) => Expr::Column(first),
            None => lit(true),
        };
        let mut exprs = vec![value.alias(VALUE)];
        let references = self.references(query)?;
        let (rows, mut pairs) = if references.is_empty() {
            (LogicalPlan::clone(query), Pairs::new())
        } else {
            let (domain, pairs) = Domain::of(&self.base, &references, self.names)?;
            let rows = Dependent { domain: &domain, names: self.names }.plan(LogicalPlan::clone(query))?;
            exprs.extend(domain.exprs());
            (rows, pairs)
        };
        let name = self.names.next(SUBQUERY);
        for (_, own) in &mut pairs {
            own.relation = Some(TableReference::bare(name.as_str()));
        }
        let plan = plans::alias(plans::project(rows, exprs)?, &name)?;
        Ok(Attached { plan, name, pairs })
    }

    fn join(&mut self, with: &Attached, condition: Option<Expr>, kind: JoinType) -> Result<()> {
        let plan = std::mem::take(&mut self.plan);
        self.plan = plans::join(plan, with.plan.clone(), &with.pairs, condition, kind)?;
        Ok(())
    }

    /// The value of a subquery of one row; NULL if there is none, an error if there are more.
    pub(super) fn scalar(&mut self, query: &Arc<LogicalPlan>) -> Result<Expr> {
        if plans::outer_columns(query)?.is_empty() {
            return Ok(uncorrelated(LogicalPlan::clone(query)));
        }
        let mut rows = self.attached(query)?;
        let alone = query.max_rows().is_some_and(|most| most <= 1);
        if !alone {
            let group = rows.pairs.iter().map(|(_, own)| Expr::Column(own.clone())).collect();
            let first = first_value(rows.value(), Vec::new()).alias(VALUE);
            let grouped =
                plans::aggregate(rows.plan.clone(), group, vec![first, count(lit(1_i64)).alias(ROWS)])?;
            rows.plan = plans::alias(grouped, &rows.name)?;
        }
        self.join(&rows, None, JoinType::Left)?;
        Ok(if alone { rows.value() } else { one_row(rows.value(), rows.column(ROWS)) })
    }

    /// Whether a subquery has a row.
    pub(super) fn exists(&mut self, query: &Arc<LogicalPlan>) -> Result<Expr> {
        if plans::outer_columns(query)?.is_empty() {
            return there_is(query);
        }
        let rows = self.attached(query)?;
        self.join(&rows, None, JoinType::LeftMark)?;
        Ok(rows.column(MARK))
    }

    /// Leaves the rows for which a subquery has a row, or has none. False if there is a better way.
    pub(super) fn keep_where_exists(&mut self, query: &Arc<LogicalPlan>, negated: bool) -> Result<bool> {
        if self.references(query)?.is_empty() {
            return Ok(false);
        }
        let rows = self.attached(query)?;
        self.join(&rows, None, if negated { JoinType::LeftAnti } else { JoinType::LeftSemi })?;
        Ok(true)
    }

    /// Leaves the rows of which a comparison with some row of the subquery is true; or, negated, false. False if there is a
    /// better way.
    pub(super) fn keep_where(&mut self, of: &Comparison, negated: bool) -> Result<bool> {
        let alone = self.references(&of.query)?.is_empty();
        if alone && of.op != Operator::Eq && of.summed_up() {
            return Ok(false);
        }
        let nullable = self.nullable(of)?;
        if negated && alone && of.summed_up() && (nullable || of.op != Operator::Eq) {
            return Ok(false);
        }
        let rows = self.attached(&of.query)?;
        let is = of.with(rows.value());
        match (negated, nullable) {
            (false, _) => self.join(&rows, Some(is), JoinType::LeftSemi)?,
            (true, false) => self.join(&rows, Some(is), JoinType::LeftAnti)?,
            (true, true) => self.join(&rows, Some(is.is_not_false()), JoinType::LeftAnti)?,
        }
        Ok(true)
    }

    /// Whether a comparison can be unknown.
    fn nullable(&self, of: &Comparison) -> Result<bool> {
        let column = of.query.schema().fields().first().is_none_or(|field| field.is_nullable());
        Ok(of.of_rows() || column || of.value.nullable(self.plan.schema())?)
    }

    /// Whether a comparison is true of some row.
    pub(super) fn any_is_true(&mut self, of: &Comparison) -> Result<Expr> {
        Ok(self.answer(of, true)?.yes)
    }

    /// The value of `value op ANY (query)`, or of its negation: true, false or unknown.
    pub(super) fn any(&mut self, of: &Comparison, negated: bool) -> Result<Expr> {
        let Answer { yes, unknown } = self.answer(of, false)?;
        match unknown {
            None if negated => Ok(not(yes)),
            None => Ok(yes),
            Some(unknown) => when(yes, lit(!negated))
                .when(unknown, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(negated)),
        }
    }

    fn answer(&mut self, of: &Comparison, only_yes: bool) -> Result<Answer> {
        if self.references(&of.query)?.is_empty() && of.summed_up() {
            return self.answer_from_summary(of, only_yes);
        }
        let yes = self.mark(of, |is| is)?;
        let unknown = !only_yes && self.nullable(of)?;
        let unknown = unknown.then(|| self.mark(of, Expr::is_null)).transpose()?;
        Ok(Answer { yes, unknown })
    }

    /// Marks the rows for which there is a row of the subquery whose comparison is so.
    fn mark(&mut self, of: &Comparison, so: impl FnOnce(Expr) -> Expr) -> Result<Expr> {
        let rows = self.attached(&of.query)?;
        let is = of.with(rows.value());
        self.join(&rows, Some(so(is)), JoinType::LeftMark)?;
        Ok(rows.column(MARK))
    }

    /// All rows outside see the same rows of the subquery: how many there are, how many of them are not NULL, and the least
    /// and the greatest one tell the answer.
    fn answer_from_summary(&mut self, of: &Comparison, only_yes: bool) -> Result<Answer> {
        let equality = of.op == Operator::Eq;
        let field = of.query.schema().fields().first().cloned();
        let nothing = field.as_ref().is_some_and(|field| field.data_type().is_null());
        let column_nullable = field.is_none_or(|field| field.is_nullable());
        let value_nullable = of.value.nullable(self.plan.schema())?;
        let mut yes = None;
        if equality && !nothing {
            yes = Some(self.mark(of, |is| is)?);
        }
        let unknown = !only_yes && (column_nullable || value_nullable);
        if yes.is_some() && !unknown {
            return Ok(Answer { yes: yes.unwrap_or_else(|| lit(false)), unknown: None });
        }
        let mut summary = self.attached(&of.query)?;
        let value = summary.value();
        let mut aggregates = vec![count(lit(1_i64)).alias(ROWS), count(value.clone()).alias("__known")];
        if !equality && !nothing {
            aggregates.extend([min(value.clone()).alias("__least"), max(value).alias("__most")]);
        }
        summary.plan = plans::alias(plans::aggregate(summary.plan, Vec::new(), aggregates)?, &summary.name)?;
        self.join(&summary, None, JoinType::Inner)?;
        let yes = yes.unwrap_or_else(|| if nothing { lit(false) } else { compared(of, &summary) });
        let (rows, known) = (summary.column(ROWS), summary.column("__known"));
        let mut reasons = Vec::new();
        if value_nullable {
            reasons.push(of.value.clone().is_null().and(rows.clone().gt(lit(0_i64))));
        }
        if column_nullable {
            reasons.push(known.lt(rows));
        }
        Ok(Answer { yes, unknown: if unknown { reasons.into_iter().reduce(Expr::or) } else { None } })
    }
}

/// Whether a value compares so with one of the values between the least and the greatest one. `IS TRUE` would be said to have
/// no NULL here, and to have one in the plan that runs, which DataFusion refuses.
fn compared(of: &Comparison, summary: &Attached) -> Expr {
    let (least, most) = (summary.column("__least"), summary.column("__most"));
    let compare = |with: Expr| of.with(with);
    let so = match of.op {
        Operator::Lt | Operator::LtEq => compare(most),
        Operator::Gt | Operator::GtEq => compare(least),
        _ => compare(least).or(compare(most)),
    };
    binary_expr(so, Operator::IsNotDistinctFrom, lit(true))
}

/// A subquery that is the same for all rows, which runs once.
pub(super) fn uncorrelated(query: LogicalPlan) -> Expr {
    Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(query),
        outer_ref_columns: Vec::new(),
        spans: Spans::new(),
    })
}

/// A query of one value, which may be NULL since there may be no row: DataFusion takes it for what its column says, and for what
/// that says once it has been computed ahead (`upper('a')` is never NULL then).
pub(super) fn or_null(query: LogicalPlan) -> Result<LogicalPlan> {
    let Some(field) = query.schema().fields().first().cloned() else { return Ok(query) };
    if (field.is_nullable() && is_stored(&query, 0))
        || has_a_row(&query)
        || !plans::outer_columns(&query)?.is_empty()
    {
        return Ok(query);
    }
    let (relation, _) = query.schema().qualified_field(0);
    let (relation, name) = (relation.cloned(), field.name().as_str());
    let value = Expr::Column(Column::new(relation.clone(), name));
    let aggregates = vec![first_value(value, Vec::new()).alias(VALUE), count(lit(1_i64)).alias(ROWS)];
    let counted = plans::aggregate(query, Vec::new(), aggregates)?;
    let [value, rows] = [VALUE, ROWS].map(|name| Expr::Column(Column::from_name(name)));
    plans::project(counted, vec![plans::named(one_row(value, rows), relation, name)])
}

/// Whether a column is one of a table, which stays what it is.
fn is_stored(query: &LogicalPlan, place: usize) -> bool {
    match query {
        LogicalPlan::Projection(node) => match node.expr.get(place) {
            Some(Expr::Column(column)) => {
                node.input.schema().index_of_column(column).is_ok_and(|place| is_stored(&node.input, place))
            }
            _ => false,
        },
        LogicalPlan::SubqueryAlias(node) => is_stored(&node.input, place),
        LogicalPlan::Sort(node) => is_stored(&node.input, place),
        LogicalPlan::Limit(node) => is_stored(&node.input, place),
        LogicalPlan::Filter(node) => is_stored(&node.input, place),
        LogicalPlan::TableScan(_) => true,
        _ => false,
    }
}

fn has_a_row(query: &LogicalPlan) -> bool {
    match query {
        LogicalPlan::Projection(node) => has_a_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_a_row(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(node) => node.produce_one_row,
        _ => false,
    }
}

/// Whether a subquery that is the same for all rows has a row: one is enough.
fn there_is(query: &Arc<LogicalPlan>) -> Result<Expr> {
    let one = Some(Box::new(lit(1_i64)));
    let first = LogicalPlan::Limit(Limit { skip: None, fetch: one, input: Arc::clone(query) });
    let counted = plans::aggregate(first, Vec::new(), vec![count(lit(1_i64)).alias(ROWS)])?;
    let there = Expr::Column(Column::from_name(ROWS)).gt(lit(0_i64)).alias(VALUE);
    Ok(uncorrelated(plans::project(counted, vec![there])?))
}
