//! Refuses statements whose expressions become too large when the optimiser puts them into one another.
//!
//! A column of an inner query is replaced by what computes it: where a condition on it moves down, and where two lists of
//! columns become one. Each query around another adds the depth of its expressions, until a stack ends, and with it the
//! process; and what uses a column twice doubles with every query around it, so that a short statement takes all memory.
//! [`bowshot_sql::check_limits`] measures the text, where this does not show: the expressions are small, and views are a word.

use crate::error::classify;
use bowshot_api::{Error, ErrorKind, Result};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// How deep an expression may be with all that it is computed of. Planning takes time with the square of it, some seconds
/// for this, and the stack of a query ends at about 14,000.
const MAX_DEPTH: u64 = 3_000;
/// Parts of a condition with all that it is computed of. The optimiser takes about 10 seconds to move that many.
const MAX_PARTS: u64 = 1_000_000;
const HINT: &str = "keep the rows of an inner query: `CREATE TABLE … AS SELECT …`";

/// Checks a plan that is not optimised yet.
///
/// # Errors
/// `LimitReached`.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    if cannot_grow(plan)? {
        return Ok(());
    }
    let mut found = measured(plan)?;
    // The whole of each subquery is the input of a node that is made for the walk.
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Subquery(inner) = node {
            found = found
                .most(measured(&inner.subquery).map_err(|error| DataFusionError::External(Box::new(error)))?);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(classify)?;
    limit(found.depth, MAX_DEPTH, "levels")?;
    limit(found.parts, MAX_PARTS, "parts")
}

/// Whether a plan has so few nodes and columns that optimising it takes about a millisecond.
pub(crate) fn is_small(plan: &LogicalPlan) -> bool {
    const NODES: usize = 24;
    const COLUMNS_PER_NODE: usize = 32;
    let mut nodes = 0;
    let walked = plan.apply_with_subqueries(|node| {
        nodes += 1 + node.schema().fields().len() / COLUMNS_PER_NODE;
        Ok(if nodes > NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && nodes <= NODES
}

fn limit(found: u64, most: u64, what: &str) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    let message = format!(
        "the expressions of the statement would have more than {most} {what} with what computes their columns, in inner \
         queries and views"
    );
    Err(Error::new(ErrorKind::LimitReached, message).with_hint(HINT))
}

/// Whether a first look tells that nothing can become too large, as of nearly all statements: all expressions under one
/// another are not deep enough, nor large enough if each column stood for all that is below.
fn cannot_grow(plan: &LogicalPlan) -> Result<bool> {
    let (mut depth, mut parts, mut times) = (0_u64, 1_u64, 1_u64);
    let walked = plan.apply_with_subqueries(|node| {
        let mut columns = 1;
        node.apply_expressions(|expr| {
            let mut here = 0;
            expr.apply(|part| {
                parts += 1;
                // Lists of values are flat.
                depth += u64::from(!matches!(part, Expr::Literal(..)));
                here += u64::from(matches!(part, Expr::Column(_)));
                Ok(TreeNodeRecursion::Continue)
            })?;
            columns = columns.max(here);
            Ok(TreeNodeRecursion::Continue)
        })?;
        times = times.saturating_mul(columns);
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(classify)?;
    Ok(depth < MAX_DEPTH && parts.saturating_mul(times) <= MAX_PARTS)
}

/// How large an expression is with all that its columns are computed of.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    parts: u64,
    depth: u64,
}

impl Extent {
    const COLUMN: Self = Self { parts: 1, depth: 1 };

    fn most(self, other: Self) -> Self {
        Self { parts: self.parts.max(other.parts), depth: self.depth.max(other.depth) }
    }
}

/// The depth of the deepest expression, and the parts of the largest condition.
fn measured(plan: &LogicalPlan) -> Result<Extent> {
    let mut measure = Measure::default();
    plan.visit(&mut measure).map_err(classify)?;
    Ok(measure.found)
}

/// Walks a plan, inputs first.
#[derive(Default)]
struct Measure {
    /// The columns of the nodes that have been left, and whose outputs have not been asked for.
    outputs: Vec<Vec<Extent>>,
    found: Extent,
}

impl TreeNodeVisitor<'_> for Measure {
    type Node = LogicalPlan;

    fn f_up(&mut self, node: &LogicalPlan) -> Result<TreeNodeRecursion, DataFusionError> {
        let inputs = self.outputs.split_off(self.outputs.len().saturating_sub(node.inputs().len()));
        let mut exprs = Vec::new();
        node.apply_expressions(|expr| {
            exprs.push(extent(expr, node, &inputs)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        let largest = exprs.iter().copied().fold(Extent::default(), Extent::most);
        self.found.depth = self.found.depth.max(largest.depth);
        if matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            self.found.parts = self.found.parts.max(largest.parts);
        }
        self.outputs.push(outputs(node, inputs, exprs));
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The columns that a node gives.
fn outputs(node: &LogicalPlan, inputs: Vec<Vec<Extent>>, exprs: Vec<Extent>) -> Vec<Extent> {
    let width = node.schema().fields().len();
    let largest = |columns: &[Extent]| columns.iter().copied().fold(Extent::COLUMN, Extent::most);
    let mut columns = match node {
        LogicalPlan::Projection(_) => exprs,
        // What is computed of many rows is computed there: no condition on it moves further down, and nothing takes its place.
        LogicalPlan::Aggregate(aggregate) => {
            let keys = exprs.into_iter().take(aggregate.group_expr.len());
            keys.chain(std::iter::repeat_n(Extent::COLUMN, aggregate.aggr_expr.len())).collect()
        }
        LogicalPlan::Window(_) => {
            let ranks = std::iter::repeat_n(Extent::COLUMN, exprs.len());
            inputs.into_iter().flatten().chain(ranks).collect()
        }
        LogicalPlan::Union(_) => {
            let same_place = |place: usize| {
                let at = inputs.iter().filter_map(|input| input.get(place).copied());
                at.fold(Extent::COLUMN, Extent::most)
            };
            (0..width).map(same_place).collect()
        }
        LogicalPlan::Join(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_) => inputs.into_iter().flatten().collect(),
        // As if each column were computed of all.
        _ => {
            let all = exprs.into_iter().chain(inputs.into_iter().flatten());
            vec![all.fold(Extent::COLUMN, Extent::most); width]
        }
    };
    if columns.len() != width {
        // Of a join that gives one side only, and of grouping sets: not told apart.
        columns = vec![largest(&columns); width];
    }
    columns
}

/// The extent of an expression of a node whose inputs give these columns.
fn extent(expr: &Expr, node: &LogicalPlan, inputs: &[Vec<Extent>]) -> Result<Extent, DataFusionError> {
    let of_column = |column: &Column| {
        let sides = node.inputs().into_iter().zip(inputs);
        let mut places = sides.filter_map(|(input, columns)| {
            columns.get(input.schema().maybe_index_of_column(column)?).copied()
        });
        places.next().unwrap_or(Extent::COLUMN)
    };
    let mut levels = Levels { of_column: &of_column, level: 0, found: Extent::default() };
    expr.visit(&mut levels)?;
    Ok(levels.found)
}

struct Levels<'a> {
    of_column: &'a dyn Fn(&Column) -> Extent,
    level: u64,
    found: Extent,
}

impl TreeNodeVisitor<'_> for Levels<'_> {
    type Node = Expr;

    fn f_down(&mut self, expr: &Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        let here = match expr {
            Expr::Column(column) => (self.of_column)(column),
            // A name only.
            Expr::Alias(_) => Extent::default(),
            _ => Extent::COLUMN,
        };
        self.found.parts = self.found.parts.saturating_add(here.parts);
        self.found.depth = self.found.depth.max(self.level + here.depth);
        self.level += u64::from(!matches!(expr, Expr::Alias(_)));
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, expr: &Expr) -> Result<TreeNodeRecursion, DataFusionError> {
        self.level -= u64::from(!matches!(expr, Expr::Alias(_)));
        Ok(TreeNodeRecursion::Continue)
    }
}
