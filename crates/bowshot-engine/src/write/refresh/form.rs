//! Which queries of materialized views can be computed in part: filters, projections and inner joins of tables of this server,
//! perhaps grouped.

use crate::catalog::materialized_query::own_table;
use crate::materialized::block::has_zone;
use bowshot_tables::Table;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Volatility};
use std::sync::Arc;

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
        inputs(grouped.map_or(query, |grouped| grouped.input.as_ref()), &mut tables)?;
        check_expressions(query)?;
        let key = match grouped {
            Some(grouped) => group_columns(query, grouped)?,
            None => (0..query.schema().fields().len()).collect(),
        };
        check_key(query.schema(), &key)?;
        Ok(Self { tables, grouped, key })
    }
}

/// The aggregate that only projections, aliases and conditions stand above.
fn grouped(plan: &LogicalPlan) -> Result<Option<&Aggregate>, String> {
    match plan {
        LogicalPlan::Aggregate(grouped) if grouped.group_expr.is_empty() => {
            Err("its query has aggregates without GROUP BY".to_owned())
        }
        LogicalPlan::Aggregate(grouped) => Ok(Some(grouped)),
        LogicalPlan::Projection(projection) => self::grouped(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => self::grouped(&alias.input),
        LogicalPlan::Filter(filter) => self::grouped(&filter.input),
        _ => Ok(None),
    }
}

/// The tables below the grouping, in the order in which the plan is walked.
fn inputs(plan: &LogicalPlan, tables: &mut Vec<Arc<Table>>) -> Result<(), String> {
    match plan {
        LogicalPlan::Projection(projection) => inputs(&projection.input, tables),
        LogicalPlan::SubqueryAlias(alias) => inputs(&alias.input, tables),
        LogicalPlan::Filter(filter) => inputs(&filter.input, tables),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            inputs(&join.left, tables)?;
            inputs(&join.right, tables)
        }
        LogicalPlan::Join(join) => Err(format!("its query has a {} join", join.join_type)),
        LogicalPlan::TableScan(scan) => match own_table(scan).filter(|_| scan.projection.is_none()) {
            Some(table) if table.definition().is_durable() => {
                tables.push(table);
                Ok(())
            }
            Some(_) => Err(format!("table `{}` is in memory and keeps no versions", scan.table_name)),
            None => Err(format!("`{}` is no table of this server, or is read in part", scan.table_name)),
        },
        LogicalPlan::Aggregate(_) => Err("its query groups rows that are grouped already".to_owned()),
        other => Err(format!("its query has a step `{}`", step_name(other))),
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
        LogicalPlan::Filter(filter) => group_position(&filter.input, column),
        LogicalPlan::SubqueryAlias(alias) => group_position(&alias.input, column),
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(column)?;
            while let Expr::Alias(alias) = expr {
                expr = alias.expr.as_ref();
            }
            let Expr::Column(named) = expr else { return None };
            group_position(&projection.input, projection.input.schema().maybe_index_of_column(named)?)
        }
        _ => None,
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
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, LargeBinary, LargeUtf8, Time32, Time64, Timestamp, Utf8,
        Utf8View,
    };
    data_type.is_integer()
        || data_type.is_decimal()
        || matches!(
            data_type,
            Boolean
                | Utf8
                | LargeUtf8
                | Utf8View
                | Binary
                | LargeBinary
                | BinaryView
                | Date32
                | Date64
                | Time32(_)
                | Time64(_)
                | Timestamp(_, _)
        )
}
