//! Decimals beside floating-point numbers become floating-point numbers, as in PostgreSQL and DuckDB. DataFusion makes decimals with
//! 15 digits after the point of both, into which most floating-point numbers do not fit, and NaN never.

use bowshot_types::casts::bytes_of;
use bowshot_types::{are_uuids, with_uuids};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Projection, Union};
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

pub(super) fn arguments(args: &mut [Expr], schema: &DFSchema) -> bool {
    args.len() > 1 && together(args.iter_mut(), schema)
}

/// Makes one kind of numbers of expressions; says whether it did.
pub(super) fn together<'a>(all: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
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
    match of_one_kind(union.inputs.iter().map(Arc::clone).collect())? {
        // The schema that it had is that of the first input as it was.
        Some(inputs) => Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))),
        None => Ok(Transformed::no(LogicalPlan::Union(union).recompute_schema()?)),
    }
}

/// Plans whose columns are put together, with floating-point numbers where some have those and others decimals, and with texts
/// where some have those and others UUIDs that are bytes, and with bytes beside texts; `None` where they are all right.
pub(crate) fn of_one_kind(plans: Vec<Arc<LogicalPlan>>) -> Result<Option<Vec<Arc<LogicalPlan>>>> {
    let columns = plans.first().map_or(0, |plan| plan.schema().fields().len());
    let schemas: Vec<DFSchemaRef> = plans.iter().map(|plan| with_uuids(plan)).collect();
    let has = |place: usize, is: fn(&Field) -> bool| {
        schemas.iter().filter_map(|schema| schema.fields().get(place)).any(|field| is(field))
    };
    let wanted = (0..columns).map(|place| {
        if has(place, |field| field.data_type().is_floating()) && has(place, is_decimal) {
            Some(DataType::Float64)
        } else if !has(place, is_text) {
            None
        } else if has(place, are_uuids) {
            Some(DataType::Utf8)
        } else {
            has(place, is_bytes).then_some(DataType::Binary)
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

fn is_text(field: &Field) -> bool {
    field.data_type().is_string()
}

fn is_bytes(field: &Field) -> bool {
    *field.data_type() == DataType::Binary
}

fn with_types(input: Arc<LogicalPlan>, wanted: &[Option<DataType>]) -> Result<LogicalPlan> {
    let schema = with_uuids(&input);
    let columns = schema.iter().zip(wanted).map(|((relation, field), wanted)| {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        match wanted {
            Some(to) if is_decimal(field) || are_uuids(field) => {
                let cast = Expr::Cast(Cast::new(Box::new(column), to.clone()));
                Ok(cast.alias_qualified(relation.cloned(), field.name()))
            }
            Some(DataType::Binary) if is_text(field) => {
                bytes_of(column).map(|bytes| bytes.alias_qualified(relation.cloned(), field.name()))
            }
            _ => Ok(column),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(columns, input)?))
}
