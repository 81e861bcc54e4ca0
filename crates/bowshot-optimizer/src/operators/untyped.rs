//! A text literal has no type of its own: beside a number, a date or an interval it becomes one, as in `i + '1'` and
//! `d - '2024-01-01'`. DataFusion takes it for a text, which has no arithmetic.

use crate::expressions::type_of;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Cast};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Case, Expr, LogicalPlan, Projection, Union, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Digits behind the point of a text that is compared with a decimal.
const COMPARED_DIGITS: i8 = 15;

#[derive(Debug)]
pub(crate) struct UntypedTexts;

impl ExprPlanner for UntypedTexts {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if is_arithmetic(&expr.op) {
            number_of_case(&mut expr.left, schema);
            number_of_case(&mut expr.right, schema);
        }
        for is_right in [false, true] {
            let (side, other) = if is_right { (&expr.right, &expr.left) } else { (&expr.left, &expr.right) };
            let meant = match side {
                Expr::Literal(ScalarValue::Utf8(Some(text)), _) if !is_text(other) => {
                    let Ok(other) = type_of(other, schema) else { continue };
                    if matches!(other, DataType::List(_)) && takes_arrays(&expr.op) {
                        array(text, &other)
                    } else {
                        wanted(&expr.op, &other, text).map(|to| cast(side, to))
                    }
                }
                Expr::Literal(ScalarValue::Decimal128(Some(_), _, scale), _) if is_comparison(&expr.op) => {
                    let of_text = type_of(other, schema).is_ok_and(|of| of.is_string());
                    let wide = DataType::Decimal128(DECIMAL128_MAX_PRECISION, COMPARED_DIGITS.max(*scale));
                    of_text.then(|| cast(side, wide))
                }
                _ => None,
            };
            if let Some(meant) = meant {
                *(if is_right { &mut expr.right } else { &mut expr.left }) = meant;
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

fn cast(text: &Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(text.clone()), to))
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_), _))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

fn takes_arrays(op: &BinaryOperator) -> bool {
    is_comparison(op) || matches!(op, BinaryOperator::AtArrow | BinaryOperator::ArrowAt)
}

/// `'{1,2}'` as an array; `None` for other texts.
fn array(text: &str, to: &DataType) -> Option<Expr> {
    let elements = bowshot_sql::rewrite::array_elements(text)?;
    let elements: Vec<ScalarValue> = elements.into_iter().map(ScalarValue::Utf8).collect();
    let list = ScalarValue::List(ScalarValue::new_list(&elements, &DataType::Utf8, true));
    Some(cast(&Expr::Literal(list, None), to.clone()))
}

/// `CASE WHEN a THEN 1 ELSE '2' END`, `1.5 IN ('1.54')`
pub(super) fn in_choices(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut node| {
        let changed = match &mut node {
            Expr::Case(case) => in_answers(answers(case), schema),
            Expr::InList(list) => {
                in_answers(std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect(), schema)
            }
            _ => false,
        };
        Ok(if changed { Transformed::yes(node) } else { Transformed::no(node) })
    })
}

/// `d BETWEEN '1.001' AND '1.499'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let is_decimal = type_of(&between.expr, schema).is_ok_and(|of| of.is_decimal());
    let all = vec![between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    let changed = is_decimal && in_answers(all, schema);
    Transformed::new_transformed(between, changed)
}

/// `CASE WHEN a THEN '1' ELSE b END + 1`: arithmetic wants the number at once. Other texts than whole numbers have other meanings in
/// other dialects.
fn number_of_case(side: &mut Expr, schema: &DFSchema) {
    if !(matches!(side, Expr::Case(_)) && type_of(side, schema).is_ok_and(|of| of.is_string())) {
        return;
    }
    let Expr::Case(case) = side else { return };
    let answers = answers(case);
    if answers.iter().all(|answer| written(answer).is_none_or(|text| text.parse::<i64>().is_ok())) {
        in_answers(answers, schema);
    }
}

fn answers(case: &mut Case) -> Vec<&mut Expr> {
    let answers = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
    answers.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect()
}

fn in_answers(answers: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !answers.iter().any(|answer| is_text(answer)) {
        return false;
    }
    let others = answers.iter().filter(|answer| !is_text(answer));
    let Ok(types) = others.map(|answer| type_of(answer, schema)).collect::<Result<Vec<_>>>() else {
        return false;
    };
    let mut changed = false;
    for answer in answers {
        if let Some(meant) = written(answer).and_then(|text| among(&types, text)) {
            *answer = meant;
            changed = true;
        }
    }
    changed
}

/// `SELECT 1 UNION ALL SELECT '2'`
pub(super) fn in_union(mut union: Union) -> Result<Transformed<Union>> {
    let width = union.inputs.first().map_or(0, |input| input.schema().fields().len());
    let mut changed = false;
    for place in 0..width {
        let others = union.inputs.iter().filter(|input| selected(input, place).is_none());
        let types = others.filter_map(|input| input.schema().fields().get(place));
        let types: Vec<DataType> = types.map(|field| field.data_type().clone()).collect();
        for input in &mut union.inputs {
            let meant = selected(input, place).and_then(|text| among(&types, text));
            let (Some(meant), LogicalPlan::Projection(projection)) = (meant, &**input) else { continue };
            let typed = with_value(projection, place, |_| meant)?;
            *input = Arc::new(typed);
            changed = true;
        }
    }
    // The schema that it had may be that of a text.
    Ok(if changed {
        Transformed::yes(Union::try_new_with_loose_types(union.inputs)?)
    } else {
        Transformed::no(union)
    })
}

/// The text that a query selects as one of its columns.
pub(super) fn selected(plan: &LogicalPlan, place: usize) -> Option<&str> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let mut expr = projection.expr.get(place)?;
    while let Expr::Alias(alias) = expr {
        expr = alias.expr.as_ref();
    }
    written(expr)
}

/// The query with another value in one of its columns.
pub(super) fn with_value(
    projection: &Projection,
    place: usize,
    change: impl FnOnce(Expr) -> Expr,
) -> Result<LogicalPlan> {
    let mut exprs = projection.expr.clone();
    if let Some(expr) = exprs.get_mut(place) {
        let (relation, field) = projection.schema.qualified_field(place);
        let value = std::mem::take(expr).unalias_nested().data;
        *expr = change(value).alias_qualified(relation.cloned(), field.name());
    }
    Projection::try_new(exprs, Arc::clone(&projection.input)).map(LogicalPlan::Projection)
}

fn written(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text),
        _ => None,
    }
}

/// A text as a value of the type that it has among values of others; `None` where it stays a text.
fn among(types: &[DataType], text: &str) -> Option<Expr> {
    let mut others = types.iter().filter(|of| !of.is_null());
    match others.next() {
        Some(list @ DataType::List(_)) if others.all(|of| of == list) => array(text, list),
        _ => common(types, text).map(|to| cast(&lit(text), to)),
    }
}

/// The type of a text among values of others; `None` where it stays a text.
fn common(types: &[DataType], text: &str) -> Option<DataType> {
    let mut types = types.iter().filter(|of| !of.is_null());
    let first = types.clone().next()?;
    if types.clone().all(DataType::is_numeric) {
        let is_floating = types.clone().any(DataType::is_floating);
        return Some(if !is_floating && types.clone().any(DataType::is_decimal) {
            decimal(text)
        } else if types.all(|of| of == first) {
            first.clone()
        } else if is_floating {
            DataType::Float64
        } else {
            DataType::Int64
        });
    }
    let is_moment = |of: &DataType| matches!(of, DataType::Date32 | DataType::Timestamp(..));
    if types.clone().all(is_moment) {
        // A date among times is one at midnight, and one without a zone among instants is one of the session's zone.
        return types
            .max_by_key(|of| match of {
                DataType::Timestamp(_, zone) => 1 + u8::from(zone.is_some()),
                _ => 0,
            })
            .cloned();
    }
    let is_known = matches!(first, DataType::Boolean | DataType::Time64(_) | DataType::Interval(_));
    (is_known && types.all(|of| of == first)).then(|| first.clone())
}

/// The type of a text beside a value of another type, as PostgreSQL infers it; `None` where it stays a text.
fn wanted(op: &BinaryOperator, other: &DataType, text: &str) -> Option<DataType> {
    use BinaryOperator::{Divide, Minus, Multiply, Plus};
    let is_interval = matches!(other, DataType::Interval(_) | DataType::Duration(_));
    match op {
        op if is_arithmetic(op) && (other.is_integer() || other.is_floating()) => Some(other.clone()),
        op if is_arithmetic(op) && other.is_decimal() => Some(decimal(text)),
        // In the type of a column it would be rounded.
        op if is_comparison(op) && other.is_decimal() => Some(decimal(text)).filter(DataType::is_decimal),
        Multiply | Divide if is_interval => Some(DataType::Float64),
        Plus | Minus if is_interval => Some(INTERVAL),
        Plus if matches!(other, DataType::Timestamp(..) | DataType::Time64(_)) => Some(INTERVAL),
        Minus if other.is_temporal() => Some(other.clone()),
        op if is_comparison(op) && is_interval => Some(INTERVAL),
        op if is_comparison(op) && matches!(other, DataType::Time32(_) | DataType::Time64(_)) => {
            Some(other.clone())
        }
        _ => None,
    }
}

/// A decimal with the digits that are written.
fn decimal(text: &str) -> DataType {
    let number = text.trim().trim_start_matches(['+', '-']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let precision = u8::try_from(whole.len().saturating_add(fraction.len()).max(1));
    match (precision, i8::try_from(fraction.len())) {
        (Ok(precision), Ok(scale))
            if precision <= DECIMAL128_MAX_PRECISION && digits(whole) && digits(fraction) =>
        {
            DataType::Decimal128(precision, scale)
        }
        _ => DataType::Float64,
    }
}
