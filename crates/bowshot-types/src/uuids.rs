//! UUIDs as bytes: which values are UUIDs, and their texts where JSON is made of them. Above an aggregate, a CASE or an `unnest`,
//! columns have only the type; what they are is followed from the tables up ([`result_metadata`]).

use super::casts::Columns;
use super::{result_metadata, to_text};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use std::sync::Arc;

/// Functions and aggregates that make JSON of any values.
const MAKING_JSON: &[&str] = bowshot_api::words! {
    json_agg json_array json_array_of_values json_group_array json_group_object json_object json_object_agg
    json_object_of_values json_quote to_json
};

/// Whether values are UUIDs that are bytes. What gives one of several values passes on their type alone.
pub fn is_uuid(expr: &Expr, columns: &DFSchema) -> bool {
    let Ok((_, field)) = expr.to_field(columns) else { return false };
    if *field.data_type() != DataType::FixedSizeBinary(16) {
        return false;
    }
    let is = |value: &Expr| is_uuid(value, columns);
    match expr {
        Expr::ScalarFunction(call) => match (call.name(), call.args.as_slice()) {
            ("coalesce" | "greatest" | "ifnull" | "least" | "nullif" | "nvl", values) => {
                values.iter().any(is)
            }
            ("array_element", [list, ..]) => {
                list.to_field(columns).is_ok_and(|(_, list)| are_lists_of_uuids(&list))
            }
            _ => are_uuids(&field),
        },
        Expr::Case(case) => {
            case.when_then_expr.iter().any(|(_, then)| is(then)) || case.else_expr.as_deref().is_some_and(is)
        }
        Expr::ScalarSubquery(query) => {
            with_uuids(&query.subquery).fields().first().is_some_and(|field| are_uuids(field))
        }
        _ => are_uuids(&field),
    }
}

/// Whether values are UUIDs by the extension type of Arrow.
pub fn are_uuids(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(16)
        && field.metadata().get(EXTENSION).is_some_and(|name| name == UUID)
}

/// Whether values are lists of such.
pub fn are_lists_of_uuids(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            are_uuids(item)
        }
        _ => false,
    }
}

/// The columns of a plan, of which those of UUIDs say so.
pub fn with_uuids(plan: &LogicalPlan) -> DFSchemaRef {
    let schema = plan.schema();
    if !schema.fields().iter().any(|field| may_lack_mark(field)) {
        return Arc::clone(schema);
    }
    let described = result_metadata::describe_plan(plan, 0);
    let fields = schema.iter().zip(&described).map(|((table, field), described)| {
        let field = match described {
            Some(described) if may_lack_mark(field) => described.mark(field),
            _ => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let marked = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone());
    marked.map_or_else(|_| Arc::clone(schema), Arc::new)
}

/// Whether bytes, or lists of such, may be UUIDs without saying so.
fn may_lack_mark(field: &Field) -> bool {
    match field.data_type() {
        DataType::FixedSizeBinary(16) => !field.metadata().contains_key(EXTENSION),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            may_lack_mark(item)
        }
        _ => false,
    }
}

/// What makes JSON gets the texts of UUIDs: the bytes that a file is read as do not say what they are.
pub(super) fn in_json(mut expr: Expr, columns: &Columns) -> Transformed<Expr> {
    let arguments = match &mut expr {
        Expr::ScalarFunction(call) if MAKING_JSON.contains(&call.func.name()) => &mut call.args,
        // DISTINCT values are sorted as they are.
        Expr::AggregateFunction(call) if MAKING_JSON.contains(&call.func.name()) && !call.params.distinct => {
            &mut call.params.args
        }
        _ => return Transformed::no(expr),
    };
    let changed = all_as_texts(arguments, columns.all());
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

fn all_as_texts(values: &mut [Expr], columns: &DFSchema) -> bool {
    let mut changed = false;
    for value in values {
        changed |= as_texts(value, columns);
    }
    changed
}

/// UUIDs, or those that a row or an array is made of, as texts; says whether there are any.
fn as_texts(value: &mut Expr, columns: &DFSchema) -> bool {
    if is_uuid(value, columns) {
        *value = to_text::function().call(vec![std::mem::take(value)]);
        return true;
    }
    let Expr::ScalarFunction(call) = value else { return false };
    match call.func.name() {
        "named_struct" | "struct" => all_as_texts(&mut call.args, columns),
        "make_array" if call.args.iter().all(|value| is_uuid(value, columns)) => {
            all_as_texts(&mut call.args, columns)
        }
        _ => false,
    }
}
