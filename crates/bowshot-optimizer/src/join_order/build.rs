//! The plan of a shape.

use super::super::barrier::Barrier;
use super::cost::Model;
use super::set::RelationSet;
use super::tree::{Condition, Shape, Tree};
use crate::physical_expressions::{for_each_column, with_columns};
use arrow::datatypes::Schema;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, ScalarValue, internal_err};
use datafusion::physical_expr::expressions::{CaseExpr, Column, Literal};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A plan and the columns, counted through all relations, that it gives.
type Built = (Arc<dyn ExecutionPlan>, Vec<usize>);

/// Builds the plan of a tree in another order, with the same columns as before.
pub(super) fn plan(
    tree: &Tree,
    model: &mut Model,
    shape: &Shape,
    schema: &Schema,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut builder = Builder { tree, model: &mut *model, conditions: tree.conditions.clone() };
    let (plan, columns) = builder.build(shape, &tree.output.iter().copied().collect())?;
    if !builder.conditions.is_empty() {
        return internal_err!("a condition between joined relations found no place");
    }
    let plan = Barrier::with_rows(plan, model.rows(shape.relations()) as usize);
    let chosen = tree.output.iter().zip(schema.fields());
    let chosen = chosen.map(|(column, field)| {
        Ok(ProjectionExpr { expr: at(*column, &columns, &plan)?, alias: field.name().clone() })
    });
    let chosen = chosen.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new_with_schema_metadata(chosen, plan, schema)?))
}

struct Builder<'a> {
    tree: &'a Tree,
    model: &'a mut Model,
    /// Those that no join has yet.
    conditions: Vec<Condition>,
}

impl Builder<'_> {
    /// A plan that gives at least the needed columns.
    fn build(&mut self, shape: &Shape, needed: &BTreeSet<usize>) -> Result<Built> {
        let (left, right) = match shape {
            Shape::Relation(relation) => {
                let columns = self.tree.starts[*relation]..self.tree.starts[relation + 1];
                return Ok((Arc::clone(&self.tree.relations[*relation]), columns.collect()));
            }
            Shape::Join(one, other) => {
                // The hash table is built of the left side.
                let smaller = self.model.rows(one.relations()) <= self.model.rows(other.relations());
                if smaller { (one, other) } else { (other, one) }
            }
        };
        let sets = (left.relations(), right.relations());
        let keys = self.model.keys(sets.0, sets.1);
        let conditions = self.take_conditions(left, right);
        let mut below = needed.clone();
        below.extend(keys.iter().flat_map(|(one, other)| [*one, *other]));
        for condition in &conditions {
            for_each_column(&condition.expression, &mut |column| {
                below.insert(column.index());
            })?;
        }
        let (mut left, mut right) = (self.build(left, &below)?, self.build(right, &below)?);
        left.0 = Barrier::with_rows(left.0, self.model.rows(sets.0) as usize);
        right.0 = Barrier::with_rows(right.0, self.model.rows(sets.1) as usize);
        join((&left, &right), &keys, conditions, self.tree.mode).and_then(|built| only(built, needed))
    }

    /// The conditions that can be judged when two sides are joined, and could not be before. Those of one relation are
    /// judged in its first join.
    fn take_conditions(&mut self, left: &Shape, right: &Shape) -> Vec<Condition> {
        let joined = left.relations().with(right.relations());
        let below = |relations: RelationSet| {
            [left, right]
                .into_iter()
                .any(|side| matches!(side, Shape::Join(..)) && relations.is_within(side.relations()))
        };
        let taken = self
            .conditions
            .extract_if(.., |condition| condition.relations.is_within(joined) && !below(condition.relations));
        taken.collect()
    }
}

fn join(
    (left, right): (&Built, &Built),
    keys: &[(usize, usize)],
    conditions: Vec<Condition>,
    mode: PartitionMode,
) -> Result<Built> {
    let on = keys
        .iter()
        .map(|(one, other)| Ok((at(*one, &left.1, &left.0)?, at(*other, &right.1, &right.0)?)))
        .collect::<Result<Vec<_>>>()?;
    if on.is_empty() {
        return internal_err!("a join without keys");
    }
    let filter = all(conditions)?.map(|condition| filter(&condition, left, right)).transpose()?;
    let join = HashJoinExec::try_new(
        Arc::clone(&left.0),
        Arc::clone(&right.0),
        on,
        filter,
        &JoinType::Inner,
        None,
        mode,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok((Arc::new(join), [left.1.as_slice(), right.1.as_slice()].concat()))
}

/// The condition that all of those hold. One that may fail is judged for the rows alone for which those before it hold, which
/// come from lower joins of the query; `AND` judges both sides.
fn all(conditions: Vec<Condition>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut whole: Option<Arc<dyn PhysicalExpr>> = None;
    // Those that never fail may come first, whatever their join was.
    let (careful, plain): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| condition.may_fail);
    for condition in plain.into_iter().chain(careful) {
        whole = Some(match whole {
            None => condition.expression,
            Some(before) if condition.may_fail => {
                let never = Arc::new(Literal::new(ScalarValue::from(false)));
                Arc::new(CaseExpr::try_new(None, vec![(before, condition.expression)], Some(never))?)
            }
            Some(before) => conjunction([before, condition.expression]),
        });
    }
    Ok(whole)
}

/// A condition over the columns of two sides.
fn filter(condition: &Arc<dyn PhysicalExpr>, left: &Built, right: &Built) -> Result<JoinFilter> {
    let mut used = BTreeSet::new();
    for_each_column(condition, &mut |column| {
        used.insert(column.index());
    })?;
    let (mut indices, mut fields) = (Vec::with_capacity(used.len()), Vec::with_capacity(used.len()));
    for column in &used {
        let place = |side: &Built| side.1.iter().position(|given| given == column);
        let (side, index, plan) = match (place(left), place(right)) {
            (Some(index), _) => (JoinSide::Left, index, &left.0),
            (None, Some(index)) => (JoinSide::Right, index, &right.0),
            (None, None) => return internal_err!("column {column} of a condition is not joined"),
        };
        indices.push(ColumnIndex { index, side });
        fields.push(Arc::clone(&plan.schema().fields()[index]));
    }
    let places: Vec<usize> = used.into_iter().collect();
    let schema = Arc::new(Schema::new(fields));
    let expression =
        with_columns(Arc::clone(condition), &|column| match places.binary_search(&column.index()) {
            Ok(place) => Ok(Column::new(schema.field(place).name(), place)),
            Err(_) => internal_err!("column {column} of a condition was not found before"),
        })?;
    Ok(JoinFilter::new(expression, indices, schema))
}

/// The plan without columns that nobody needs.
fn only((plan, columns): Built, needed: &BTreeSet<usize>) -> Result<Built> {
    let kept: Vec<usize> = columns.iter().copied().filter(|column| needed.contains(column)).collect();
    if kept.len() == columns.len() {
        return Ok((plan, columns));
    }
    let chosen = kept
        .iter()
        .map(|column| {
            let expr = at(*column, &columns, &plan)?;
            let alias =
                expr.downcast_ref::<Column>().map_or_else(String::new, |column| column.name().to_owned());
            Ok(ProjectionExpr { expr, alias })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok((Arc::new(ProjectionExec::try_new(chosen, plan)?), kept))
}

fn at(column: usize, columns: &[usize], plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn PhysicalExpr>> {
    match columns.iter().position(|given| *given == column) {
        Some(place) => Ok(Arc::new(Column::new(plan.schema().field(place).name(), place))),
        None => internal_err!("column {column} is not there after the joins"),
    }
}
