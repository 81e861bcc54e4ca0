//! Texts that are written out where a number or a truth value is meant: `abs('-5')`, `NOT 'true'`. In SQL they have no type before
//! their place gives them one.

use crate::literal::{self, quoted_text};
use crate::template;
use bowshot_api::Result;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, UnaryOperator, Value};

/// Functions of numbers alone.
const OF_NUMBERS: [&str; 20] = [
    "abs", "acos", "asin", "atan", "cbrt", "ceil", "ceiling", "cos", "degrees", "exp", "floor", "ln",
    "log10", "mod", "pow", "power", "radians", "sign", "sin", "sqrt",
];

/// Functions of a text and a number.
const OF_A_LENGTH: [&str; 5] = ["left", "lpad", "repeat", "right", "rpad"];

/// Puts numbers in the place of such texts.
pub(super) fn numbers(name: &str, list: &mut FunctionArgumentList) {
    let from = match name {
        name if OF_NUMBERS.contains(&name) => 0,
        name if OF_A_LENGTH.contains(&name) => 1,
        _ => return,
    };
    let count = if from == 0 { list.args.len() } else { 1 };
    for argument in list.args.iter_mut().skip(from).take(count) {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument
            && let Some(number) = number(value)
        {
            *value = number;
        }
    }
}

/// A text as the number that it is.
pub(super) fn number(expr: &Expr) -> Option<Expr> {
    let text = quoted_text(expr)?.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let is_number = digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.matches('.').count() <= 1;
    if !is_number {
        return None;
    }
    let number = Expr::value(Value::Number(digits.to_owned(), false));
    Some(if negative { Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) } } else { number })
}

/// `1e-100`, of more digits than a decimal has, as a DOUBLE.
pub(super) fn double(expr: &Expr) -> Result<Option<Expr>> {
    let Some(number) = literal::number(expr) else { return Ok(None) };
    let number = number.replace('_', "");
    if !is_beyond_decimals(&number) {
        return Ok(None);
    }
    let text = Expr::value(Value::SingleQuotedString(number));
    template::expression("CAST(x AS DOUBLE)", &[("x", &text)]).map(Some)
}

fn is_beyond_decimals(number: &str) -> bool {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else { return false };
    let Ok(exponent) = exponent.parse::<i16>() else { return false };
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = i64::try_from(fraction).unwrap_or(i64::MAX).saturating_sub(i64::from(exponent));
    (scale > 76 || scale < i64::from(i8::MIN))
        && number.parse::<f64>().is_ok_and(|value| value != 0.0 && value.is_finite())
}

/// `'t' AND …`, `NOT 'true'`: the text as a truth value.
pub(super) fn truth(expr: &Expr) -> Result<Option<Expr>> {
    match quoted_text(expr).map(str::trim) {
        Some(_) => template::expression("CAST(x AS BOOLEAN)", &[("x", expr)]).map(Some),
        None => Ok(None),
    }
}
