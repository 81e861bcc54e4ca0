//! Inner joins that lie directly above one another, taken apart: what is joined, and by which conditions.

use super::set::RelationSet;
use crate::physical_expressions::{can_move, for_each_column, never_fails, with_columns};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, all_columns};
use std::sync::Arc;

/// Relations and the conditions that join them. Columns are counted through all relations, in the order of those.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) relations: Vec<Arc<dyn ExecutionPlan>>,
    /// Number of the first column of each relation, and of all columns behind the last one.
    pub(super) starts: Vec<usize>,
    /// Pairs of columns that must be equal, and not null.
    pub(super) equalities: Vec<(usize, usize)>,
    pub(super) conditions: Vec<Condition>,
    /// The columns that leave the tree.
    pub(super) output: Vec<usize>,
    /// How its joins were meant to spread.
    pub(super) mode: PartitionMode,
}

/// A condition between relations that is no equality of two columns. It can be judged as soon as all those are joined.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) expression: Arc<dyn PhysicalExpr>,
    pub(super) relations: RelationSet,
    /// Whether it may fail for rows that conditions before it have taken away in the order of the query.
    pub(super) may_fail: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    Relation(usize),
    Join(Box<Shape>, Box<Shape>),
}

impl Shape {
    pub(super) fn relations(&self) -> RelationSet {
        match self {
            Self::Relation(relation) => RelationSet::of(*relation),
            Self::Join(left, right) => left.relations().with(right.relations()),
        }
    }
}

impl Tree {
    /// The joins at the top of a plan and how they are nested; `None` if there are none, or more than are looked at.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<(Self, Shape)>> {
        let Some(join) = joined(plan) else { return Ok(None) };
        let mut tree = Self {
            relations: Vec::new(),
            starts: vec![0],
            equalities: Vec::new(),
            conditions: Vec::new(),
            output: Vec::new(),
            mode: *join.partition_mode(),
        };
        let (shape, output) = tree.add(plan)?;
        tree.output = output;
        Ok((tree.relations.len() <= RelationSet::LIMIT).then_some((tree, shape)))
    }

    pub(super) fn relation(&self, column: usize) -> usize {
        self.starts.partition_point(|start| *start <= column) - 1
    }

    /// Takes a plan apart, and says which columns it gives.
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<(Shape, Vec<usize>)> {
        if let Some(join) = joined(plan) {
            return match plan.downcast_ref::<ProjectionExec>() {
                Some(projection) => {
                    let (shape, columns) = self.add(projection.input())?;
                    let chosen = projection.expr().iter().map(|chosen| place(&chosen.expr, &columns));
                    Ok((shape, chosen.collect::<Result<_>>()?))
                }
                None => self.add_join(join),
            };
        }
        let start = self.starts[self.relations.len()];
        let end = start + plan.schema().fields().len();
        self.relations.push(Arc::clone(plan));
        self.starts.push(end);
        Ok((Shape::Relation(self.relations.len() - 1), (start..end).collect()))
    }

    fn add_join(&mut self, join: &HashJoinExec) -> Result<(Shape, Vec<usize>)> {
        let (left_shape, left) = self.add(join.left())?;
        let (right_shape, right) = self.add(join.right())?;
        for (one, other) in join.on() {
            self.equalities.push((place(one, &left)?, place(other, &right)?));
        }
        if let Some(filter) = join.filter() {
            let joined = left_shape.relations().with(right_shape.relations());
            self.add_filter(filter, (&left, &right), joined)?;
        }
        let both = [left, right].concat();
        let columns = match &join.projection {
            Some(chosen) => chosen.iter().map(|column| both[*column]).collect(),
            None => both,
        };
        Ok((Shape::Join(Box::new(left_shape), Box::new(right_shape)), columns))
    }

    /// A filter of a join of relations, whose two sides give those columns.
    fn add_filter(
        &mut self,
        filter: &JoinFilter,
        (left, right): (&[usize], &[usize]),
        joined: RelationSet,
    ) -> Result<()> {
        let mut columns = Vec::with_capacity(filter.column_indices().len());
        for column in filter.column_indices() {
            match column.side {
                JoinSide::Left => columns.push(left[column.index]),
                JoinSide::Right => columns.push(right[column.index]),
                JoinSide::None => return internal_err!("an inner join has columns of its two sides only"),
            }
        }
        let everywhere = |expression: &Arc<dyn PhysicalExpr>| {
            with_columns(Arc::clone(expression), &|column| {
                Ok(Column::new(column.name(), columns[column.index()]))
            })
        };
        if !never_fails(filter.expression(), filter.schema()) {
            // It may rely on it that each of these has taken rows away.
            let expression = everywhere(filter.expression())?;
            self.conditions.push(Condition { expression, relations: joined, may_fail: true });
            return Ok(());
        }
        for conjunct in split_conjunction(filter.expression()) {
            let expression = everywhere(conjunct)?;
            let mut relations = RelationSet::default();
            for_each_column(&expression, &mut |column| {
                relations = relations.with(RelationSet::of(self.relation(column.index())));
            })?;
            self.conditions.push(Condition { expression, relations, may_fail: false });
        }
        Ok(())
    }
}

/// The join that a plan is, or chooses columns of, if its two sides may be joined with others first.
fn joined(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return if all_columns(projection.expr()) { joined(projection.input()) } else { None };
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let (left, right) = (join.left().schema(), join.right().schema());
    let plain_keys = join.on().iter().all(|(one, other)| {
        let types = (one.data_type(&left), other.data_type(&right));
        let columns = one.downcast_ref::<Column>().is_some() && other.downcast_ref::<Column>().is_some();
        columns && matches!(types, (Ok(one), Ok(other)) if one == other)
    });
    let free = *join.join_type() == JoinType::Inner
        && join.null_equality() == NullEquality::NullEqualsNothing
        && join.fetch().is_none()
        && !join.on().is_empty()
        && plain_keys
        && join.filter().is_none_or(|filter| can_move(filter.expression()));
    free.then_some(join)
}

/// The number, through all relations, of a column of a plan.
fn place(expression: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> Result<usize> {
    match expression.downcast_ref::<Column>().and_then(|column| columns.get(column.index())) {
        Some(place) => Ok(*place),
        None => internal_err!("`{expression}` is no column of a joined plan"),
    }
}
