//! UUIDs in bytes, as in Arrow and in files of others, beside texts: the texts are read as UUIDs. Literals in PostgreSQL's form of
//! bytes (`'\x00ff…'`) stay bytes, and are read so beside other bytes.

use bowshot_formats::extension_types::EXTENSION;
use bowshot_types::casts::escaped_bytes;
use bowshot_types::declared::Declared;
use bowshot_types::{are_lists_of_uuids, is_uuid};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

/// Plans comparisons of the two, which have no type without us.
#[derive(Debug)]
pub(crate) struct UuidPlanner;

impl ExprPlanner for UuidPlanner {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::Spaceship
        );
        if compares {
            together([&mut expr.left, &mut expr.right], schema);
        } else if expr.op == BinaryOperator::StringConcat {
            among_bytes(vec![&mut expr.left, &mut expr.right], schema);
        }
        Ok(PlannerResult::Original(expr))
    }
}

pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    let changed = together(std::iter::once(list.expr.as_mut()).chain(list.list.iter_mut()), schema);
    if changed { Transformed::yes(list) } else { Transformed::no(list) }
}

pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    if together(all, schema) { Transformed::yes(between) } else { Transformed::no(between) }
}

/// Keys that a join has by their names (`USING`, INTERSECT); says whether there are any.
pub(super) fn keys(join: &mut Join) -> bool {
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut changed = false;
    for (one, other) in &mut join.on {
        let (Ok(of_one), Ok(of_other)) = (one.get_type(&left), other.get_type(&right)) else { continue };
        let text = if is_uuid_type(&of_one) && of_other.is_string() {
            other
        } else if is_uuid_type(&of_other) && of_one.is_string() {
            one
        } else {
            continue;
        };
        *text = read(std::mem::take(text));
        changed = true;
    }
    changed
}

/// A value beside the rows of a subquery; says whether one of the two is to be read as UUIDs.
pub(super) fn beside_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let plan = Arc::clone(&subquery.subquery);
    let columns = plan.schema().columns();
    let [column] = columns.as_slice() else { return Ok(false) };
    let row = Expr::Column(column.clone());
    let (Ok(of_expr), Ok(of_row)) = (expr.get_type(schema), row.get_type(plan.schema())) else {
        return Ok(false);
    };
    if is_uuid_type(&of_expr) && of_row.is_string() {
        let rows = Projection::try_new(vec![read(row)], plan)?;
        *subquery = subquery.with_plan(Arc::new(LogicalPlan::Projection(rows)));
    } else if is_uuid_type(&of_row) && of_expr.is_string() {
        *expr = read(std::mem::take(expr));
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn read(text: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(text), UUID))
}

const UUID: DataType = DataType::FixedSizeBinary(16);
const JSON: &str = "arrow.json";

fn is_uuid_type(data_type: &DataType) -> bool {
    *data_type == UUID
}

/// What `pg_typeof` says of values that are more than their type.
pub(super) fn told_type(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let ("pg_typeof", [value]) = (call.name(), call.args.as_slice()) else { return None };
    let (_, field) = value.to_field(schema).ok()?;
    match field.as_ref() {
        _ if is_uuid(value, schema) => Some(lit("uuid")),
        field if are_lists_of_uuids(field) => Some(lit("uuid[]")),
        field if !is_json_field(field) => None,
        field if Declared::of(field) == Some(Declared::Jsonb) => Some(lit("jsonb")),
        _ => Some(lit("json")),
    }
}

pub(super) fn is_json_field(field: &Field) -> bool {
    field.data_type().is_string() && field.metadata().get(EXTENSION).is_some_and(|name| name == JSON)
}

/// Reads texts that are written out among bytes as bytes; says whether there are any.
fn among_bytes(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let has_uuid = |value: &&mut Expr| value.get_type(schema).is_ok_and(|of| is_uuid_type(&of));
    values.iter().any(|value| written(value).is_some())
        && !values.iter().any(has_uuid)
        && together(values, schema)
}

/// The same for values that one is chosen of, or compared with: what is written out beside UUIDs is one.
pub(super) fn among_choices(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !values.iter().any(|value| is_uuid(value, schema)) {
        return among_bytes(values, schema);
    }
    let mut changed = false;
    for value in values {
        if written(value).is_some_and(|text| !text.starts_with("\\x")) {
            *value = read(std::mem::take(value));
            changed = true;
        }
    }
    changed
}

/// Refuses texts that are not written out beside UUIDs, as PostgreSQL does.
///
/// # Errors
/// A planning error that names the types.
pub(super) fn check_choices(call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    // A parameter may have no type yet.
    let types: Vec<DataType> = call.args.iter().filter_map(|value| value.get_type(schema).ok()).collect();
    if types.iter().any(is_uuid_type) && types.iter().any(DataType::is_string) {
        let types: Vec<_> = types.iter().map(|of| if is_uuid_type(of) { "uuid" } else { "text" }).collect();
        return plan_err!("function {}({}) does not exist", call.name(), types.join(", "));
    }
    Ok(())
}

/// Reads a text beside a list of UUIDs as one, and those that a list is made of beside a UUID; says whether there are any.
pub(super) fn quantified(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    if !call.name().starts_with("quantified_") {
        return false;
    }
    let [_, value, list] = call.args.as_mut_slice() else { return false };
    let (Ok(of_value), Ok(DataType::List(item))) = (value.get_type(schema), list.get_type(schema)) else {
        return false;
    };
    if is_uuid_type(item.data_type()) && of_value.is_string() {
        *value = read(std::mem::take(value));
        return true;
    }
    match list {
        Expr::ScalarFunction(made) if is_uuid_type(&of_value) && item.data_type().is_string() => {
            if made.name() != "make_array" {
                return false;
            }
            made.args.iter_mut().for_each(|text| *text = read(std::mem::take(text)));
            true
        }
        _ => false,
    }
}

/// Reads the texts as UUIDs if others are, and those that are written out as bytes if others are bytes; says whether there are
/// any.
fn together<'a>(all: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let all: Vec<_> = all.into_iter().map(|expr| (expr.get_type(schema).ok(), expr)).collect();
    let has = |is: fn(&DataType) -> bool| all.iter().any(|(of, _)| of.as_ref().is_some_and(is));
    let uuids = has(is_uuid_type);
    if !uuids && !has(|of| matches!(of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)) {
        return false;
    }
    let mut changed = false;
    for (of, expr) in all {
        if !of.is_some_and(|of| of.is_string()) {
            continue;
        }
        let meant = match written(expr) {
            _ if !uuids => written(expr).map(|_| bytes(expr)),
            Some(text) if text.starts_with("\\x") => None,
            _ => Some(read(expr.clone())),
        };
        if let Some(meant) = meant {
            *expr = meant;
            changed = true;
        }
    }
    changed
}

fn bytes(text: &Expr) -> Expr {
    let cast = || Expr::Cast(Cast::new(Box::new(text.clone()), DataType::Binary));
    escaped_bytes(text).unwrap_or_else(cast)
}

fn written(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}
