//! Which queries of materialized views can be computed in part: filters, projections, joins and DISTINCT of tables of this server,
//! perhaps grouped.

use crate::catalog::materialized_query::own_table;
use crate::materialized::block::has_zone;
use bowshot_tables::Table;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, Volatility};
use std::sync::Arc;

/// Each outer join around a table that may give NULL for its columns doubles the plans of what its changes concern.
const MAX_OUTER_JOINS: usize = 2;

/// What tells which rows of a view a change of its tables concerns.
#[derive(Debug)]
pub(super) struct Form<'a> {
    /// The tables of the scans, in the order of the plan.
    pub(super) tables: Vec<Arc<Table>>,
    /// The grouping below projections and HAVING, if there is one.
    pub(super) grouped: Option<&'a Aggregate>,
    /// The columns of the result that make the key: those of the groups in their order, or all.
    pub(super) key: Vec<usize>,
}

impl<'a> Form<'a> {
    /// Reads the query of a view.
    ///
    /// # Errors
    /// The reason why it is computed as a whole.
    pub(super) fn read(query: &'a LogicalPlan) -> Result<Self, String> {
        let grouped = grouped(query)?;
        let mut tables = Vec::new();
        inputs(grouped.map_or(query, |grouped| grouped.input.as_ref()), 0, &mut tables)?;
        check_expressions(query)?;
        let key = match grouped {
            Some(grouped) => group_columns(query, grouped)?,
            None => all_columns(query),
        };
        check_key(query.schema(), &key)?;
        Ok(Self { tables, grouped, key })
    }
}

fn all_columns(plan: &LogicalPlan) -> Vec<usize> {
    (0..plan.schema().fields().len()).collect()
}

/// The aggregate that only projections, aliases, conditions and DISTINCT stand above.
fn grouped(plan: &LogicalPlan) -> Result<Option<&Aggregate>, String> {
    match plan {
        LogicalPlan::Aggregate(grouped) if grouped.group_expr.is_empty() => {
            Err("its query has aggregates without GROUP BY".to_owned())
        }
        LogicalPlan::Aggregate(grouped) => Ok(Some(grouped)),
        _ => input(plan).map_or(Ok(None), self::grouped),
    }
}

/// The input of a step that makes other rows of each of its rows alone, or leaves some out.
pub(super) fn input(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => Some(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => Some(&alias.input),
        LogicalPlan::Filter(filter) => Some(&filter.input),
        LogicalPlan::Distinct(Distinct::All(input)) => Some(input),
        _ => None,
    }
}

/// The tables below the grouping, in the order in which the plan is walked; `outer_joins` may give NULL for all of its columns.
fn inputs(plan: &LogicalPlan, outer_joins: usize, tables: &mut Vec<Arc<Table>>) -> Result<(), String> {
    if outer_joins > MAX_OUTER_JOINS {
        return Err(format!("its query has more than {MAX_OUTER_JOINS} outer joins within one another"));
    }
    if let LogicalPlan::Distinct(_) = plan {
        // Of rows that are equal but not the same, which one is left is not known.
        check_key(plan.schema(), &all_columns(plan))?;
    }
    match plan {
        LogicalPlan::Join(join) => {
            let [left, right] = optional_sides(join.join_type)
                .ok_or_else(|| format!("its query has a {} join", join.join_type))?;
            inputs(&join.left, outer_joins + usize::from(left), tables)?;
            inputs(&join.right, outer_joins + usize::from(right), tables)
        }
        LogicalPlan::TableScan(scan) => match own_table(scan).filter(|_| scan.projection.is_none()) {
            Some(table) if table.definition().is_durable() => {
                tables.push(table);
                Ok(())
            }
            Some(_) => Err(format!("table `{}` is in memory and keeps no versions", scan.table_name)),
            None => Err(format!("`{}` is no table of this server, or is read in part", scan.table_name)),
        },
        LogicalPlan::Aggregate(_) => Err("its query groups rows that are grouped already".to_owned()),
        _ => match input(plan) {
            Some(input) => inputs(input, outer_joins, tables),
            None => Err(format!("its query has a step `{}`", step_name(plan))),
        },
    }
}

/// Whether a join may give NULL for all columns of its left and of its right side. `None` for one that does not have both.
pub(super) fn optional_sides(join_type: JoinType) -> Option<[bool; 2]> {
    match join_type {
        JoinType::Inner => Some([false, false]),
        JoinType::Left => Some([false, true]),
        JoinType::Right => Some([true, false]),
        JoinType::Full => Some([true, true]),
        _ => None,
    }
}

/// The first word of a step as EXPLAIN shows it.
fn step_name(plan: &LogicalPlan) -> String {
    let shown = plan.display().to_string();
    shown.split([':', ' ']).next().unwrap_or_default().to_owned()
}

/// Values must be the same whenever they are computed, of the same rows.
fn check_expressions(query: &LogicalPlan) -> Result<(), String> {
    let mut refused = None;
    let walked = query.apply(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            refused = refused.take().or_else(|| refusal(expr, &schema));
            Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    match (walked, refused) {
        (_, Some(reason)) => Err(reason),
        (Err(error), None) => Err(error.to_string()),
        (Ok(_), None) => Ok(()),
    }
}

/// Why an expression keeps a query from being computed in part.
fn refusal(expr: &Expr, schema: &DFSchema) -> Option<String> {
    let mut refused = None;
    let walked = expr.apply(|part| {
        refused = match part {
            Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable => {
                Some(format!("function `{}` may give something else the next time", call.func.name()))
            }
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_) => {
                Some("its query has a subquery".to_owned())
            }
            Expr::GroupingSet(_) => Some("its query has grouping sets".to_owned()),
            Expr::WindowFunction(_) => Some("its query has window functions".to_owned()),
            Expr::Unnest(_) => Some("its query has unnested lists".to_owned()),
            part if depends_on_zone(part, schema) => {
                Some("its query depends on the time zone of the session".to_owned())
            }
            _ => None,
        };
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.map_or_else(|error| Some(error.to_string()), |_| refused)
}

/// Whether an expression turns timestamps with time zone into something else, or something else into them. To compare two of them,
/// or to find the last one, no zone is needed. What is of no known type may be one.
fn depends_on_zone(expr: &Expr, schema: &DFSchema) -> bool {
    let is_zoned = |expr: &Expr| !expr.get_type(schema).is_ok_and(|found| !has_zone(&found));
    let mut inputs = Vec::new();
    let walked = expr.apply_children(|child| {
        inputs.push(is_zoned(child));
        Ok(TreeNodeRecursion::Continue)
    });
    let has_zoned = inputs.contains(&true);
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::Alias(_) | Expr::IsNull(_) | Expr::IsNotNull(_) => false,
        Expr::AggregateFunction(call) => has_zoned && call.func.name() != "count" && !is_zoned(expr),
        Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_) => has_zoned || is_zoned(expr),
        _ => walked.is_err() || has_zoned && inputs.contains(&false),
    }
}

/// For each expression of GROUP BY a column of the result that shows it.
fn group_columns(query: &LogicalPlan, grouped: &Aggregate) -> Result<Vec<usize>, String> {
    let shown: Vec<Option<usize>> =
        (0..query.schema().fields().len()).map(|column| group_position(query, column)).collect();
    let column = |group: usize| shown.iter().position(|shown| *shown == Some(group));
    let groups = grouped.group_expr.iter().enumerate();
    let found = groups.map(|(group, expr)| {
        column(group).ok_or_else(|| format!("its columns do not show `{expr}`, by which it groups"))
    });
    found.collect()
}

/// Which column of the grouping a column of the result is.
fn group_position(plan: &LogicalPlan, column: usize) -> Option<usize> {
    match plan {
        LogicalPlan::Aggregate(_) => Some(column),
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(column)?;
            while let Expr::Alias(alias) = expr {
                expr = alias.expr.as_ref();
            }
            let Expr::Column(named) = expr else { return None };
            group_position(&projection.input, projection.input.schema().maybe_index_of_column(named)?)
        }
        _ => group_position(input(plan)?, column),
    }
}

/// Equal keys must be the same values, wherever they are kept: floating-point numbers and texts that are compared without
/// blanks are not.
fn check_key(schema: &DFSchema, key: &[usize]) -> Result<(), String> {
    let fields = key.iter().filter_map(|column| schema.fields().get(*column));
    let mut wrong = fields.filter(|field| !is_key(field.data_type()) || !field.metadata().is_empty());
    match wrong.next() {
        None => Ok(()),
        Some(field) => Err(format!("rows are not told apart by column `{}` of its type", field.name())),
    }
}

pub(super) fn is_key(data_type: &DataType) -> bool {
    let is_time =
        data_type.is_temporal() && !matches!(data_type, DataType::Interval(_) | DataType::Duration(_));
    let is_text = data_type.is_string() || data_type.is_binary();
    is_text || is_time || data_type.is_integer() || data_type.is_decimal() || *data_type == DataType::Boolean
}
