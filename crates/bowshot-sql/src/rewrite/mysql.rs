//! What is MySQL's own. Operators mean something else: `7 / 2` is 3.5, what is divided by zero is NULL, and a date stays one when
//! days are added to it. UPDATE has ORDER BY and LIMIT.

use super::mysql_functions;
use crate::dialect::DialectName;
use crate::literal::literal;
use crate::walk::Tree;
use crate::{calls, template};
use bowshot_api::{Error, ErrorKind, Result};
use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, Interval, LimitClause, NamedWindowDefinition, NamedWindowExpr, ObjectName,
    ObjectType, Offset, OffsetRows, OrderByExpr, OrderByKind, OrderByOptions, Query, SchemaName, Select,
    SetExpr, Statement, Value, VisitorMut, WindowType,
};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Units that leave a date a date, without the S of many.
const WHOLE_DAYS: [&str; 6] = ["DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "YEAR_MONTH"];

/// Refuses what only MySQL has.
pub(super) fn check(statement: &Statement, dialect: DialectName) -> Result<()> {
    match statement {
        Statement::Update(update)
            if dialect != DialectName::MySql && (!update.order_by.is_empty() || update.limit.is_some()) =>
        {
            Err(Error::unsupported("UPDATE has ORDER BY and LIMIT in dialect `mysql` alone")
                .with_hint("name the rows with WHERE … IN (SELECT … ORDER BY … LIMIT n)"))
        }
        _ => Ok(()),
    }
}

/// `INSERT INTO t SET a = 1, b = 2` is `INSERT INTO t (a, b) VALUES (1, 2)`.
pub(super) fn assigned_row(statement: &mut Statement) -> Result<()> {
    let Statement::Insert(insert) = statement else { return Ok(()) };
    if insert.assignments.is_empty() || insert.source.is_some() {
        return Ok(());
    }
    let mut row = Vec::with_capacity(insert.assignments.len());
    for assignment in std::mem::take(&mut insert.assignments) {
        let AssignmentTarget::ColumnName(column) = assignment.target else {
            return Err(Error::invalid("INSERT … SET names one column for each value"));
        };
        insert.columns.push(column);
        row.push(assignment.value);
    }
    let mut query = template::query("VALUES (1)", &[])?;
    if let SetExpr::Values(values) = query.body.as_mut()
        && let Some(first) = values.rows.first_mut()
    {
        **first = row;
    }
    insert.source = Some(query);
    Ok(())
}

/// `INSERT INTO t () VALUES ()` is `INSERT INTO t DEFAULT VALUES`.
pub(super) fn empty_row(statement: &mut Statement) {
    let Statement::Insert(insert) = statement else { return };
    let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| source.body.as_ref()) else {
        return;
    };
    if insert.columns.is_empty() && matches!(values.rows.as_slice(), [row] if row.content.is_empty()) {
        insert.source = None;
    }
}

/// NULL is less than all values: it comes first, and last where the order is descending. A limit above all counts is none.
pub(super) fn null_order(statement: &mut impl Tree) {
    let ControlFlow::Continue(()) = statement.walk(&mut NullOrder);
}

struct NullOrder;

impl NullOrder {
    fn list(order: &mut [OrderByExpr]) {
        order.iter_mut().for_each(|by| Self::one(&mut by.options));
    }

    fn one(options: &mut OrderByOptions) {
        if options.nulls_first.is_none() {
            options.nulls_first = Some(options.asc != Some(false));
        }
    }
}

impl VisitorMut for NullOrder {
    type Break = Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Infallible> {
        match statement {
            Statement::Update(update) => Self::list(&mut update.order_by),
            Statement::Delete(delete) => Self::list(&mut delete.order_by),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        match query.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(order)) => Self::list(order),
            Some(OrderByKind::All(options)) => Self::one(options),
            None => {}
        }
        without_endless_limit(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = window {
                Self::list(&mut window.order_by);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        Self::list(&mut function.within_group);
        if let Some(WindowType::WindowSpec(window)) = &mut function.over {
            Self::list(&mut window.order_by);
        }
        if let FunctionArguments::List(list) = &mut function.args {
            for clause in &mut list.clauses {
                if let FunctionArgumentClause::OrderBy(order) = clause {
                    Self::list(order);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// `LIMIT 18446744073709551615 OFFSET 5`: so MySQL's manual says that all rows from one on are wanted.
fn without_endless_limit(query: &mut Query) {
    let is_endless = |limit: &Expr| {
        matches!(limit, Expr::Value(value) if matches!(&value.value, Value::Number(rows, _)
            if rows.parse::<u64>().is_ok_and(|rows| i64::try_from(rows).is_err())))
    };
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) if limit.as_ref().is_some_and(is_endless) => {
            *limit = None;
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) if is_endless(limit) => {
            let offset = Offset { value: offset.clone(), rows: OffsetRows::None };
            let clause = LimitClause::LimitOffset { limit: None, offset: Some(offset), limit_by: Vec::new() };
            query.limit_clause = Some(clause);
        }
        _ => {}
    }
}

/// `SELECT @x := a + 1, @x * 2`: a variable that a list gives a value is that value in what follows it. What the session keeps
/// under its name does not change.
pub(super) fn assigned_variables(statement: &mut impl Tree) -> Result<()> {
    let (mut values, mut copied): (HashMap<String, (Expr, usize)>, usize) = (HashMap::new(), 0);
    statement.try_change_expressions(|expr| {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Assignment, right } => {
                let Some(name) = variable(left) else { return Ok(()) };
                let value = Expr::Nested(right.clone());
                values.insert(name, (value.clone(), value.to_string().len()));
                *expr = value;
            }
            Expr::Identifier(_) => {
                let Some((value, bytes)) = variable(expr).and_then(|name| values.get(&name)) else {
                    return Ok(());
                };
                copied += bytes;
                if copied > MAX_ASSIGNED_BYTES {
                    let message = "the values of variables would make the statement too long";
                    return Err(Error::new(ErrorKind::LimitReached, message)
                        .with_hint("compute them in an inner query"));
                }
                *expr = value.clone();
            }
            _ => {}
        }
        Ok(())
    })
}

/// Bytes of text that the values of one statement's variables may have in all of their places.
const MAX_ASSIGNED_BYTES: usize = 1_000_000;

/// The name of a variable of the client's own.
fn variable(expr: &Expr) -> Option<String> {
    let Expr::Identifier(name) = expr else { return None };
    let is_own = name.quote_style.is_none() && name.value.starts_with('@') && !name.value.starts_with("@@");
    is_own.then(|| name.value.to_lowercase())
}

/// What MySQL calls a database is a schema, and is dropped with all that is in it.
pub(super) fn databases(statement: &mut Statement, dialect: DialectName) {
    if dialect != DialectName::MySql {
        return;
    }
    match statement {
        Statement::CreateDatabase { db_name, if_not_exists, .. } => {
            *statement = Statement::CreateSchema {
                schema_name: SchemaName::Simple(db_name.clone()),
                if_not_exists: *if_not_exists,
                with: None,
                options: None,
                default_collate_spec: None,
                clone: None,
            };
        }
        Statement::Drop {
            object_type: kind @ (ObjectType::Database | ObjectType::Schema),
            cascade,
            restrict,
            ..
        } => {
            *kind = ObjectType::Schema;
            *cascade = !*restrict;
        }
        _ => {}
    }
}

/// `None` for operators that mean the same everywhere.
pub(super) fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    if let Some((left, right)) = as_numbers(left, op, right)? {
        let expr = Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
        return match &expr {
            Expr::BinaryOp { left, op, right } => Ok(binary(left, op, right)?.or(Some(expr))),
            _ => Ok(None),
        };
    }
    let text = match op {
        BinaryOperator::Plus | BinaryOperator::Minus if is_of_days(right) && is_day(left) => {
            if *op == BinaryOperator::Plus {
                "date_plus(CAST(l AS DATE), r)"
            } else {
                "date_plus(CAST(l AS DATE), -r)"
            }
        }
        BinaryOperator::Divide => "CAST(l AS DOUBLE) / nullif(CAST(r AS DOUBLE), 0)",
        BinaryOperator::Modulo => "l % nullif(r, 0)",
        BinaryOperator::MyIntegerDivide => "div(l, nullif(r, 0))",
        BinaryOperator::Plus if is_of_days(right) => "date_plus(l, r)",
        BinaryOperator::Plus if is_of_days(left) => "date_plus(r, l)",
        BinaryOperator::Minus if is_of_days(right) => "date_plus(l, -r)",
        // A text beside an interval is a date or a timestamp.
        BinaryOperator::Plus if is_interval(right) && is_text(left) => "date_add(l, r)",
        BinaryOperator::Plus if is_interval(left) && is_text(right) => "date_add(r, l)",
        BinaryOperator::Minus if is_interval(right) && is_text(left) => "date_sub(l, r)",
        BinaryOperator::Xor => "(l AND TRUE) <> (r AND TRUE)",
        // Whole numbers have 64 bits, where those that are written have 32 elsewhere.
        BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply
            if is_whole(left) || is_whole(right) =>
        {
            let (left, right) = (Box::new(widened(left)?), Box::new(widened(right)?));
            return Ok(Some(Expr::BinaryOp { left, op: op.clone(), right }));
        }
        _ => return Ok(None),
    };
    template::expression(text, &[("l", left), ("r", right)]).map(|expr| Some(Expr::Nested(Box::new(expr))))
}

/// Texts that are written out and dates beside numbers, as the numbers that MySQL computes with; `None` where there are none.
fn as_numbers(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<(Expr, Expr)>> {
    let computes = matches!(
        op,
        BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply | BinaryOperator::Modulo
    );
    if !computes || has_interval(left) || has_interval(right) {
        return Ok(None);
    }
    let beside = |one: &Expr, other: &Expr| -> Result<Option<Expr>> {
        match mysql_functions::number_of_text(one) {
            Some(number) => Ok(Some(number)),
            None if is_whole(other) => mysql_functions::as_number(one),
            None => Ok(None),
        }
    };
    let (one, other) = (beside(left, right)?, beside(right, left)?);
    if one.is_none() && other.is_none() {
        return Ok(None);
    }
    Ok(Some((one.unwrap_or_else(|| left.clone()), other.unwrap_or_else(|| right.clone()))))
}

fn has_interval(expr: &Expr) -> bool {
    expr.has_expression(|part| matches!(part, Expr::Interval(_)))
}

/// Whether it is an interval that is written out.
fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_interval(inner),
        // What `INTERVAL (n) HOUR` became.
        Expr::BinaryOp { op: BinaryOperator::Multiply, right, .. } => is_interval(right),
        other => matches!(other, Expr::Interval(_)),
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(literal(expr), Some(Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)))
}

/// Whether it is a text with a date and no time.
fn is_day(expr: &Expr) -> bool {
    let Some(Value::SingleQuotedString(text) | Value::DoubleQuotedString(text)) = literal(expr) else {
        return false;
    };
    text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// `DATE_ADD(d, INTERVAL 1 DAY)` and its like, `LEAST(a, b)`, `UPPER(a)`, `STD(a)`; `None` for other calls.
pub(super) fn call(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let name = function.name.to_string().to_ascii_lowercase();
    let of_population = match name.as_str() {
        "std" | "stddev" => Some("stddev_pop"),
        "variance" => Some("var_pop"),
        _ => None,
    };
    if let Some(name) = of_population {
        let name = ObjectName::from(vec![Ident::new(name)]);
        return Ok(Some(Expr::Function(Function { name, ..function.clone() })));
    }
    if matches!(name.as_str(), "least" | "greatest") {
        // Its values are needed twice, and may be such calls.
        template::check_copies(function, 2)?;
        return extreme(&name, &list.args);
    }
    if let ("upper" | "lower", [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))]) =
        (name.as_str(), list.args.as_slice())
    {
        // Numbers are texts where those are asked for.
        return template::expression(&format!("{name}(CAST(x AS VARCHAR))"), &[("x", value)]).map(Some);
    }
    if let Some(expr) = mysql_functions::call(&name, function)? {
        return Ok(Some(expr));
    }
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(from)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(span)),
    ] = list.args.as_slice()
    else {
        return Ok(None);
    };
    let text = match name.as_str() {
        "date_add" | "adddate" if is_of_days(span) && is_day(from) => "date_plus(CAST(l AS DATE), r)",
        "date_sub" | "subdate" if is_of_days(span) && is_day(from) => "date_plus(CAST(l AS DATE), -r)",
        "date_add" | "adddate" if is_of_days(span) => "date_plus(l, r)",
        "date_sub" | "subdate" if is_of_days(span) => "date_plus(l, -r)",
        _ => return Ok(None),
    };
    template::expression(text, &[("l", from), ("r", span)]).map(Some)
}

/// NULL is neither the least nor the greatest of values, but the answer.
fn extreme(name: &str, args: &[FunctionArg]) -> Result<Option<Expr>> {
    let Some(values) = calls::values(args) else { return Ok(None) };
    template::check_parts(&format!("`{name}`"), values.len())?;
    let names: Vec<String> = (0..values.len()).map(|at| format!("v{at}")).collect();
    let nulls: Vec<String> = names.iter().map(|name| format!("{name} IS NULL")).collect();
    if nulls.is_empty() {
        return Ok(None);
    }
    let text = format!("CASE WHEN {} THEN NULL ELSE {name}({}) END", nulls.join(" OR "), names.join(", "));
    let holes: Vec<(&str, &Expr)> = names.iter().map(String::as_str).zip(values).collect();
    template::expression(&text, &holes).map(Some)
}

fn widened(expr: &Expr) -> Result<Expr> {
    if is_whole(expr) { template::expression("CAST(n AS BIGINT)", &[("n", expr)]) } else { Ok(expr.clone()) }
}

fn is_whole(expr: &Expr) -> bool {
    let is_digits = |value: &Value| matches!(value, Value::Number(text, _) if text.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(expr, Expr::Value(value) if is_digits(&value.value))
}

/// Whether it is an interval of whole days or months.
fn is_of_days(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_of_days(inner),
        // What `INTERVAL (n) DAY` became.
        Expr::BinaryOp { op: BinaryOperator::Multiply, right, .. } => is_of_days(right),
        Expr::Interval(Interval { leading_field: Some(unit), last_field: None, .. }) => {
            is_whole_days(&unit.to_string())
        }
        Expr::Interval(Interval { leading_field: None, value, .. }) => match value.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => {
                    let mut words = text.split_whitespace();
                    words.next();
                    words.next().is_some_and(is_whole_days) && words.next().is_none()
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

fn is_whole_days(unit: &str) -> bool {
    let unit = unit.to_ascii_uppercase();
    WHOLE_DAYS.contains(&unit.strip_suffix('S').unwrap_or(&unit))
}

#[cfg(test)]
mod tests {
    use super::call;
    use crate::{Dialect, DialectName, parse_expression};
    use bowshot_api::ErrorKind;
    use sqlparser::ast::Expr;

    fn refused(sql: &str) -> Option<ErrorKind> {
        match parse_expression(sql, Dialect::new(DialectName::MySql)) {
            Ok(Expr::Function(function)) => call(&function).err().map(|error| error.kind()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn long_lists_have_no_least_value() {
        let of = |count: usize| format!("least({})", vec!["a"; count].join(", "));
        assert_eq!(refused(&of(200)), None);
        assert_eq!(refused(&of(200_000)), Some(ErrorKind::LimitReached));
    }
}
