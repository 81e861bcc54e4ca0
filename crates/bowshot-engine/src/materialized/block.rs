//! Queries in a form in which they can be compared: tables, conditions, groups and columns as expressions over the columns of
//! tables, whatever the text calls them. What gives other values to another session, or at another time, has no such form.

use crate::catalog::materialized_query::own_table;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, JoinType, NullEquality, TableReference};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, TableScan, Volatility,
};
use uuid::Uuid;

/// A query over tables of this server, each of which it reads once.
#[derive(Debug)]
pub(crate) struct Block {
    /// Ids of the tables, in order.
    pub(crate) tables: Vec<Uuid>,
    /// All of them hold.
    pub(crate) conditions: Vec<Expr>,
    /// What it groups by, if it does.
    pub(crate) groups: Option<Vec<Expr>>,
    /// Its columns; of one that groups over groups and aggregates.
    pub(crate) columns: Vec<Expr>,
}

impl Block {
    /// Reads a plan that is not optimized.
    pub(crate) fn read(plan: &LogicalPlan) -> Option<Self> {
        match plan {
            LogicalPlan::TableScan(scan) => Self::scan(scan),
            LogicalPlan::SubqueryAlias(alias) => Self::read(&alias.input),
            LogicalPlan::Projection(projection) => {
                let below = Self::read(&projection.input)?;
                let columns = below.all_over(&projection.expr, projection.input.schema())?;
                Some(Self { columns, ..below })
            }
            LogicalPlan::Filter(filter) => {
                let mut below = Self::read(&filter.input).filter(|below| below.groups.is_none())?;
                below.add_condition(&filter.predicate, filter.input.schema())?;
                Some(below)
            }
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                let is_plain = join.null_equality == NullEquality::NullEqualsNothing;
                let left = Self::read(&join.left).filter(|_| is_plain)?;
                let right = Self::read(&join.right)?;
                let mut both = left.joined(&right)?;
                for (one, other) in &join.on {
                    let one = left.over(one, join.left.schema())?;
                    let other = right.over(other, join.right.schema())?;
                    both.conditions.push(equal(one, other));
                }
                if let Some(filter) = &join.filter {
                    both.add_condition(filter, &join.schema)?;
                }
                Some(both)
            }
            LogicalPlan::Aggregate(grouped) => {
                let below = Self::read(&grouped.input).filter(|below| below.groups.is_none())?;
                let groups = below.all_over(&grouped.group_expr, grouped.input.schema())?;
                let aggregates = below.all_over(&grouped.aggr_expr, grouped.input.schema())?;
                let columns = groups.iter().cloned().chain(aggregates).collect();
                Some(Self { columns, groups: Some(groups), ..below })
            }
            _ => None,
        }
    }

    fn scan(scan: &TableScan) -> Option<Self> {
        let id = own_table(scan)?.id();
        let table = TableReference::bare(id.to_string());
        let fields = scan.projected_schema.fields().iter();
        let columns = fields.map(|field| Expr::Column(Column::new(Some(table.clone()), field.name())));
        Some(Self { tables: vec![id], conditions: Vec::new(), groups: None, columns: columns.collect() })
    }

    /// Both side by side, without a condition. Of a table that is read twice nobody could tell which of the two a column is of.
    fn joined(&self, other: &Self) -> Option<Self> {
        let is_plain = self.groups.is_none() && other.groups.is_none();
        let mut tables: Vec<Uuid> = self.tables.iter().chain(&other.tables).copied().collect();
        tables.sort_unstable();
        let is_once = tables.windows(2).all(|pair| pair.first() != pair.last());
        (is_plain && is_once).then(|| Self {
            tables,
            conditions: self.conditions.iter().chain(&other.conditions).cloned().collect(),
            groups: None,
            columns: self.columns.iter().chain(&other.columns).cloned().collect(),
        })
    }

    fn add_condition(&mut self, condition: &Expr, schema: &DFSchema) -> Option<()> {
        for part in split_conjunction(condition) {
            let part = match self.over(part, schema)? {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => equal(*left, *right),
                other => other,
            };
            self.conditions.push(part);
        }
        Some(())
    }

    fn all_over(&self, exprs: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
        exprs.iter().map(|expr| self.over(expr, schema)).collect()
    }

    /// An expression over the columns of `schema`, which are those of the block, as one over columns of tables.
    fn over(&self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
        if !is_comparable(expr, schema) {
            return None;
        }
        let over = expr.clone().transform_up(|part| match part {
            Expr::Column(column) => {
                let at = schema.index_of_column(&column)?;
                let known = self.columns.get(at).cloned();
                let missing = || DataFusionError::Internal(format!("column {column} is not there"));
                known.map(Transformed::yes).ok_or_else(missing)
            }
            Expr::Alias(alias) => Ok(Transformed::yes(*alias.expr)),
            other => Ok(Transformed::no(other)),
        });
        over.ok().map(|over| over.data)
    }
}

/// `a = b` and `b = a` are the same.
fn equal(one: Expr, other: Expr) -> Expr {
    if one.to_string() <= other.to_string() { one.eq(other) } else { other.eq(one) }
}

/// Whether an expression has the same value in every session, and over a column of a view that shows the same. What depends on the
/// session's time zone has not: a timestamp with time zone is a column and nothing else. Columns with metadata are compared in ways
/// of their own.
fn is_comparable(expr: &Expr, schema: &DFSchema) -> bool {
    let mut bare = expr;
    while let Expr::Alias(alias) = bare {
        bare = alias.expr.as_ref();
    }
    let is_column = matches!(bare, Expr::Column(_));
    let refused = expr.exists(|part| {
        Ok(match part {
            Expr::Column(column) => {
                let at = schema.maybe_index_of_column(column);
                at.is_none_or(|at| {
                    let field = schema.field(at);
                    !field.metadata().is_empty() || !is_column && has_zone(field.data_type())
                })
            }
            Expr::Literal(value, _) => has_zone(&value.data_type()),
            Expr::Cast(cast) => has_zone(cast.field.data_type()),
            Expr::TryCast(cast) => has_zone(cast.field.data_type()),
            Expr::ScalarFunction(call) => {
                let is_plain = part.get_type(schema).is_ok_and(|made| !has_zone(&made));
                !is_plain || call.func.signature().volatility != Volatility::Immutable
            }
            Expr::Alias(_)
            | Expr::AggregateFunction(_)
            | Expr::Between(_)
            | Expr::BinaryExpr(_)
            | Expr::Case(_)
            | Expr::InList(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotNull(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsUnknown(_)
            | Expr::Like(_)
            | Expr::Negative(_)
            | Expr::Not(_)
            | Expr::SimilarTo(_) => false,
            _ => true,
        })
    });
    matches!(refused, Ok(false))
}

pub(crate) fn has_zone(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}
