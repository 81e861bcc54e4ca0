//! Enumerated types: values are ordered by their labels and compared for equality as texts; a literal beside such a value must be one
//! of its labels. `ENUM('a', 'b')` of a column, which has no name, is ordered so by ORDER BY and windows, and compared as a text,
//! as in MySQL.

use super::enum_functions::{enum_value, is_enum_value, label, position};
use super::is_choice;
use super::untyped::{selected, with_value};
use crate::expressions::is_comparison;
use bowshot_api::{Error, Reason};
use bowshot_types::enums::EnumType;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Between, InList, ScalarFunction, SetComparison};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Union, lit,
};
use std::sync::Arc;

pub(super) fn of(expr: &Expr, schema: &DFSchema) -> Option<EnumType> {
    match expr {
        // Never one; the types of long sums take time.
        Expr::BinaryExpr(_) | Expr::Literal(..) | Expr::Negative(_) | Expr::Case(_) => None,
        Expr::Column(column) => EnumType::of(schema.field_from_column(column).ok()?),
        expr => EnumType::of(&expr.to_field(schema).ok()?.1),
    }
}

/// The same, if `CREATE TYPE` has made it.
pub(super) fn named(expr: &Expr, schema: &DFSchema) -> Option<EnumType> {
    of(expr, schema).filter(|of| of.name.is_some())
}

/// What a value is ordered by, if that is not the value itself.
pub(super) fn order_key(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    of(expr, schema).map(|of| position(expr.clone(), &of))
}

fn orders(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// The type that all values have of which one has one: texts that are written out are its labels.
fn common<'a>(
    values: impl Iterator<Item = &'a Expr> + Clone,
    schema: &DFSchema,
    ordered: bool,
) -> Result<Option<EnumType>> {
    // A type that was written out in a kept text may lack labels that its columns have got since.
    let all = values.clone().filter_map(|value| named(value, schema));
    let Some(common) = all.max_by_key(|of| of.labels.len()) else { return Ok(None) };
    for value in values {
        match value {
            Expr::Literal(value, _) if value.data_type().is_string() => {
                if let Some(text) = value.try_as_str().flatten() {
                    common.position(text).map_err(external)?;
                }
            }
            Expr::Literal(value, _) if value.is_null() => {}
            Expr::Placeholder(_) => {}
            value => match of(value, schema) {
                Some(other) if other.name == common.name => {}
                // Texts are equal to labels that read the same.
                None if !ordered => {}
                other => return Err(no_operator(&common, other.as_ref())),
            },
        }
    }
    Ok(Some(common))
}

fn no_operator(of: &EnumType, other: Option<&EnumType>) -> DataFusionError {
    let other = other.map_or_else(|| "text".to_owned(), EnumType::sql);
    let message =
        format!("operator does not exist: values of type {} and {other} are not compared", of.sql());
    external(
        Error::invalid(message)
            .with_reason(Reason::UndefinedOperator)
            .with_hint("cast one of them: `value::text`, or to the enumerated type"),
    )
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn replace(value: &mut Expr, of: &EnumType) {
    *value = position(std::mem::take(value), of);
}

/// Comparisons by an operator.
pub(super) fn compared(mut binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<BinaryExpr>> {
    if !is_comparison(binary.op) {
        return Ok(Transformed::no(binary));
    }
    let sides = [binary.left.as_ref(), binary.right.as_ref()];
    let Some(of) = common(sides.into_iter(), schema, orders(binary.op))? else {
        return Ok(Transformed::no(binary));
    };
    if !orders(binary.op) {
        return Ok(Transformed::no(binary));
    }
    replace(&mut binary.left, &of);
    replace(&mut binary.right, &of);
    Ok(Transformed::yes(binary))
}

/// `m BETWEEN 'a' AND 'b'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Result<Transformed<Between>> {
    let parts = [between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()];
    let Some(of) = common(parts.into_iter(), schema, true)? else { return Ok(Transformed::no(between)) };
    for part in [&mut between.expr, &mut between.low, &mut between.high] {
        replace(part, &of);
    }
    Ok(Transformed::yes(between))
}

/// `m IN ('a', 'b')`
pub(super) fn check_list(list: &InList, schema: &DFSchema) -> Result<()> {
    common(std::iter::once(list.expr.as_ref()).chain(&list.list), schema, false).map(drop)
}

/// `m > ALL (SELECT …)`; says whether it is one.
pub(super) fn beside_subquery(set: &mut SetComparison, schema: &DFSchema) -> Result<bool> {
    if !orders(set.op) {
        return Ok(false);
    }
    let plan = &set.subquery.subquery;
    let columns = plan.schema().columns();
    let [column] = columns.as_slice() else { return Ok(false) };
    let row = Expr::Column(column.clone());
    let (of_value, of_row) = (named(&set.expr, schema), named(&row, plan.schema()));
    match (of_value, of_row) {
        (Some(of), Some(other)) if of.name == other.name => {
            let rows = Projection::try_new(vec![position(row, &of)], Arc::clone(plan))?;
            set.subquery = set.subquery.with_plan(Arc::new(LogicalPlan::Projection(rows)));
            replace(&mut set.expr, &of);
            Ok(true)
        }
        (None, None) => Ok(false),
        (Some(of), other) | (other, Some(of)) => Err(no_operator(&of, other.as_ref())),
    }
}

/// Calls that take values of a type, or tell of it; `None` for others.
pub(super) fn called(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let name = call.name();
    if !is_choice(name) && !matches!(name, "pg_typeof" | "enum_range" | "enum_first" | "enum_last") {
        return Ok(None);
    }
    match name {
        "pg_typeof" => Ok(call.args.first().and_then(|value| named(value, schema)).map(|of| lit(of.sql()))),
        "greatest" | "least" => {
            let of = common(call.args.iter(), schema, true)?;
            Ok(of.map(|of| {
                let positions = call.args.iter().map(|value| position(value.clone(), &of)).collect();
                label(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), positions)), &of)
            }))
        }
        "enum_range" | "enum_first" | "enum_last" => enum_labels(call, schema).map(Some),
        _ => {
            let of = common(call.args.iter(), schema, false)?;
            let is_all = |of: &EnumType| call.args.iter().all(|value| belongs(value, of, schema));
            let of = of.filter(is_all);
            Ok(of.map(|of| enum_value(Expr::ScalarFunction(call.clone()), &of)))
        }
    }
}

fn belongs(value: &Expr, of: &EnumType, schema: &DFSchema) -> bool {
    matches!(value, Expr::Literal(..)) || named(value, schema).is_some_and(|other| other.name == of.name)
}

/// `enum_range(NULL::mood)` and its kind.
fn enum_labels(call: &ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let of = call.args.iter().find_map(|value| of(value, schema)).ok_or_else(|| {
        external(
            Error::invalid("could not determine actual enum type")
                .with_reason(Reason::DatatypeMismatch)
                .with_hint("cast the argument to the type: `enum_range(NULL::mood)`"),
        )
    })?;
    match call.name() {
        "enum_first" => return Ok(enum_value(lit(ScalarValue::Utf8(of.labels.first().cloned())), &of)),
        "enum_last" => return Ok(enum_value(lit(ScalarValue::Utf8(of.labels.last().cloned())), &of)),
        _ => {}
    }
    let (first, last) = match call.args.as_slice() {
        [first, last] => (bound(first, &of)?, bound(last, &of)?),
        _ => (None, None),
    };
    let (first, last) = (first.unwrap_or(0), last.map_or(of.labels.len(), |last| last + 1));
    let labels = of.labels.get(first..last).unwrap_or_default().iter();
    let labels: Vec<ScalarValue> = labels.map(|label| ScalarValue::from(label.as_str())).collect();
    let list = ScalarValue::new_list(&labels, &DataType::Utf8, true);
    Ok(Expr::Literal(ScalarValue::List(list), None))
}

/// Where a bound of a range stands that is written out; `None` for NULL.
fn bound(value: &Expr, of: &EnumType) -> Result<Option<usize>> {
    match value {
        Expr::Literal(value, _) if value.is_null() => Ok(None),
        Expr::Literal(value, _) if value.data_type().is_string() => {
            value.try_as_str().flatten().map(|text| of.position(text).map_err(external)).transpose()
        }
        Expr::Cast(cast) => bound(&cast.expr, of),
        // What a cast to the type, `enum_first` and `enum_last` have become.
        Expr::ScalarFunction(call) if call.name().starts_with("cast_as_enum") || is_enum_value(call) => {
            call.args.first().map_or(Ok(None), |value| bound(value, of))
        }
        _ => Err(external(
            Error::unsupported("the bounds of `enum_range` are labels that are written out")
                .with_hint("write them as texts, or compare the column with them"),
        )),
    }
}

/// `SELECT m FROM t UNION SELECT 'a'`
pub(super) fn in_union(mut union: Union) -> Result<Transformed<Union>> {
    let width = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let mut changed = false;
    for place in 0..width {
        let fields = union.inputs.iter().filter_map(|input| input.schema().fields().get(place));
        let types = fields.filter_map(|field| EnumType::of(field)).filter(|of| of.name.is_some());
        let Some(of) = types.max_by_key(|of| of.labels.len()) else { continue };
        for input in &mut union.inputs {
            let (Some(text), LogicalPlan::Projection(projection)) = (selected(input, place), &**input) else {
                continue;
            };
            of.position(text).map_err(external)?;
            let typed = with_value(projection, place, |text| enum_value(text, &of))?;
            *input = Arc::new(typed);
            changed = true;
        }
    }
    Ok(if changed {
        Transformed::yes(Union::try_new_with_loose_types(union.inputs)?)
    } else {
        Transformed::no(union)
    })
}

/// CASE between values of a type.
pub(super) fn case(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let answers = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    let answers: Vec<&Expr> = answers.chain(case.else_expr.as_deref()).collect();
    let Some(of) = answers.iter().find_map(|answer| named(answer, schema)) else {
        return Ok(Transformed::no(Expr::Case(case)));
    };
    if !answers.iter().all(|answer| belongs(answer, &of, schema)) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    common(answers.into_iter(), schema, false)?;
    Ok(Transformed::yes(enum_value(Expr::Case(case), &of)))
}

/// Refuses aggregates that would go by the texts of labels: DISTINCT in their order, and the value at a fraction of it.
pub(super) fn check_aggregate(function: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    if function.func.name() == "quantile_disc"
        && function.params.args.iter().any(|value| named(value, schema).is_some())
    {
        let message = "`percentile_disc` of an enumerated type is not supported";
        let hint = "order the rows by the value, and take one with LIMIT 1 and OFFSET";
        return Err(external(Error::unsupported(message).with_hint(hint)));
    }
    if !function.params.distinct
        || !function.params.order_by.iter().any(|key| of(&key.expr, schema).is_some())
    {
        return Ok(());
    }
    let message = "DISTINCT with ORDER BY of an enumerated type is not supported within an aggregate";
    Err(external(
        Error::unsupported(message).with_hint("aggregate the rows of a subquery with SELECT DISTINCT"),
    ))
}

/// An expression that is kept as text, of which no plan is analysed, with comparisons by labels.
pub fn compared_by_labels(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let rewritten = expr.transform_up(|node| match node {
        Expr::BinaryExpr(binary) => Ok(compared(binary, schema)?.update_data(Expr::BinaryExpr)),
        Expr::Between(range) => Ok(between(range, schema)?.update_data(Expr::Between)),
        Expr::InList(list) => {
            check_list(&list, schema)?;
            Ok(Transformed::no(Expr::InList(list)))
        }
        Expr::Case(choice) => case(choice, schema),
        Expr::ScalarFunction(call) => Ok(match called(&call, schema)? {
            Some(expr) => Transformed::yes(expr),
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        node => Ok(Transformed::no(node)),
    });
    rewritten.data()
}

/// What `min` and `max` of such a value look at.
pub(super) fn extreme_key(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    named(value, schema).map(|of| position(value.clone(), &of))
}
