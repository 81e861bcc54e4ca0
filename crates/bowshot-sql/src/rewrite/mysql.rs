//! What is MySQL's own. Operators mean something else: `7 / 2` is 3.5, what is divided by zero is NULL, and a date stays one when
//! days are added to it. UPDATE has ORDER BY and LIMIT.

use crate::dialect::DialectName;
use crate::template;
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Interval, ObjectType, SchemaName, SetExpr, Statement, Value,
};

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
    let text = match op {
        BinaryOperator::Divide => "CAST(l AS DOUBLE) / nullif(CAST(r AS DOUBLE), 0)",
        BinaryOperator::Modulo => "l % nullif(r, 0)",
        BinaryOperator::MyIntegerDivide => "div(l, nullif(r, 0))",
        BinaryOperator::Plus if is_of_days(right) => "date_plus(l, r)",
        BinaryOperator::Plus if is_of_days(left) => "date_plus(r, l)",
        BinaryOperator::Minus if is_of_days(right) => "date_plus(l, -r)",
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

/// `DATE_ADD(d, INTERVAL 1 DAY)` and its like, `LEAST(a, b)`, `UPPER(a)`; `None` for other calls.
pub(super) fn call(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let name = function.name.to_string().to_ascii_lowercase();
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
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(from)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(span)),
    ] = list.args.as_slice()
    else {
        return Ok(None);
    };
    let text = match name.as_str() {
        "date_add" | "adddate" if is_of_days(span) => "date_plus(l, r)",
        "date_sub" | "subdate" if is_of_days(span) => "date_plus(l, -r)",
        _ => return Ok(None),
    };
    template::expression(text, &[("l", from), ("r", span)]).map(Some)
}

/// NULL is neither the least nor the greatest of values, but the answer.
fn extreme(name: &str, args: &[FunctionArg]) -> Result<Option<Expr>> {
    let values = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    let Some(values) = values.collect::<Option<Vec<&Expr>>>() else { return Ok(None) };
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
