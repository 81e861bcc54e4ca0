//! Decimals beside floating-point numbers become such numbers, as in PostgreSQL and DuckDB. DataFusion makes decimals with 15
//! digits behind the point of both, which most floating-point numbers do not fit, and NaN is none.

use super::uuids;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, ExprSchemable, LogicalPlan, Projection, Union};
use std::sync::Arc;

/// Two sides of an operator.
pub(super) fn beside(binary: BinaryExpr, (left, right): (&DataType, &DataType)) -> Transformed<BinaryExpr> {
    let BinaryExpr { left: one, op, right: other } = binary;
    if left.is_floating() && right.is_decimal() {
        return Transformed::yes(BinaryExpr::new(one, op, Box::new(float(*other))));
    }
    if left.is_decimal() && right.is_floating() {
        return Transformed::yes(BinaryExpr::new(Box::new(float(*one)), op, other));
    }
    Transformed::no(BinaryExpr::new(one, op, other))
}

pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    let changed = together(all.into_iter(), schema);
    if changed { Transformed::yes(between) } else { Transformed::no(between) }
}

pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    let changed = together(std::iter::once(list.expr.as_mut()).chain(list.list.iter_mut()), schema);
    if changed { Transformed::yes(list) } else { Transformed::no(list) }
}

pub(super) fn case(mut case: Case, schema: &DFSchema) -> Transformed<Case> {
    let answers = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
    let mut changed = together(answers.chain(case.else_expr.iter_mut().map(AsMut::as_mut)), schema);
    if let Some(base) = &mut case.expr {
        let tests = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
        changed |= together(std::iter::once(base.as_mut()).chain(tests), schema);
    }
    if changed { Transformed::yes(case) } else { Transformed::no(case) }
}

/// Arguments of a function.
pub(super) fn arguments(args: &mut [Expr], schema: &DFSchema) -> bool {
    args.len() > 1 && together(args.iter_mut(), schema)
}

/// Makes one kind of numbers of expressions; says whether it did.
fn together<'a>(all: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut all: Vec<_> = all.map(|expr| (expr.get_type(schema).ok(), expr)).collect();
    if !all.iter().any(|(of, _)| of.as_ref().is_some_and(DataType::is_floating)) {
        return false;
    }
    let mut changed = false;
    for (of, expr) in &mut all {
        if of.as_ref().is_some_and(DataType::is_decimal) {
            **expr = float(std::mem::take(*expr));
            changed = true;
        }
    }
    changed
}

fn float(decimal: Expr) -> Expr {
    match decimal {
        // The text is read as the nearest number; a cast divides by a power of ten, and may miss it.
        Expr::Literal(ScalarValue::Decimal128(Some(digits), _, scale), metadata) => {
            let nearest = format!("{digits}e{}", -i32::from(scale)).parse().ok();
            Expr::Literal(ScalarValue::Float64(nearest), metadata)
        }
        other => Expr::Cast(Cast::new(Box::new(other), DataType::Float64)),
    }
}

/// The inputs of a union with columns of one kind.
pub(super) fn union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let inputs = of_one_kind(union.inputs.iter().map(Arc::clone).collect())?;
    let changed = inputs.is_some();
    let union = Union { inputs: inputs.unwrap_or(union.inputs), schema: union.schema };
    let plan = LogicalPlan::Union(union).recompute_schema()?;
    Ok(if changed { Transformed::yes(plan) } else { Transformed::no(plan) })
}

/// Plans whose columns are put together, with floating-point numbers where some have those and others decimals, and with texts
/// where some have those and others UUIDs that are bytes; `None` where they are all right.
pub(in crate::rules) fn of_one_kind(plans: Vec<Arc<LogicalPlan>>) -> Result<Option<Vec<Arc<LogicalPlan>>>> {
    let columns = plans.first().map_or(0, |plan| plan.schema().fields().len());
    let has = |place: usize, is: fn(&Field) -> bool| {
        plans.iter().filter_map(|plan| plan.schema().fields().get(place)).any(|field| is(field))
    };
    let wanted = (0..columns).map(|place| {
        if has(place, |field| field.data_type().is_floating()) && has(place, is_decimal) {
            Some(DataType::Float64)
        } else {
            let has_both =
                has(place, uuids::is_bytes_of_uuid) && has(place, |field| field.data_type().is_string());
            has_both.then_some(DataType::Utf8)
        }
    });
    let wanted: Vec<Option<DataType>> = wanted.collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(None);
    }
    plans.into_iter().map(|plan| with_types(plan, &wanted).map(Arc::new)).collect::<Result<_>>().map(Some)
}

fn is_decimal(field: &Field) -> bool {
    field.data_type().is_decimal()
}

fn with_types(input: Arc<LogicalPlan>, wanted: &[Option<DataType>]) -> Result<LogicalPlan> {
    let columns = input.schema().iter().zip(wanted).map(|((relation, field), wanted)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        match wanted {
            Some(to) if is_decimal(field) || uuids::is_bytes_of_uuid(field) => {
                let cast = Expr::Cast(Cast::new(Box::new(column), to.clone()));
                cast.alias_qualified(relation.cloned(), field.name())
            }
            _ => column,
        }
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, input)?))
}
