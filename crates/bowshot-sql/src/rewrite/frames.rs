//! Frames without some of their rows: `EXCLUDE CURRENT ROW`, `EXCLUDE GROUP`, `EXCLUDE TIES`. An aggregate over such a frame is
//! put together of those over the frames before and behind what is left out, where these are frames. All else is the engine's,
//! which a call among the keys of PARTITION BY says what is left out. Such calls carry computed offsets as well.

use crate::exclusions::EXCLUDING;
use crate::literal::{number, quoted_text};
use crate::template;
use crate::walk::Tree;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, NullTreatment, Value, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

/// The function that carries an offset: which bound it is of, and its text.
pub const FRAME_OFFSET: &str = "__bowshot_frame_offset";

pub(super) fn rewrite(statement: &mut impl Tree) -> Result<()> {
    statement.try_change_expressions(|expr| {
        let Expr::Function(function) = expr else { return Ok(()) };
        carry_offsets(function)?;
        if let Some(rewritten) = without(function)? {
            *expr = Expr::Nested(Box::new(rewritten));
        }
        Ok(())
    })
}

/// Puts offsets that are neither numbers nor intervals, such as parameters, among the keys of PARTITION BY: the planner takes no
/// others.
fn carry_offsets(function: &mut Function) -> Result<()> {
    let Some(WindowType::WindowSpec(window)) = &mut function.over else { return Ok(()) };
    let Some(frame) = &mut window.window_frame else { return Ok(()) };
    let text = match frame.units {
        WindowFrameUnits::Rows | WindowFrameUnits::Groups => "CAST(CAST(x AS BIGINT) AS TEXT)",
        WindowFrameUnits::Range => "CAST(x AS TEXT)",
    };
    for (which, bound) in [("start", Some(&mut frame.start_bound)), ("end", frame.end_bound.as_mut())] {
        let Some(WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset))) =
            bound
        else {
            continue;
        };
        if is_planned(offset) {
            continue;
        }
        let carried =
            template::expression(&format!("{FRAME_OFFSET}('{which}', {text})"), &[("x", &**offset)])?;
        window.partition_by.push(carried);
        **offset = Expr::value(Value::Number("0".to_owned(), false));
    }
    Ok(())
}

/// Whether the planner takes it for an offset, or it is marked by an EXCLUDE.
fn is_planned(offset: &Expr) -> bool {
    match offset {
        Expr::Value(value) => {
            matches!(&value.value, Value::Number(digits, _) if !digits.contains(['e', 'E']))
        }
        Expr::Interval(_) => true,
        Expr::Function(function) => function.name.to_string() == EXCLUDING,
        _ => false,
    }
}

/// The call over a frame with an EXCLUDE, without one.
fn without(function: &Function) -> Result<Option<Expr>> {
    let Some(WindowType::WindowSpec(window)) = &function.over else { return Ok(None) };
    let Some(frame) = &window.window_frame else { return Ok(None) };
    let Some((what, start_bound)) = marked(&frame.start_bound) else { return Ok(None) };
    let frame = WindowFrame { start_bound, ..frame.clone() };
    let parts = parts(what, frame.clone(), !window.order_by.is_empty());
    if let Some(parts) = parts
        && let Some(whole) = together(function, window, &parts)?
    {
        return Ok(Some(whole));
    }
    by_engine(function, window, (what, frame)).map(Some)
}

/// The call, with a mark that says what is left out.
fn by_engine(function: &Function, window: &WindowSpec, (what, frame): (&str, WindowFrame)) -> Result<Expr> {
    let what = Expr::value(Value::SingleQuotedString(what.to_owned()));
    let mark = template::expression(&format!("{EXCLUDING}(what)"), &[("what", &what)])?;
    let mut window = window.clone();
    window.partition_by.push(mark);
    Ok(over(function, &window, &frame))
}

/// What is excluded, and the bound itself.
fn marked(bound: &WindowFrameBound) -> Option<(&str, WindowFrameBound)> {
    let (WindowFrameBound::Preceding(Some(rows)) | WindowFrameBound::Following(Some(rows))) = bound else {
        return None;
    };
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = rows.as_ref() else {
        return None;
    };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(what)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(rows)),
    ] = list.args.as_slice()
    else {
        return None;
    };
    let what = quoted_text(what).filter(|_| name.to_string() == EXCLUDING)?;
    let precedes = matches!(bound, WindowFrameBound::Preceding(_));
    let rows = match quoted_text(rows) {
        Some("current") => return Some((what, WindowFrameBound::CurrentRow)),
        Some("unbounded") => None,
        _ => Some(Box::new(rows.clone())),
    };
    let bound = if precedes { WindowFrameBound::Preceding(rows) } else { WindowFrameBound::Following(rows) };
    Some((what, bound))
}

/// The frames that hold what is left, in their order.
fn parts(what: &str, frame: WindowFrame, ordered: bool) -> Option<Vec<WindowFrame>> {
    let end = frame.end_bound.unwrap_or(WindowFrameBound::CurrentRow);
    let all =
        frame.start_bound == WindowFrameBound::Preceding(None) && end == WindowFrameBound::Following(None);
    // Without the group of the row itself, such frames have the same rows in all units.
    let is_open = |bound: &WindowFrameBound| {
        matches!(
            bound,
            WindowFrameBound::CurrentRow
                | WindowFrameBound::Preceding(None)
                | WindowFrameBound::Following(None)
        )
    };
    let in_groups = frame.units == WindowFrameUnits::Groups || is_open(&frame.start_bound) && is_open(&end);
    let units = match what {
        "current row" if all || frame.units == WindowFrameUnits::Rows => WindowFrameUnits::Rows,
        "group" | "ties" if ordered && in_groups => WindowFrameUnits::Groups,
        _ => return None,
    };
    let one = || Some(Box::new(Expr::value(Value::Number("1".to_owned(), false))));
    let part = |units, start_bound, end_bound| WindowFrame { units, start_bound, end_bound: Some(end_bound) };
    let mut parts = Vec::with_capacity(3);
    match frame.start_bound {
        WindowFrameBound::CurrentRow => {}
        WindowFrameBound::Preceding(rows) if is_some_rows(rows.as_deref()) => {
            parts.push(part(units, WindowFrameBound::Preceding(rows), WindowFrameBound::Preceding(one())));
        }
        _ => return None,
    }
    if what == "ties" {
        let current = WindowFrameBound::CurrentRow;
        parts.push(part(WindowFrameUnits::Rows, current.clone(), current));
    }
    match end {
        WindowFrameBound::CurrentRow => {}
        WindowFrameBound::Following(rows) if is_some_rows(rows.as_deref()) => {
            parts.push(part(units, WindowFrameBound::Following(one()), WindowFrameBound::Following(rows)));
        }
        _ => return None,
    }
    (!parts.is_empty()).then_some(parts)
}

/// Whether a bound lies at least one row or group away.
fn is_some_rows(rows: Option<&Expr>) -> bool {
    let is_some = |rows| number(rows).and_then(|rows| rows.parse::<u64>().ok()).is_some_and(|rows| rows > 0);
    rows.is_none_or(is_some)
}

fn over(function: &Function, window: &WindowSpec, frame: &WindowFrame) -> Expr {
    let window = WindowSpec { window_frame: Some(frame.clone()), ..window.clone() };
    Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), ..function.clone() })
}

/// `None` for functions whose values over several frames do not tell that over all of them.
fn together(function: &Function, window: &WindowSpec, frames: &[WindowFrame]) -> Result<Option<Expr>> {
    let name = function.name.to_string().to_ascii_lowercase();
    let values: Vec<Expr> = frames.iter().map(|frame| over(function, window, frame)).collect();
    let distinct = matches!(&function.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
    let pairs = match name.as_str() {
        "sum" if !distinct => "coalesce(l + r, l, r)",
        "count" if !distinct => "l + r",
        "min" => "coalesce(least(l, r), l, r)",
        "max" => "coalesce(greatest(l, r), l, r)",
        "first_value" => return first(function, window, frames.iter().zip(values).collect()).map(Some),
        "last_value" => return first(function, window, frames.iter().zip(values).rev().collect()).map(Some),
        _ => return Ok(None),
    };
    let mut values = values.into_iter();
    let first = values.next().ok_or_else(|| Error::internal("a frame has no parts"))?;
    let whole =
        values.try_fold(first, |left, right| template::expression(pairs, &[("l", &left), ("r", &right)]));
    whole.map(Some)
}

/// The value of the first part that has a row, or of the first that has a value where NULLs are ignored.
fn first(function: &Function, window: &WindowSpec, mut parts: Vec<(&WindowFrame, Expr)>) -> Result<Expr> {
    let ignores = function.null_treatment == Some(NullTreatment::IgnoreNulls)
        || matches!(&function.args, FunctionArguments::List(list) if list
            .clauses
            .contains(&FunctionArgumentClause::IgnoreOrRespectNulls(NullTreatment::IgnoreNulls)));
    let (_, mut value) = parts.pop().ok_or_else(|| Error::internal("a frame has no parts"))?;
    for (frame, before) in parts.into_iter().rev() {
        value = if ignores {
            template::expression("coalesce(l, r)", &[("l", &before), ("r", &value)])?
        } else {
            let Expr::Function(count) = template::expression("count(*)", &[])? else {
                return Err(Error::internal("`count(*)` is no call"));
            };
            let rows = over(&count, window, frame);
            let holes = [("n", &rows), ("l", &before), ("r", &value)];
            template::expression("CASE WHEN n > 0 THEN l ELSE r END", &holes)?
        };
    }
    Ok(value)
}
