//! The way from an aggregation down to the rows that its functions read, through projections and joins.

use crate::join_order::statistics::Facts;
use crate::physical_expressions::{can_move, for_each_column, is_plain, never_fails, with_columns};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Level {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The columns that operators above read, besides what functions do.
    pub(super) needed: BTreeSet<usize>,
    /// What the functions read, over columns of this plan.
    pub(super) functions: Vec<Input>,
    /// The side on which the next level is, if this one is a join.
    pub(super) side: JoinSide,
}

#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Input {
    fn expressions(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.arguments.iter().chain(&self.filter)
    }

    fn rewritten(
        &self,
        rewrite: &dyn Fn(&Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>>,
    ) -> Result<Self> {
        let arguments = self.arguments.iter().map(rewrite).collect::<Result<_>>()?;
        Ok(Self { arguments, filter: self.filter.as_ref().map(rewrite).transpose()? })
    }
}

/// From the input of the aggregation down, as far as one operator gives all that the functions read.
pub(super) fn below(partial: &AggregateExec) -> Result<Vec<Level>> {
    let keys: Vec<_> = partial.group_expr().expr().iter().map(|(key, _)| key).collect();
    if !keys.iter().all(|key| can_move(key)) {
        return Ok(Vec::new());
    }
    let functions = partial.aggr_expr().iter().zip(partial.filter_expr());
    let functions = functions
        .map(|(function, filter)| Input { arguments: function.expressions(), filter: filter.clone() })
        .collect::<Vec<_>>();
    if !functions.iter().flat_map(Input::expressions).all(can_move) {
        return Ok(Vec::new());
    }
    let (plan, needed) = (Arc::clone(partial.input()), columns_of(keys)?);
    let mut levels = Vec::new();
    let mut next = Some(Level { plan, needed, functions, side: JoinSide::None });
    while let Some(mut level) = next {
        next = level.next()?;
        levels.push(level);
    }
    Ok(levels)
}

fn columns_of<'a>(
    expressions: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
) -> Result<BTreeSet<usize>> {
    let mut columns = BTreeSet::new();
    for expression in expressions {
        for_each_column(expression, &mut |column| {
            columns.insert(column.index());
        })?;
    }
    Ok(columns)
}

impl Level {
    /// Whether rows may be grouped here: by values of which equal ones are the same in all respects, and by functions that give no
    /// error for rows which a join above takes away.
    pub(super) fn may_be_grouped(&self) -> bool {
        let schema = self.plan.schema();
        let is_plain = |at: &usize| schema.fields().get(*at).is_some_and(|of| is_plain(of.data_type()));
        let mut read = self.functions.iter().flat_map(Input::expressions);
        self.needed.iter().all(is_plain) && read.all(|of| never_fails(of, &schema))
    }

    fn next(&mut self) -> Result<Option<Self>> {
        let plan = Arc::clone(&self.plan);
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return self.below_projection(projection);
        }
        plan.downcast_ref::<HashJoinExec>().map_or(Ok(None), |join| self.below_join(join))
    }

    fn below_projection(&self, projection: &ProjectionExec) -> Result<Option<Self>> {
        let read = columns_of(self.functions.iter().flat_map(Input::expressions))?;
        let mut used = self.needed.union(&read).filter_map(|at| projection.expr().get(*at));
        if !used.all(|chosen| can_move(&chosen.expr)) {
            return Ok(None);
        }
        let needed = self.needed.iter().filter_map(|at| projection.expr().get(*at));
        let needed = columns_of(needed.map(|chosen| &chosen.expr))?;
        let inlined = |expression: &Arc<dyn PhysicalExpr>| inlined(expression, projection.expr());
        let functions = self.functions.iter().map(|input| input.rewritten(&inlined));
        let functions = functions.collect::<Result<_>>()?;
        let plan = Arc::clone(projection.input());
        Ok(Some(Self { plan, needed, functions, side: JoinSide::None }))
    }

    fn below_join(&mut self, join: &HashJoinExec) -> Result<Option<Self>> {
        let is_random = join.filter().is_some_and(|filter| is_volatile(filter.expression()));
        if join.fetch().is_some() || is_random {
            return Ok(None);
        }
        let read = columns_of(self.functions.iter().flat_map(Input::expressions))?;
        let mut sides = read.iter().map(|at| place(join, *at).map(|(side, _)| side));
        let side = match sides.next() {
            Some(first) => match first {
                Some(side) if sides.all(|other| other == first) => side,
                _ => return Ok(None),
            },
            None => larger_side(join),
        };
        // Rows of the other side of an outer join may be missing, and a state with them.
        let keeps_all = match join.join_type() {
            JoinType::Inner => true,
            JoinType::Left => side == JoinSide::Left,
            JoinType::Right => side == JoinSide::Right,
            _ => false,
        };
        if !keeps_all {
            return Ok(None);
        }
        self.side = side;
        self.on_side(join, side).map(Some)
    }

    fn on_side(&self, join: &HashJoinExec, side: JoinSide) -> Result<Self> {
        let plan = if side == JoinSide::Left { join.left() } else { join.right() };
        let keys = join.on().iter().map(|(left, right)| if side == JoinSide::Left { left } else { right });
        let mut needed = columns_of(keys)?;
        let of_filter = join.filter().into_iter().flat_map(|filter| filter.column_indices());
        needed.extend(of_filter.filter(|column| column.side == side).map(|column| column.index));
        let above = self.needed.iter().filter_map(|at| place(join, *at));
        needed.extend(above.filter(|(of, _)| *of == side).map(|(_, at)| at));
        let moved = |expression: &Arc<dyn PhysicalExpr>| {
            with_columns(Arc::clone(expression), &|column| match place(join, column.index()) {
                Some((of, at)) if of == side => Ok(Column::new(column.name(), at)),
                _ => internal_err!("column {column} is not of the side of a join that functions read"),
            })
        };
        let functions = self.functions.iter().map(|input| input.rewritten(&moved));
        let functions = functions.collect::<Result<_>>()?;
        Ok(Self { plan: Arc::clone(plan), needed, functions, side: JoinSide::None })
    }
}

/// The side of a join, and the column there, that one of its columns is.
pub(super) fn place(join: &HashJoinExec, column: usize) -> Option<(JoinSide, usize)> {
    let column = match &join.projection {
        Some(chosen) => *chosen.get(column)?,
        None => column,
    };
    let left = join.left().schema().fields().len();
    Some(if column < left { (JoinSide::Left, column) } else { (JoinSide::Right, column - left) })
}

/// The side for functions that read no columns, as `count(*)`.
fn larger_side(join: &HashJoinExec) -> JoinSide {
    let rows = |plan| Facts::of(plan).map_or(0.0, |facts| facts.rows);
    match join.join_type() {
        JoinType::Left => JoinSide::Left,
        JoinType::Right => JoinSide::Right,
        _ if rows(join.left()) > rows(join.right()) => JoinSide::Left,
        _ => JoinSide::Right,
    }
}

/// The expression over the columns that a projection is computed of.
fn inlined(expression: &Arc<dyn PhysicalExpr>, chosen: &[ProjectionExpr]) -> Result<Arc<dyn PhysicalExpr>> {
    let inlined = Arc::clone(expression).transform_down(|node| {
        let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
        match chosen.get(column.index()) {
            Some(of) => Ok(Transformed::new(Arc::clone(&of.expr), true, TreeNodeRecursion::Jump)),
            None => internal_err!("column {column} is not in the projection below it"),
        }
    });
    inlined.data()
}

/// Whether a type has values of any length.
pub(super) fn is_long(schema: &Schema, expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.data_type(schema).is_ok_and(|of| of.is_string() || of.is_binary())
}
