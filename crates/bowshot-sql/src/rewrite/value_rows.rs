//! `VALUES ('2024-01-01'), (DATE '2024-01-02')`: in PostgreSQL a text that is written out has the type of the other rows. The planner
//! makes texts of all of them. Rows of INSERT are left alone, since each of their values has the type of its column.

use super::literals;
use crate::dialect::DialectName;
use crate::template;
use crate::walk::{Tree, flow};
use bowshot_api::{Error, Result};
use sqlparser::ast::{
    DataType, Expr, Query, SetExpr, Statement, TimezoneInfo, UnaryOperator, Value, VisitorMut,
};
use std::ops::ControlFlow;

pub(super) fn rewrite(statement: &mut impl Tree, dialect: DialectName) -> Result<()> {
    if dialect != DialectName::Postgres {
        return Ok(());
    }
    statement.try_walk(&mut Rows { is_inserted: false })
}

struct Rows {
    /// Whether the next query is that of an INSERT.
    is_inserted: bool,
}

impl VisitorMut for Rows {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Error> {
        self.is_inserted = matches!(statement, Statement::Insert(insert) if insert.source.is_some());
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let is_inserted = std::mem::take(&mut self.is_inserted);
        match query.body.as_mut() {
            SetExpr::Values(values) if !is_inserted => {
                let mut rows: Vec<&mut Vec<Expr>> =
                    values.rows.iter_mut().map(|row| &mut row.content).collect();
                flow(in_columns(&mut rows))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn in_columns(rows: &mut [&mut Vec<Expr>]) -> Result<()> {
    let width = rows.first().map_or(0, |row| row.len());
    for column in 0..width {
        let array = rows.iter().find_map(|row| array_type(row.get(column)?));
        let scalar = common(rows.iter().filter_map(|row| row.get(column)));
        for value in rows.iter_mut().filter_map(|row| row.get_mut(column)).filter(|value| is_text(value)) {
            *value = match (&array, scalar) {
                (Some(array), _) => cast(value, array)?,
                (None, Some(scalar)) => scalar.read(value)?,
                (None, None) => break,
            };
        }
    }
    Ok(())
}

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralType {
    Boolean,
    Date,
    Timestamp,
    Instant,
    Time,
    Interval,
    Uuid,
    Integer,
    Numeric,
    Double,
}

impl LiteralType {
    /// Of two types the one that has the values of both.
    fn rank(self) -> u8 {
        match self {
            Self::Boolean | Self::Date | Self::Time | Self::Interval | Self::Uuid | Self::Integer => 0,
            Self::Timestamp | Self::Numeric => 1,
            Self::Instant | Self::Double => 2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Date => "DATE",
            Self::Timestamp => "TIMESTAMP",
            Self::Instant => "TIMESTAMP WITH TIME ZONE",
            Self::Time => "TIME",
            Self::Interval => "INTERVAL",
            Self::Uuid => "UUID",
            Self::Integer => "INTEGER",
            Self::Numeric => "NUMERIC",
            Self::Double => "DOUBLE PRECISION",
        }
    }

    /// A text as a value of the type.
    fn read(self, text: &Expr) -> Result<Expr> {
        let number = match self {
            Self::Integer => literals::number(text).filter(is_integer),
            Self::Numeric => literals::number(text),
            _ => None,
        };
        number.map_or_else(|| cast(text, self.name()), Ok)
    }
}

fn cast(text: &Expr, to: &str) -> Result<Expr> {
    template::expression(&format!("CAST(x AS {to})"), &[("x", text)])
}

/// The type that has the values of all that say one.
fn common<'a>(values: impl Iterator<Item = &'a Expr>) -> Option<LiteralType> {
    values.filter_map(literal_type).max_by_key(|of| of.rank())
}

/// The type of an array whose elements are written out.
fn array_type(value: &Expr) -> Option<String> {
    let elements = match value {
        Expr::Array(array) => &array.elem,
        Expr::Nested(inner) => return array_type(inner),
        _ => return None,
    };
    if let Some(inner) = elements.iter().find_map(array_type) {
        return Some(format!("{inner}[]"));
    }
    let is_known = |value: &Expr| literal_type(value).is_some() || is_text(value) || is_null(value);
    if !elements.iter().all(is_known) {
        return None;
    }
    let element = match common(elements.iter()) {
        Some(LiteralType::Integer) => "BIGINT",
        Some(of) => of.name(),
        None if elements.iter().any(is_text) => "TEXT",
        None => return None,
    };
    Some(format!("{element}[]"))
}

/// What a value says of its type.
fn literal_type(value: &Expr) -> Option<LiteralType> {
    match value {
        Expr::TypedString(typed) => of_type(&typed.data_type),
        Expr::Cast { data_type, .. } => of_type(data_type),
        Expr::Interval(_) => Some(LiteralType::Interval),
        Expr::Nested(inner) => literal_type(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => literal_type(expr),
        Expr::Value(value) => match &value.value {
            Value::Boolean(_) => Some(LiteralType::Boolean),
            Value::Number(digits, _) if is_whole(digits) => Some(LiteralType::Integer),
            Value::Number(..) => Some(LiteralType::Numeric),
            _ => None,
        },
        _ => None,
    }
}

fn of_type(data_type: &DataType) -> Option<LiteralType> {
    Some(match data_type {
        DataType::Bool | DataType::Boolean => LiteralType::Boolean,
        DataType::Date => LiteralType::Date,
        DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => LiteralType::Timestamp,
        DataType::Timestamp(..) => LiteralType::Instant,
        DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => LiteralType::Time,
        DataType::Interval { .. } => LiteralType::Interval,
        DataType::Uuid => LiteralType::Uuid,
        DataType::SmallInt(_)
        | DataType::Int2(_)
        | DataType::Int(_)
        | DataType::Int4(_)
        | DataType::Integer(_)
        | DataType::Int8(_)
        | DataType::BigInt(_) => LiteralType::Integer,
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => LiteralType::Numeric,
        DataType::Real
        | DataType::Float4
        | DataType::Float8
        | DataType::Float(_)
        | DataType::Double(_)
        | DataType::DoublePrecision => LiteralType::Double,
        _ => return None,
    })
}

fn is_text(value: &Expr) -> bool {
    match value {
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        Expr::Nested(inner) => is_text(inner),
        _ => false,
    }
}

fn is_null(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if value.value == Value::Null)
}

fn is_integer(number: &Expr) -> bool {
    match number {
        Expr::Value(value) => matches!(&value.value, Value::Number(digits, _) if is_whole(digits)),
        Expr::UnaryOp { expr, .. } => is_integer(expr),
        _ => false,
    }
}

fn is_whole(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    #[test]
    fn texts_among_arrays_are_arrays() {
        for (first, to) in [
            ("ARRAY[3]", Some("BIGINT[]")),
            ("ARRAY[3, 1.5, NULL]", Some("NUMERIC[]")),
            ("ARRAY['a']", Some("TEXT[]")),
            ("ARRAY[ARRAY[true]]", Some("BOOLEAN[][]")),
            ("ARRAY[a]", None),
            ("ARRAY[]", None),
        ] {
            let sql = format!("VALUES ({first}), ('{{}}')");
            let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, &sql).unwrap().pop().unwrap();
            rewrite(&mut statement, DialectName::Postgres).unwrap();
            let text = to.map_or_else(|| "'{}'".to_owned(), |to| format!("CAST(('{{}}') AS {to})"));
            assert_eq!(statement.to_string(), format!("VALUES ({first}), ({text})"));
        }
    }
}
