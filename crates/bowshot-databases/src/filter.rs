//! Conditions in the SQL of a database.
//!
//! A condition is sent where every row that it keeps here is kept there too. Where the database keeps exactly these rows it is
//! not looked at again ([`Sent::exact`]); where it may keep more (texts that a collation takes for equal, NaN), it is computed
//! here over what comes. Everything else (functions, arithmetic, LIKE, the order of texts, casts) is computed here alone.
//!
//! A row on which a condition is neither true nor false is kept by neither. Below NOT nothing may be sent that keeps more.
//!
//! MySQL keeps dates that are no days (`0000-00-00`), which are errors here, or NULL: no condition may decide over such a row unseen.
//! Equality with a day never keeps one; whatever else may is computed again, over the value that comes. Its texts are equal and in
//! order as collations have it, and as here when their bytes are asked for.

use crate::columns::{Column, Compares};
use crate::dialect;
use crate::settings::Kind;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Constants of one IN; longer ones are compared here.
const MAX_LIST: usize = 2_000;
/// Conditions within conditions.
const MAX_DEPTH: usize = 100;
/// Bytes of one condition.
const MAX_BYTES: usize = 256 << 10;

/// A condition as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) sql: String,
    /// Whether the database keeps the very same rows.
    pub(crate) exact: bool,
}

impl Sent {
    fn exact(sql: String) -> Self {
        Self { sql, exact: true }
    }

    fn more(sql: String) -> Self {
        Self { sql, exact: false }
    }
}

/// A condition over the columns of a table; `None` for one that is computed here.
pub(crate) fn sent(kind: Kind, expr: &Expr, columns: &[Arc<Column>]) -> Option<Sent> {
    let sent = Writer { kind, columns }.write(expr, 0)?;
    (sent.sql.len() <= MAX_BYTES).then_some(sent)
}

struct Writer<'a> {
    kind: Kind,
    columns: &'a [Arc<Column>],
}

impl Writer<'_> {
    fn write(&self, expr: &Expr, depth: usize) -> Option<Sent> {
        if depth > MAX_DEPTH {
            return None;
        }
        match expr {
            Expr::Alias(alias) => self.write(&alias.expr, depth + 1),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                match (self.write(left, depth + 1), self.write(right, depth + 1)) {
                    (Some(left), Some(right)) => Some(joined(&left, "AND", &right)),
                    // One of them alone keeps more.
                    (Some(one), None) | (None, Some(one)) => Some(Sent { exact: false, ..one }),
                    (None, None) => None,
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Some(joined(&self.write(left, depth + 1)?, "OR", &self.write(right, depth + 1)?))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), Expr::Literal(value, _)) => self.compared(&column.name, *op, value),
                (Expr::Literal(value, _), Expr::Column(column)) => {
                    self.compared(&column.name, op.swap()?, value)
                }
                _ => None,
            },
            Expr::Not(inner) => {
                if self.has_days(inner) {
                    return None;
                }
                let inner = self.write(inner, depth + 1).filter(|inner| inner.exact)?;
                Some(Sent::exact(format!("(NOT {})", inner.sql)))
            }
            Expr::IsNull(inner) => {
                // MySQL also finds 0000-00-00 by it.
                let column = self.column(inner).filter(|column| column.compares != Compares::Days)?;
                Some(Sent::exact(format!("({} IS NULL)", column.named)))
            }
            Expr::IsNotNull(inner) => {
                let column = self.column(inner)?;
                let exact = column.compares != Compares::Days;
                Some(Sent { sql: format!("({} IS NOT NULL)", column.named), exact })
            }
            Expr::Column(_) => {
                let column = self.column(expr)?;
                let truth =
                    *column.field.data_type() == DataType::Boolean && column.compares == Compares::All;
                truth.then(|| Sent::exact(column.named.clone()))
            }
            Expr::Between(between) => {
                let Expr::Column(column) = between.expr.as_ref() else { return None };
                let (Expr::Literal(low, _), Expr::Literal(high, _)) =
                    (between.low.as_ref(), between.high.as_ref())
                else {
                    return None;
                };
                let low = self.compared(&column.name, Operator::GtEq, low)?;
                let both = joined(&low, "AND", &self.compared(&column.name, Operator::LtEq, high)?);
                match between.negated {
                    false => Some(both),
                    true => both.exact.then(|| Sent::exact(format!("(NOT {})", both.sql))),
                }
            }
            Expr::InList(list) => self.listed(list),
            _ => None,
        }
    }

    fn column(&self, expr: &Expr) -> Option<&Column> {
        let Expr::Column(column) = expr else { return None };
        self.named(&column.name)
    }

    fn named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.field.name() == name).map(AsRef::as_ref)
    }

    /// Whether something is asked of a column in which there may be days that are none.
    fn has_days(&self, expr: &Expr) -> bool {
        let is_days = |name: &str| self.named(name).is_some_and(|column| column.compares == Compares::Days);
        expr.column_refs().iter().any(|column| is_days(&column.name))
    }

    /// `column operator constant`
    fn compared(&self, name: &str, op: Operator, value: &ScalarValue) -> Option<Sent> {
        let column = self.named(name)?;
        let written = match op {
            Operator::Eq => "=",
            Operator::NotEq => "<>",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            _ => return None,
        };
        if !same_type(column, value) {
            return None;
        }
        let equality = matches!(op, Operator::Eq | Operator::NotEq);
        match column.compares {
            Compares::All => {}
            Compares::EqualTexts if equality => {}
            Compares::CoarseTexts if op == Operator::Eq => {}
            Compares::Floats => return self.float(column, op, value),
            Compares::ByteTexts => return self.of_bytes(column, written, value),
            Compares::Days if !is_moment_there(column, value) => return None,
            Compares::Days => {}
            Compares::Nothing | Compares::EqualTexts | Compares::CoarseTexts => return None,
        }
        let sql = format!("({} {written} {})", column.named, dialect::constant(self.kind, value)?);
        let exact = match column.compares {
            Compares::CoarseTexts => false,
            Compares::Days => op == Operator::Eq,
            _ => true,
        };
        Some(Sent { sql, exact })
    }

    /// Texts by their bytes. What their collation finds equal is asked for too where it is enough, since it may have an index.
    fn of_bytes(&self, column: &Column, written: &str, value: &ScalarValue) -> Option<Sent> {
        let (named, constant) = (&column.named, dialect::constant(self.kind, value)?);
        let bytes = format!("({} {written} {})", as_bytes(&column.sent), as_bytes(&constant));
        Some(Sent::exact(match written {
            "=" if fits(column, value) => format!("(({named} = {constant}) AND {bytes})"),
            _ => bytes,
        }))
    }

    /// Databases disagree on NaN and on the sign of zero: NaN is asked for too, and zero with both signs.
    fn float(&self, column: &Column, op: Operator, value: &ScalarValue) -> Option<Sent> {
        let zero = matches!(value, ScalarValue::Float32(Some(number)) if *number == 0.0)
            || matches!(value, ScalarValue::Float64(Some(number)) if *number == 0.0);
        let written = match op {
            Operator::Eq => "=",
            Operator::Lt if zero => "<=",
            Operator::Gt if zero => ">=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            _ => return None,
        };
        let constant = dialect::constant(self.kind, value)?;
        let none = match self.kind {
            // There is no NaN in them.
            Kind::Sqlite | Kind::Mysql => {
                return Some(Sent::more(format!("({} {written} {constant})", column.named)));
            }
            Kind::Postgres => "'NaN'::float8",
            Kind::DuckDb => "CAST('NaN' AS DOUBLE)",
            Kind::FlightSql => return None,
        };
        let named = &column.named;
        Some(Sent::more(format!("({named} {written} {constant} OR {named} = {none})")))
    }

    fn listed(&self, list: &InList) -> Option<Sent> {
        let column = self.column(&list.expr)?;
        let exact = match column.compares {
            Compares::All | Compares::EqualTexts | Compares::ByteTexts => true,
            Compares::Days => !list.negated,
            Compares::CoarseTexts if !list.negated => false,
            Compares::CoarseTexts | Compares::Floats | Compares::Nothing => return None,
        };
        if list.list.is_empty() || list.list.len() > MAX_LIST {
            return None;
        }
        let value = |expr: &'_ Expr| match expr {
            Expr::Literal(value, _) if same_type(column, value) && is_moment_there(column, value) => {
                Some(value.clone())
            }
            _ => None,
        };
        let values = list.list.iter().map(value).collect::<Option<Vec<_>>>()?;
        let constants = values.iter().map(|value| dialect::constant(self.kind, value));
        let constants = constants.collect::<Option<Vec<_>>>()?;
        let not = if list.negated { "NOT " } else { "" };
        let within =
            |named: &str, constants: &[String]| format!("({named} {not}IN ({}))", constants.join(", "));
        let plain = within(&column.named, &constants);
        if column.compares != Compares::ByteTexts {
            return Some(Sent { sql: plain, exact });
        }
        let constants: Vec<String> = constants.iter().map(|constant| as_bytes(constant)).collect();
        let bytes = within(&as_bytes(&column.sent), &constants);
        let alone = list.negated || !values.iter().all(|value| fits(column, value));
        Some(Sent::exact(if alone { bytes } else { format!("({plain} AND {bytes})") }))
    }
}

/// Whether a constant fits into the character set of a column, so that it can be compared in it. Texts that are converted have
/// another one than it.
fn fits(column: &Column, value: &ScalarValue) -> bool {
    column.sent == column.named || value.try_as_str().flatten().is_some_and(str::is_ascii)
}

/// A text of MySQL as its bytes.
fn as_bytes(text: &str) -> String {
    format!("CAST({text} AS BINARY)")
}

/// Whether a constant is a moment that MySQL's TIMESTAMP has: it makes something else of those before 1970 and after 2038. All
/// others are.
fn is_moment_there(column: &Column, value: &ScalarValue) -> bool {
    /// With a day less on both sides.
    const MICROS: std::ops::Range<i64> = 86_400_000_000..2_147_397_247_000_000;
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    if column.compares != Compares::Days || *column.field.data_type() != moment {
        return true;
    }
    match value.cast_to(&moment) {
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => MICROS.contains(&micros),
        _ => false,
    }
}

/// What is compared has one type here, and so it means one thing there. Texts have several that are one.
fn same_type(column: &Column, value: &ScalarValue) -> bool {
    let (here, there) = (column.field.data_type(), value.data_type());
    here.equals_datatype(&there)
        || here.is_string() && there.is_string()
        || here.is_decimal() && there.is_decimal()
        || matches!((here, &there), (
            DataType::Timestamp(_, one),
            DataType::Timestamp(_, other),
        ) if one.is_some() == other.is_some())
}

fn joined(left: &Sent, word: &str, right: &Sent) -> Sent {
    Sent { sql: format!("({} {word} {})", left.sql, right.sql), exact: left.exact && right.exact }
}

#[cfg(test)]
mod tests;
