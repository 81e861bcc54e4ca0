//! Texts as numbers in dialect `mysql`: beside a number, a text is the number that it begins with, or 0; an operand of AND is true
//! if its number is not 0 (MySQL manual, "Type Conversion in Expression Evaluation"). DataFusion reads only texts that are numbers
//! as a whole, and has no arithmetic for others.

use super::uuids::is_json_field;
use crate::expressions::{in_plan, is_arithmetic, type_of};
use bowshot_functions::{PlanFunction, json_unquote, plan_function};
use bowshot_sql::rewrite::{CAST_TO_SIGNED, CAST_TO_UNSIGNED};
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, Expr, ExprSchemable, Like, LogicalPlan, Operator, ScalarUDF, Signature,
    Volatility, lit,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::{Arc, LazyLock};

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// 0000-01-01, before all dates: what a text is that is none.
const NO_DATE: i32 = -719_528;
/// Whole numbers up to here are doubles as well.
const EXACT: f64 = 9e15;

static NUMBER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(plan_function(Number, signature))
});

/// The function, for those that look it up by name.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&NUMBER)
}

/// Operators between two values.
#[derive(Debug)]
pub struct MySqlOperands;

impl ExprPlanner for MySqlOperands {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{
            And, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus, Spaceship,
        };
        let RawBinaryExpr { op, left, right } = expr;
        let (left, right) = match op {
            And | Or => (truth(left, schema), truth(right, schema)),
            Plus | Minus | Multiply | Modulo => {
                let left = operand(left, &right, schema);
                let right = operand(right, &left, schema);
                if let Some(unsigned) = unsigned(&op, &left, &right, schema) {
                    return Ok(PlannerResult::Planned(unsigned));
                }
                (left, right)
            }
            Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship => compared(left, right, schema),
            _ => (left, right),
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// Lists of IN, BETWEEN, LIKE, CASE and casts, which no planner of expressions is asked for.
pub(crate) fn mysql_lists(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    if config.sql_parser.dialect == Dialect::MySQL { in_plan(plan, in_expression) } else { Ok(plan) }
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|node| {
        Ok(match node {
            Expr::InList(list) => in_list(list, schema),
            Expr::Between(between) => in_between(between, schema),
            Expr::Like(like) => in_like(like, schema),
            Expr::Case(case) => in_case(case, schema),
            Expr::Cast(mut cast) if cast.field.data_type().is_numeric() => {
                let changed = unquote_json(&mut cast.expr, schema);
                transformed(Expr::Cast(cast), changed)
            }
            Expr::ScalarFunction(mut call) if [CAST_TO_SIGNED, CAST_TO_UNSIGNED].contains(&call.name()) => {
                let changed = call.args.iter_mut().any(|value| unquote_json(value, schema));
                match plain_integer(&call, schema) {
                    Some(cast) => Transformed::yes(cast),
                    None => transformed(Expr::ScalarFunction(call), changed),
                }
            }
            node => Transformed::no(node),
        })
    })
}

/// `CAST(x AS SIGNED)` of what has room there: files and indexes are asked for the values of a cast, and not for those of a function.
fn plain_integer(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [value] = call.args.as_slice() else { return None };
    let of = type_of(value, schema).ok()?;
    let to = match call.name() {
        CAST_TO_SIGNED if of.is_signed_integer() || of == DataType::Boolean => DataType::Int64,
        CAST_TO_SIGNED if of.is_unsigned_integer() && of != DataType::UInt64 => DataType::Int64,
        CAST_TO_UNSIGNED if of.is_unsigned_integer() => DataType::UInt64,
        _ => return None,
    };
    let value = value.clone();
    Some(if of == to { value } else { Expr::Cast(Cast::new(Box::new(value), to)) })
}

fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let is = |expr: &Expr, kind: fn(&DataType) -> bool| type_of(expr, schema).is_ok_and(|of| kind(&of));
    let mut changed = false;
    match type_of(&list.expr, schema) {
        Ok(of) if of.is_numeric() => {
            for item in list.list.iter_mut().filter(|item| is(item, DataType::is_string)) {
                *item = beside(item.clone(), &of);
                changed = true;
            }
        }
        Ok(of) if of.is_string() && list.list.iter().all(|item| is(item, DataType::is_numeric)) => {
            list.expr = Box::new(number_of(*list.expr));
            changed = true;
        }
        Ok(DataType::Boolean) if list.list.iter().all(|item| is(item, DataType::is_numeric)) => {
            list.expr = Box::new(one_or_zero(*list.expr));
            changed = true;
        }
        _ => {}
    }
    transformed(Expr::InList(list), changed)
}

fn in_between(mut between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let all = [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    let types: Vec<Option<DataType>> = all.iter().map(|one| type_of(one, schema).ok()).collect();
    let Some(number) = types.iter().flatten().find(|of| of.is_numeric()) else {
        return Transformed::no(Expr::Between(between));
    };
    let mut changed = false;
    for (one, of) in all.into_iter().zip(&types) {
        if of.as_ref().is_some_and(DataType::is_string) {
            *one = beside(one.clone(), number);
            changed = true;
        }
    }
    transformed(Expr::Between(between), changed)
}

/// Numbers and dates are texts beside patterns, and as patterns.
fn in_like(mut like: Like, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = false;
    for one in [like.expr.as_mut(), like.pattern.as_mut()] {
        if type_of(one, schema).is_ok_and(|of| of.is_numeric() || of.is_temporal()) {
            *one = Expr::Cast(Cast::new(Box::new(one.clone()), DataType::Utf8));
            changed = true;
        }
    }
    transformed(Expr::Like(like), changed)
}

/// Parts that the value of a CASE may have to be copied for each comparison.
const MAX_COPIED_PARTS: usize = 1_000;

/// CASE of a value beside truth values compares it with one after the other: as a whole, all of them would get one type.
fn in_case(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Some(value) = case.expr.as_deref() else { return Transformed::no(Expr::Case(case)) };
    let is_truth = |value: &Expr| type_of(value, schema).is_ok_and(|of| of == DataType::Boolean);
    let all = is_truth(value);
    if case.when_then_expr.iter().all(|(when, _)| is_truth(when) == all) || !may_be_copied(value) {
        return Transformed::no(Expr::Case(case));
    }
    let branches = case.when_then_expr.iter().map(|(when, then)| {
        let (left, right) = compared(value.clone(), when.as_ref().clone(), schema);
        (Box::new(left.eq(right)), then.clone())
    });
    Transformed::yes(Expr::Case(Case::new(None, branches.collect(), case.else_expr.clone())))
}

fn may_be_copied(value: &Expr) -> bool {
    let mut parts = 0;
    let walked = value.apply(|_| {
        parts += 1;
        Ok(if parts > MAX_COPIED_PARTS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    walked.is_ok() && parts <= MAX_COPIED_PARTS && !value.is_volatile()
}

/// A JSON string as a number is one without its quotes; says whether it may be one.
fn unquote_json(value: &mut Expr, schema: &DFSchema) -> bool {
    let is_json = is_json(value, schema);
    if is_json {
        *value = json_unquote().call(vec![std::mem::take(value)]);
    }
    is_json
}

fn is_json(expr: &Expr, schema: &DFSchema) -> bool {
    expr.to_field(schema).is_ok_and(|(_, field)| is_json_field(&field))
}

fn transformed(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// A sum, difference or product of integers of which one is unsigned: so is the result, and what is below 0 is out of range.
fn unsigned(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let op = match op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        _ => return None,
    };
    let sides = [left, right].map(|side| (side, type_of(side, schema).ok().filter(DataType::is_integer)));
    let has_unsigned = sides.iter().any(|(_, of)| of.as_ref().is_some_and(DataType::is_unsigned_integer));
    if !has_unsigned || sides.iter().any(|(_, of)| of.is_none()) {
        return None;
    }
    let [left, right] = sides.map(|(side, of)| {
        let is_unsigned = of.is_some_and(|of| of.is_unsigned_integer());
        let wide = if is_unsigned { DataType::UInt64 } else { DataType::Int64 };
        Box::new(Expr::Cast(Cast::new(Box::new(side.clone()), wide)))
    });
    let computed = Expr::BinaryExpr(BinaryExpr::new(left, op, right));
    Some(Expr::Cast(Cast::new(Box::new(computed), DataType::UInt64)))
}

/// An operand of AND and OR.
fn truth(expr: Expr, schema: &DFSchema) -> Expr {
    if is_condition(&expr) {
        return expr;
    }
    match type_of(&expr, schema) {
        Ok(of) if of.is_numeric() => expr.not_eq(lit(0_i64)),
        Ok(of) if of.is_string() => number_of(expr).not_eq(lit(0_i64)),
        _ => expr,
    }
}

/// Whether it is a truth value by its form alone: to ask for the type of a long condition takes time.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::And | Operator::Or) || op.supports_propagation()
        }
        Expr::Not(_) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::InList(_) | Expr::Between(_) => true,
        _ => false,
    }
}

/// An operand of an arithmetic operator beside another one.
fn operand(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    // Such are numbers, or dates.
    if matches!(&expr, Expr::BinaryExpr(binary) if is_arithmetic(binary.op)) {
        return expr;
    }
    match type_of(&expr, schema) {
        Ok(DataType::Boolean) => one_or_zero(expr),
        Ok(of) if of.is_string() => match type_of(other, schema) {
            Ok(DataType::Interval(_)) => Expr::Cast(Cast::new(Box::new(expr), TIMESTAMP)),
            Ok(other) if other.is_temporal() => expr,
            _ => number_of(expr),
        },
        _ => expr,
    }
}

fn compared(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let (Ok(of_left), Ok(of_right)) = (type_of(&left, schema), type_of(&right, schema)) else {
        return (left, right);
    };
    // Those of JSON are no numbers.
    let json_and_truth = |json: &Expr, of: &DataType| *of == DataType::Boolean && is_json(json, schema);
    if json_and_truth(&left, &of_right) {
        return (left, Expr::Cast(Cast::new(Box::new(right), DataType::Utf8)));
    }
    if json_and_truth(&right, &of_left) {
        return (Expr::Cast(Cast::new(Box::new(left), DataType::Utf8)), right);
    }
    let is_other = |of: &DataType| of.is_numeric() || of.is_string();
    let (left, of_left) = match of_left {
        DataType::Boolean if is_other(&of_right) => (one_or_zero(left), DataType::Int64),
        of_left => (left, of_left),
    };
    let (right, of_right) = match of_right {
        DataType::Boolean if is_other(&of_left) => (one_or_zero(right), DataType::Int64),
        of_right => (right, of_right),
    };
    match (of_left.is_string(), of_right.is_string()) {
        (true, false) => (beside(left, &of_right), right),
        (false, true) => (left, beside(right, &of_left)),
        _ => (left, right),
    }
}

/// A truth value beside a number.
fn one_or_zero(truth: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(truth), DataType::Int64))
}

/// A text that is compared with a value of another type. Where it is written out and a number as a whole, it is that.
fn beside(text: Expr, other: &DataType) -> Expr {
    let written = match &text {
        Expr::Literal(ScalarValue::Utf8(Some(written)), _) => Some(written.trim()),
        _ => None,
    };
    match (written, other) {
        (Some(written), DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, None))
            if !written.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            Expr::Literal(ScalarValue::Date32(Some(NO_DATE)), None)
        }
        (_, other) if !other.is_numeric() => text,
        (Some(written), other) if other.is_integer() => {
            match (written.parse::<i64>(), written.parse::<u64>()) {
                (Ok(number), _) => lit(number),
                (_, Ok(number)) => lit(number),
                _ => number_of(text),
            }
        }
        (Some(written), _) if !written.is_empty() && beginning(written) == written => text,
        _ => number_of(text),
    }
}

fn number_of(text: Expr) -> Expr {
    match &text {
        Expr::Literal(ScalarValue::Utf8(Some(written)), _) => match number(written) {
            number if number.fract() == 0.0 && number.abs() < EXACT => lit(number as i64),
            number => lit(number),
        },
        _ => Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&NUMBER), vec![text])),
    }
}

fn number(text: &str) -> f64 {
    beginning(text.trim_start()).parse::<f64>().map_or(0.0, |number| number.clamp(f64::MIN, f64::MAX))
}

/// As much of a text as may be a number.
fn beginning(text: &str) -> &str {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| from + bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let mut end = digits(usize::from(is(0, b"+-")));
    if is(end, b".") {
        end = digits(end + 1);
    }
    if is(end, b"eE") {
        let exponent = end + 1 + usize::from(is(end + 1, b"+-"));
        let last = digits(exponent);
        end = if last > exponent { last } else { end };
    }
    text.get(..end).unwrap_or_default()
}

/// The number that a text begins with, of each row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Number;

impl PlanFunction for Number {
    fn name(&self) -> &'static str {
        "mysql_number"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let [texts] = arguments else {
            return internal_err!("`{}` has other arguments", self.name());
        };
        let numbers = texts.as_string::<i32>().iter().map(|text| text.map(number));
        Ok(Arc::new(numbers.collect::<Float64Array>()))
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_text_is_the_number_that_it_begins_with() {
        // As MariaDB 10.11 reads them.
        for (text, expected) in [
            ("99abc", 99.0),
            (" -7.5 z", -7.5),
            ("+.5e1x", 5.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("1e400", f64::MAX),
            (".", 0.0),
            ("-", 0.0),
            ("", 0.0),
            ("nan", 0.0),
            ("inf", 0.0),
            ("0x1F", 0.0),
            ("é1", 0.0),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
