//! The plan that groups at one level, and takes states of groups up to the aggregation.

use super::levels::{Input, Level, place};
use crate::node_rule::{Replacement, call_again};
use crate::physical_expressions::with_columns;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{JoinSide, Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// A level with states: first the columns that are needed above it, then the states of all functions.
struct Built {
    plan: Arc<dyn ExecutionPlan>,
    /// Which columns of the level those are.
    columns: Vec<usize>,
}

/// The aggregation in two steps; `None` where its states would not be of the types that are expected above it.
pub(super) fn plan(partial: &AggregateExec, levels: &[Level], chosen: usize) -> Replacement {
    let Some((lowest, above)) = levels.get(..=chosen).and_then(<[Level]>::split_last) else {
        return Ok(None);
    };
    let mut built = grouped(partial, lowest)?;
    for level in above.iter().rev() {
        built = if let Some(join) = level.plan.downcast_ref::<HashJoinExec>() {
            joined(level, join, &built)?
        } else if let Some(projection) = level.plan.downcast_ref::<ProjectionExec>() {
            projected(level, projection, &built)?
        } else {
            return internal_err!("states go through projections and joins only");
        };
    }
    if !has_states_of(&built, partial) {
        return Ok(None);
    }
    let keys_and_states = keys_and_states(partial, &built)?;
    let reduced = AggregateExec::try_new(
        AggregateMode::PartialReduce,
        partial.group_expr().as_final(),
        partial.aggr_expr().to_vec(),
        vec![None; partial.aggr_expr().len()],
        keys_and_states,
        partial.input_schema(),
    )?;
    Ok((reduced.schema() == partial.schema()).then(|| Arc::new(reduced) as Arc<_>))
}

/// The rows of a level in groups of all that is needed above.
fn grouped(partial: &AggregateExec, level: &Level) -> Result<Built> {
    let schema = level.plan.schema();
    let keys = level.needed.iter().map(|at| {
        let name = schema.field(*at).name().clone();
        (Arc::new(Column::new(&name, *at)) as Arc<dyn PhysicalExpr>, name)
    });
    let functions =
        partial.aggr_expr().iter().zip(&level.functions).map(|(function, Input { arguments, .. })| {
            call_again(function, Arc::new(function.fun().clone()), arguments.clone(), Arc::clone(&schema))
        });
    let plan = AggregateExec::try_new(
        AggregateMode::Partial,
        PhysicalGroupBy::new_single(keys.collect()),
        functions.collect::<Result<_>>()?,
        level.functions.iter().map(|input| input.filter.clone()).collect(),
        Arc::clone(&level.plan),
        Arc::clone(&schema),
    )?;
    Ok(Built { plan: Arc::new(plan), columns: level.needed.iter().copied().collect() })
}

/// A projection of what is needed, and of states.
fn projected(level: &Level, projection: &ProjectionExec, built: &Built) -> Result<Built> {
    let old = projection.schema();
    let mut chosen = Vec::with_capacity(built.plan.schema().fields().len());
    let mut fields = Vec::with_capacity(chosen.capacity());
    for at in &level.needed {
        let Some(of) = projection.expr().get(*at) else {
            return internal_err!("no column {at} is projected");
        };
        chosen.push(ProjectionExpr { expr: built.moved(&of.expr)?, alias: of.alias.clone() });
        fields.push(Arc::clone(&old.fields()[*at]));
    }
    chosen.extend(built.states());
    fields.extend(built.state_fields());
    let schema = Schema::new_with_metadata(fields, old.metadata().clone());
    let plan = ProjectionExec::try_new_with_schema_metadata(chosen, Arc::clone(&built.plan), &schema)?;
    Ok(Built { plan: Arc::new(plan), columns: level.needed.iter().copied().collect() })
}

/// A join with states on one side.
fn joined(level: &Level, join: &HashJoinExec, built: &Built) -> Result<Built> {
    let is_left = level.side == JoinSide::Left;
    let children = if is_left {
        vec![Arc::clone(&built.plan), Arc::clone(join.right())]
    } else {
        vec![Arc::clone(join.left()), Arc::clone(&built.plan)]
    };
    let on = join.on().iter().map(|(left, right)| {
        Ok(if is_left {
            (built.moved(left)?, Arc::clone(right))
        } else {
            (Arc::clone(left), built.moved(right)?)
        })
    });
    let on = on.collect::<Result<_>>()?;
    let left = children[0].schema().fields().len();
    let first = |side: JoinSide| if side == JoinSide::Left { 0 } else { left };
    let mut chosen = Vec::with_capacity(level.needed.len());
    for at in &level.needed {
        let Some((side, of)) = place(join, *at) else { return internal_err!("no column {at} is joined") };
        chosen.push(first(side) + if side == level.side { built.place(of)? } else { of });
    }
    chosen.extend(built.state_places().map(|at| first(level.side) + at));
    let filter = join.filter().map(|filter| on_states(filter, level.side, built)).transpose()?;
    let plan = join
        .builder()
        .with_new_children(children)?
        .with_on(on)
        .with_filter(filter)
        .with_projection(Some(chosen))
        .recompute_properties()
        .reset_state()
        .build_exec()?;
    Ok(Built { plan, columns: level.needed.iter().copied().collect() })
}

/// The filter of a join one side of which has other columns.
fn on_states(filter: &JoinFilter, side: JoinSide, built: &Built) -> Result<JoinFilter> {
    let columns = filter.column_indices().iter().map(|column| {
        let index = if column.side == side { built.place(column.index)? } else { column.index };
        Ok(ColumnIndex { index, side: column.side })
    });
    let columns = columns.collect::<Result<_>>()?;
    Ok(JoinFilter::new(Arc::clone(filter.expression()), columns, Arc::clone(filter.schema())))
}

/// The keys of the aggregation, and states, as its second step reads them.
fn keys_and_states(partial: &AggregateExec, built: &Built) -> Result<Arc<dyn ExecutionPlan>> {
    let of_groups: SchemaRef = partial.schema();
    let keys = partial.group_expr().expr();
    let chosen =
        keys.iter().map(|(key, name)| Ok(ProjectionExpr { expr: built.moved(key)?, alias: name.clone() }));
    let mut chosen = chosen.collect::<Result<Vec<_>>>()?;
    chosen.extend(built.states());
    let fields: Vec<FieldRef> =
        of_groups.fields().iter().take(keys.len()).cloned().chain(built.state_fields()).collect();
    let schema = Schema::new_with_metadata(fields, of_groups.metadata().clone());
    let plan = ProjectionExec::try_new_with_schema_metadata(chosen, Arc::clone(&built.plan), &schema)?;
    Ok(Arc::new(plan))
}

/// Whether the states are of the types of those that the aggregation itself has.
fn has_states_of(built: &Built, partial: &AggregateExec) -> bool {
    let schema = partial.schema();
    let expected = schema.fields().iter().skip(partial.group_expr().expr().len());
    expected.map(|field| field.data_type()).eq(built.state_fields().iter().map(|field| field.data_type()))
}

impl Built {
    /// Where a column of the level is now.
    fn place(&self, column: usize) -> Result<usize> {
        match self.columns.binary_search(&column) {
            Ok(place) => Ok(place),
            Err(_) => internal_err!("column {column} is no key of groups before joins"),
        }
    }

    /// The expression over the columns of the level where they are now.
    fn moved(&self, expression: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        with_columns(Arc::clone(expression), &|column| {
            Ok(Column::new(column.name(), self.place(column.index())?))
        })
    }

    fn state_places(&self) -> std::ops::Range<usize> {
        self.columns.len()..self.plan.schema().fields().len()
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        self.plan.schema().fields().iter().skip(self.columns.len()).cloned().collect()
    }

    fn states(&self) -> Vec<ProjectionExpr> {
        let schema = self.plan.schema();
        let state = |at: usize| {
            let name = schema.field(at).name();
            let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, at));
            ProjectionExpr { expr, alias: name.clone() }
        };
        self.state_places().map(state).collect()
    }
}
