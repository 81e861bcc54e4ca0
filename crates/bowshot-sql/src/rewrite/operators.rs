//! Operators and calls that the planner does not know, or takes for another one.

use super::{
    conditions, intervals, like_escape, literals, mysql, mysql_conditions, mysql_functions, patterns,
    variants,
};
use crate::calls::{self, argument};
use crate::dialect::DialectName;
use crate::literal::quoted_text;
use crate::template::{self, meaning};
use crate::walk::{Tree, replace};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, Select, Statement, UnaryOperator,
    Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    statement.try_walk(&mut Operators(dialect))
}

struct Operators(DialectName);

impl VisitorMut for Operators {
    type Break = Error;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if self.0 == DialectName::MySql {
            mysql_conditions::in_select(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        if self.0 == DialectName::MySql {
            mysql_conditions::in_statement(statement);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr {
            call(function);
        }
        if self.0 == DialectName::MySql {
            mysql_conditions::in_expression(expr);
        }
        if let Expr::CompoundFieldAccess { root, access_chain } = expr {
            fields(root, access_chain);
            return ControlFlow::Continue(());
        }
        replace(expr, |expr| self.operator(expr))
    }
}

/// `array_length(a, 1)`, which is NULL for an array without elements.
fn is_length(function: &Function) -> bool {
    let is_in_dimension = matches!(&function.args, FunctionArguments::List(list) if list.args.len() == 2);
    is_in_dimension && function.name.to_string().eq_ignore_ascii_case("array_length")
}

/// `a <=> b`: of its sides the planner asks what they mean beside each other, but not of those of IS NOT DISTINCT FROM.
fn not_distinct(left: &Expr, right: &Expr) -> Expr {
    let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Spaceship, right }))
}

/// `NOT a <=> b`.
fn distinct(left: &Expr, right: &Expr) -> Expr {
    let not = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(not_distinct(left, right)) };
    Expr::Nested(Box::new(not))
}

impl Operators {
    fn operator(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::JsonAccess { value, path } => Ok(Some(variants::access(value, path))),
            Expr::Function(function) => self.call(expr, function),
            Expr::Substring { expr, substring_from: Some(from), substring_for, .. }
                if self.0 == DialectName::MySql =>
            {
                mysql_functions::part(expr, from, substring_for.as_deref())
            }
            Expr::Substring { expr, substring_from: Some(from), substring_for: None, .. }
                if self.0 == DialectName::Postgres =>
            {
                patterns::part(expr, from)
            }
            Expr::Like { .. } | Expr::ILike { .. } => like_escape::escaped(expr),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } if self.0 != DialectName::MySql => {
                let Some(truth) = literals::truth(expr)? else { return Ok(None) };
                Ok(Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(truth) }))
            }
            // Of an integer of any width.
            Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
                let not = template::expression("-1 - x", &[("x", expr)])?;
                Ok(Some(Expr::Nested(Box::new(not))))
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                patterns::similar(expr, pattern, escape_char.as_ref().map(|value| &value.value), *negated)
                    .map(Some)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                template::expression("timezone(z, t)", &[("z", time_zone), ("t", timestamp)]).map(Some)
            }
            Expr::RLike { negated, expr, pattern, .. } => {
                let text = if *negated { "t !~ p" } else { "t ~ p" };
                let found = template::expression(text, &[("t", expr), ("p", pattern)])?;
                Ok(Some(Expr::Nested(Box::new(found))))
            }
            Expr::Convert { is_try, expr, data_type, charset, .. } => {
                Ok(Some(converted(*is_try, expr, data_type.as_ref(), charset.is_some())))
            }
            Expr::IsTrue(of) | Expr::IsNotTrue(of) | Expr::IsFalse(of) | Expr::IsNotFalse(of) => {
                truth(expr, of).map(Some)
            }
            Expr::IsNull(_) | Expr::IsNotNull(_) if self.0 == DialectName::Postgres => {
                Ok(conditions::of_each_field(expr))
            }
            Expr::IsNotDistinctFrom(left, right) => Ok(Some(not_distinct(left, right))),
            Expr::IsDistinctFrom(left, right) => Ok(Some(distinct(left, right))),
            Expr::IsUnknown(of) => Ok(Some(Expr::IsNull(of.clone()))),
            Expr::IsNotUnknown(of) => Ok(Some(Expr::IsNotNull(of.clone()))),
            Expr::Interval(interval) => intervals::interval(interval),
            Expr::Array(array) => Ok(of_columns(array)),
            Expr::UnaryOp { op, expr } => intervals::negative(*op, expr),
            Expr::Cast { kind, expr, data_type, .. } => match bytes(kind, expr, data_type) {
                Some(bytes) => Ok(Some(bytes)),
                None => match intervals::cast(kind, expr, data_type)? {
                    None if self.0 == DialectName::MySql => mysql_functions::cast(kind, expr, data_type),
                    interval => Ok(interval),
                },
            },
            Expr::Value(value) => match self.text(&value.value) {
                None => literals::double(expr),
                text => Ok(text),
            },
            Expr::Identifier(name) if self.0 != DialectName::MySql && name.quote_style.is_none() => {
                variable(&name.value)
            }
            _ => Ok(None),
        }
    }

    fn call(&self, expr: &Expr, function: &Function) -> Result<Option<Expr>> {
        if let Some(cast) = variants::typed_part(function)? {
            return Ok(Some(cast));
        }
        match self.0 {
            DialectName::MySql => mysql::call(function),
            DialectName::Postgres if is_length(function) => {
                template::expression("nullif(CAST(n AS INT), 0)", &[("n", expr)]).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Texts in forms that the planner does not know.
    fn text(&self, value: &Value) -> Option<Expr> {
        let text = match value {
            // In MySQL, names are quoted with backticks.
            Value::DoubleQuotedString(text) if self.0 == DialectName::MySql => text,
            Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text)
            | Value::SingleQuotedRawStringLiteral(text) => text,
            _ => return None,
        };
        Some(Expr::value(Value::SingleQuotedString(text.clone())))
    }

    fn binary(&self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
        if self.0 == DialectName::MySql
            && let Some(rewritten) = mysql::binary(left, op, right)?
        {
            return Ok(Some(rewritten));
        }
        if *op == BinaryOperator::Overlaps {
            return overlaps(left, right);
        }
        if self.0 != DialectName::MySql
            && let Some(found) = patterns::regular_expression(left, op, right)?
        {
            return Ok(Some(found));
        }
        if self.0 != DialectName::MySql && matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            let (truth, other) = (literals::truth(left)?, literals::truth(right)?);
            if truth.is_none() && other.is_none() {
                return Ok(None);
            }
            let [left, right] =
                [truth.unwrap_or_else(|| left.clone()), other.unwrap_or_else(|| right.clone())];
            let (left, right) = (Box::new(left), Box::new(right));
            return Ok(Some(Expr::BinaryOp { left, op: op.clone(), right }));
        }
        let text = match op {
            // `^` is the exclusive or in MySQL alone.
            BinaryOperator::BitwiseXor if self.0 != DialectName::MySql => "power(l, r)",
            BinaryOperator::PGExp => "power(l, r)",
            BinaryOperator::DuckIntegerDivide => "divide(l, r)",
            BinaryOperator::MyIntegerDivide => "div(l, r)",
            BinaryOperator::PGOverlap => "array_has_any(l, r)",
            BinaryOperator::PGStartsWith => "starts_with(l, r)",
            BinaryOperator::Xor => "(l AND NOT r) OR (NOT l AND r)",
            BinaryOperator::Custom(name) => match name.as_str() {
                "**" => "power(l, r)",
                // Texts are compared by their bytes in any case.
                "~<~" => "l < r",
                "~<=~" => "l <= r",
                "~>~" => "l > r",
                "~>=~" => "l >= r",
                "GLOB" => return patterns::glob(left, right).map(Some),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        template::expression(text, &[("l", left), ("r", right)])
            .map(|expr| Some(Expr::Nested(Box::new(expr))))
    }
}

/// `(a, b) OVERLAPS (c, d)`: whichever end of a period comes first; the second may say how long it is. A period without a
/// length is a point in time.
fn overlaps(left: &Expr, right: &Expr) -> Result<Option<Expr>> {
    let (Some((a, b)), Some((c, d))) = (period(left), period(right)) else {
        return Err(Error::invalid("OVERLAPS takes two periods")
            .with_hint("write each with its two ends, as in `(DATE '2024-01-01', DATE '2024-02-01')`"));
    };
    let text = "(least(a, b) > least(c, d) AND least(a, b) < greatest(c, d)) \
                OR (least(a, b) < least(c, d) AND least(c, d) < greatest(a, b)) OR least(a, b) = least(c, d)";
    let expr = template::expression(text, &[("a", &a), ("b", &b), ("c", &c), ("d", &d)])?;
    Ok(Some(Expr::Nested(Box::new(expr))))
}

/// The ends of a period.
fn period(expr: &Expr) -> Option<(Expr, Expr)> {
    match expr {
        Expr::Nested(inner) => period(inner),
        Expr::Tuple(ends) => match ends.as_slice() {
            [start, length @ Expr::Interval(_)] => {
                let end = Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(start.clone()))),
                    op: BinaryOperator::Plus,
                    right: Box::new(length.clone()),
                };
                Some((start.clone(), end))
            }
            [start, end] => Some((start.clone(), end.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// `(a).b`: the planner takes a name for a field only right behind the name of a column, and a text elsewhere.
fn fields(root: &Expr, access_chain: &mut [AccessExpr]) {
    let is_name = |access: &AccessExpr| matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
    let names = match root {
        Expr::Identifier(_) => access_chain.iter().take_while(|access| is_name(access)).count(),
        _ => 0,
    };
    for access in access_chain.iter_mut().skip(names) {
        if let AccessExpr::Dot(field) = access
            && let Expr::Identifier(name) = field
        {
            *field = Expr::value(Value::SingleQuotedString(meaning(name)));
        }
    }
}

/// `@@version`, by which many tools ask where they are.
fn variable(name: &str) -> Result<Option<Expr>> {
    match name.strip_prefix("@@") {
        None => Ok(None),
        Some(name) if name.eq_ignore_ascii_case("version") => {
            template::expression("version()", &[]).map(Some)
        }
        Some(name) if name.eq_ignore_ascii_case("version_comment") => {
            template::expression("'Bowshot'", &[]).map(Some)
        }
        Some(name) => Err(Error::invalid(format!("system variable `{name}` does not exist"))
            .with_hint("the settings are listed by `SHOW ALL`")),
    }
}

/// `a IS TRUE` and its like are comparisons. DataFusion makes such of them itself, but takes them for columns without NULL
/// before and for columns with NULL afterwards, and then refuses to group by them.
fn truth(test: &Expr, of: &Expr) -> Result<Expr> {
    let text = match test {
        Expr::IsTrue(_) => "x IS NOT DISTINCT FROM TRUE",
        Expr::IsNotTrue(_) => "x IS DISTINCT FROM TRUE",
        Expr::IsFalse(_) => "x IS NOT DISTINCT FROM FALSE",
        _ => "x IS DISTINCT FROM FALSE",
    };
    Ok(Expr::Nested(Box::new(template::expression(text, &[("x", of)])?)))
}

/// `CONVERT(x, CHAR)` is a cast; with USING alone the text stays as it is, since all texts are UTF-8.
fn converted(is_try: bool, expr: &Expr, data_type: Option<&DataType>, charset: bool) -> Expr {
    let Some(data_type) = data_type.filter(|_| !charset) else { return expr.clone() };
    let data_type = match data_type {
        DataType::Char(None) => DataType::Text,
        DataType::Signed | DataType::SignedInteger => DataType::BigInt(None),
        other => other.clone(),
    };
    let kind = if is_try { CastKind::TryCast } else { CastKind::Cast };
    Expr::Cast { kind, expr: Box::new(expr.clone()), data_type, array: false, format: None }
}

/// The planner reads the elements of a list as if there were no queries around them.
fn of_columns(array: &Array) -> Option<Expr> {
    let said = |expr: &Expr| {
        matches!(
            expr,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Exists { .. }
        )
    };
    if !array.elem.has_expression(said) {
        return None;
    }
    Some(calls::call("make_array", array.elem.iter().cloned()))
}

/// `'\x41'::bytea`: bytes in hexadecimal digits.
fn bytes(kind: &CastKind, expr: &Expr, data_type: &DataType) -> Option<Expr> {
    let binary = matches!(
        data_type,
        DataType::Bytea | DataType::Blob(_) | DataType::Binary(_) | DataType::Varbinary(_)
    );
    let digits = quoted_text(expr)?.strip_prefix("\\x").filter(|digits| digits.len() % 2 == 0)?;
    if !binary || *kind == CastKind::TryCast || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some(Expr::value(Value::HexStringLiteral(digits.to_owned())))
}

/// Functions whose first argument may be the bare name of a unit.
const WITH_UNIT: &[&str] = bowshot_api::words! {
    date_add date_diff date_part date_sub date_trunc dateadd datediff datepart datesub datetrunc
    datetime_diff last_day time_diff timestamp_diff timestampadd timestampdiff trunc
};

const UNITS: &[&str] = bowshot_api::words! {
    microsecond microseconds millisecond milliseconds second seconds minute minutes hour hours day days
    week weeks month months quarter quarters year years decade century
};

fn call(function: &mut Function) {
    let name =
        function.name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_ascii_lowercase());
    let Some(name) = name else { return };
    // `pg_catalog.upper(x)` is `upper(x)`.
    if function.name.0.len() == 2
        && function
            .name
            .0
            .first()
            .and_then(|part| part.as_ident())
            .is_some_and(|schema| schema.value.eq_ignore_ascii_case("pg_catalog"))
    {
        function.name.0.remove(0);
    }
    let within = std::mem::take(&mut function.within_group);
    let FunctionArguments::List(list) = &mut function.args else {
        function.within_group = within;
        return;
    };
    if WITH_UNIT.contains(&name.as_str()) {
        unit_as_text(list);
    }
    literals::numbers(&name, list);
    separator(list);
    if matches!(name.as_str(), "listagg" | "string_agg" | "group_concat") && !within.is_empty() {
        list.clauses.push(FunctionArgumentClause::OrderBy(within));
    } else {
        function.within_group = within;
    }
}

/// `date_diff(day, a, b)` is `date_diff('day', a, b)`.
fn unit_as_text(list: &mut FunctionArgumentList) {
    if list.args.len() < 2 {
        return;
    }
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut() else { return };
    if let Expr::Identifier(Ident { value, quote_style: None, .. }) = first {
        let unit = value.to_ascii_lowercase();
        // `SQL_TSI_DAY` of MySQL and ODBC.
        let unit = unit.strip_prefix("sql_tsi_").unwrap_or(&unit);
        if UNITS.contains(&unit) {
            *first = Expr::value(Value::SingleQuotedString(unit.to_owned()));
        }
    }
}

/// `group_concat(a SEPARATOR ';')` is `group_concat(a, ';')`.
fn separator(list: &mut FunctionArgumentList) {
    let place = list.clauses.iter().position(|clause| matches!(clause, FunctionArgumentClause::Separator(_)));
    let Some(place) = place else { return };
    if let FunctionArgumentClause::Separator(value) = list.clauses.remove(place) {
        list.args.push(argument(Expr::Value(value)));
    }
}
