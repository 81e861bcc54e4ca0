//! Calls that mean something else in MySQL: lengths are in bytes, positions count from the end, and parts of a date are those of
//! its calendar.

use crate::literal::{literal, number};
use crate::{calls, template};
use bowshot_api::Result;
use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArguments, TypedString, UnaryOperator, Value,
};

/// The positional arguments of a call, if it has no others.
fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    match &function.args {
        FunctionArguments::None => Some(Vec::new()),
        _ => calls::arguments(function),
    }
}

/// `None` for calls that mean the same everywhere.
pub(super) fn call(name: &str, function: &Function) -> Result<Option<Expr>> {
    let Some(arguments) = arguments(function).filter(|_| function.over.is_none()) else { return Ok(None) };
    let expr = match (name, arguments.as_slice()) {
        ("length", [text]) if number(text).is_some() => {
            template::expression("octet_length(CAST(x AS VARCHAR))", &[("x", text)])?
        }
        ("length", [text]) => template::expression("octet_length(x)", &[("x", text)])?,
        ("left" | "right", [text, count]) if !is_natural(count) => {
            template::check_copies(count, 2)?;
            let text_of = format!("{name}(x, CASE WHEN n < 0 THEN 0 ELSE n END)");
            template::expression(&text_of, &[("x", text), ("n", count)])?
        }
        ("substr" | "substring" | "mid", [text, from]) => return part(text, from, None),
        ("substr" | "substring" | "mid", [text, from, count]) => return part(text, from, Some(count)),
        ("regexp_replace", [text, pattern, by]) => {
            let holes = [("x", *text), ("p", *pattern), ("r", *by)];
            template::expression("regexp_replace(x, p, r, 'g')", &holes)?
        }
        (
            "now" | "current_timestamp" | "localtime" | "localtimestamp" | "sysdate" | "utc_timestamp"
            | "curtime" | "current_time" | "utc_time",
            [digits],
        ) => return moment(name, digits),
        _ => return Ok(None),
    };
    Ok(Some(expr))
}

/// `SUBSTRING(x FROM p FOR n)`: 0 is no position, those below it count from the end.
pub(super) fn part(text: &Expr, from: &Expr, count: Option<&Expr>) -> Result<Option<Expr>> {
    let is_plain = is_natural(from) && !is_zero(from);
    if is_plain && count.is_none_or(is_natural) {
        return Ok(None);
    }
    template::check_copies(text, 4)?;
    template::check_copies(from, 6)?;
    let rest = if is_plain {
        template::expression("substr(x, p)", &[("x", text), ("p", from)])?
    } else {
        let wanted = "CASE WHEN p > 0 THEN substr(x, p) WHEN p < 0 AND char_length(x) >= -p THEN right(x, -p) \
                      ELSE left(x, 0 * p) END";
        template::expression(wanted, &[("x", text), ("p", from)])?
    };
    let Some(count) = count else { return Ok(Some(rest)) };
    template::check_copies(count, 2)?;
    let cut = "left(x, CASE WHEN n < 0 THEN 0 ELSE n END)";
    template::expression(cut, &[("x", &rest), ("n", count)]).map(Some)
}

/// `NOW(3)`: so many digits of a second.
fn moment(name: &str, digits: &Expr) -> Result<Option<Expr>> {
    let Some(digits) = number(digits) else { return Ok(None) };
    let call = match name {
        "utc_timestamp" | "sysdate" | "localtime" | "localtimestamp" => "now()".to_owned(),
        "curtime" | "utc_time" => "current_time()".to_owned(),
        _ => format!("{name}()"),
    };
    let text = match digits {
        "0" if !call.ends_with("time()") => format!("date_trunc('second', {call})"),
        "3" if !call.ends_with("time()") => format!("date_trunc('millisecond', {call})"),
        _ => call,
    };
    template::expression(&text, &[]).map(Some)
}

/// A date or timestamp that is written out, or that of now, as the number that MySQL computes with: 20240102, 20240102030405.
pub(super) fn as_number(moment: &Expr) -> Result<Option<Expr>> {
    let pattern = match moment {
        Expr::Nested(inner) => return as_number(inner),
        Expr::TypedString(TypedString { data_type: DataType::Date, .. }) => "%Y%m%d",
        Expr::TypedString(TypedString {
            data_type: DataType::Timestamp(..) | DataType::Datetime(_), ..
        }) => "%Y%m%d%H%i%s",
        Expr::Function(function) => match function.name.to_string().to_ascii_lowercase().as_str() {
            "curdate" | "current_date" => "%Y%m%d",
            "now" | "current_timestamp" | "localtimestamp" => "%Y%m%d%H%i%s",
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let text = format!("CAST(date_format(d, '{pattern}') AS BIGINT)");
    template::expression(&text, &[("d", moment)]).map(Some)
}

/// The functions that casts to whole numbers become.
pub const CAST_TO_SIGNED: &str = "__bowshot_signed";
pub const CAST_TO_UNSIGNED: &str = "__bowshot_unsigned";

/// `CAST(-1 AS UNSIGNED)`. The type of a parameter is told by the cast.
pub(super) fn cast(kind: &CastKind, expr: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    let function = match data_type {
        DataType::Signed | DataType::SignedInteger => CAST_TO_SIGNED,
        DataType::Unsigned | DataType::UnsignedInteger => CAST_TO_UNSIGNED,
        _ => return Ok(None),
    };
    if *kind != CastKind::Cast || matches!(literal(expr), Some(Value::Placeholder(_))) {
        return Ok(None);
    }
    template::expression(&format!("{function}(x)"), &[("x", expr)]).map(Some)
}

/// The number that a text which is written out is to an operator: what it begins with, or 0.
pub(super) fn number_of_text(expr: &Expr) -> Option<Expr> {
    let (Value::SingleQuotedString(text) | Value::DoubleQuotedString(text)) = literal(expr)? else {
        return None;
    };
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    };
    let mut end = digits(sign);
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        end = digits(end + 1);
    }
    let whole = text.get(sign..end).unwrap_or_default();
    let whole = if whole.bytes().any(|byte| byte.is_ascii_digit()) { whole } else { "0" };
    let number = Expr::value(Value::Number(whole.trim_end_matches('.').to_owned(), false));
    if !text.starts_with('-') {
        return Some(number);
    }
    Some(Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number) })))
}

/// Whether it is a whole number from 0 on that is written out.
fn is_natural(expr: &Expr) -> bool {
    number(expr).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_zero(expr: &Expr) -> bool {
    number(expr).is_some_and(|digits| digits.bytes().all(|byte| byte == b'0'))
}
