//! Filters in the SQL of a database. A filter is pushed down if the database keeps every row that it keeps here. If it keeps exactly
//! these rows the filter is [exact](PushedFilter::exact); otherwise (collations, NaN) it is evaluated again. Below NOT only exact filters are
//! pushed down. MySQL has dates that are not days (`0000-00-00`), which are errors or NULL here: no filter may hide such a row.

use crate::columns::{Column, Comparison};
use crate::dialect;
use crate::kind::Kind;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

/// Most constants of one IN.
const MAX_LIST: usize = 2_000;
/// Deepest nesting of filters.
const MAX_DEPTH: usize = 100;
/// Longest filter in SQL.
const MAX_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushedFilter {
    pub(crate) sql: String,
    /// Whether the database keeps exactly the same rows.
    pub(crate) exact: bool,
}

impl PushedFilter {
    fn exact(sql: String) -> Self {
        Self { sql, exact: true }
    }

    fn more(sql: String) -> Self {
        Self { sql, exact: false }
    }
}

/// The SQL of a filter; `None` if it is evaluated here only.
pub(crate) fn push_down(kind: Kind, expr: &Expr, columns: &[Arc<Column>]) -> Option<PushedFilter> {
    let sent = Writer { kind, columns }.write(expr, 0)?;
    (sent.sql.len() <= MAX_BYTES).then_some(sent)
}

struct Writer<'a> {
    kind: Kind,
    columns: &'a [Arc<Column>],
}

impl Writer<'_> {
    fn write(&self, expr: &Expr, depth: usize) -> Option<PushedFilter> {
        if depth > MAX_DEPTH {
            return None;
        }
        match expr {
            Expr::Alias(alias) => self.write(&alias.expr, depth + 1),
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                match (self.write(left, depth + 1), self.write(right, depth + 1)) {
                    (Some(left), Some(right)) => Some(joined(&left, "AND", &right)),
                    // One side alone keeps more rows.
                    (Some(one), None) | (None, Some(one)) => Some(PushedFilter { exact: false, ..one }),
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
                Some(PushedFilter::exact(format!("(NOT {})", inner.sql)))
            }
            Expr::IsNull(inner) => {
                // MySQL also finds 0000-00-00 by IS NULL.
                let column = self.column(inner).filter(|column| column.compares != Comparison::Days)?;
                Some(PushedFilter::exact(format!("({} IS NULL)", column.named)))
            }
            Expr::IsNotNull(inner) => {
                let column = self.column(inner)?;
                let exact = column.compares != Comparison::Days;
                Some(PushedFilter { sql: format!("({} IS NOT NULL)", column.named), exact })
            }
            Expr::Column(_) => {
                let column = self.column(expr)?;
                let truth =
                    *column.field.data_type() == DataType::Boolean && column.compares == Comparison::All;
                truth.then(|| PushedFilter::exact(column.named.clone()))
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
                    true => both.exact.then(|| PushedFilter::exact(format!("(NOT {})", both.sql))),
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

    /// Whether a filter reads a column that may have invalid dates.
    fn has_days(&self, expr: &Expr) -> bool {
        let is_days = |name: &str| self.named(name).is_some_and(|column| column.compares == Comparison::Days);
        expr.column_refs().iter().any(|column| is_days(&column.name))
    }

    /// `column operator constant`
    fn compared(&self, name: &str, op: Operator, value: &ScalarValue) -> Option<PushedFilter> {
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
            Comparison::All => {}
            Comparison::EqualTexts if equality => {}
            Comparison::CoarseTexts if op == Operator::Eq => {}
            Comparison::Floats => return self.float(column, op, value),
            Comparison::ByteTexts => return self.of_bytes(column, written, value),
            Comparison::Days if !is_moment_there(column, value) => return None,
            Comparison::Days => {}
            Comparison::Nothing | Comparison::EqualTexts | Comparison::CoarseTexts => return None,
        }
        let sql = format!("({} {written} {})", column.named, dialect::constant(self.kind, value)?);
        let exact = match column.compares {
            Comparison::CoarseTexts => false,
            Comparison::Days => op == Operator::Eq,
            _ => true,
        };
        Some(PushedFilter { sql, exact })
    }

    /// Compares texts by their bytes, and for equality by their collation too, which may use an index.
    fn of_bytes(&self, column: &Column, written: &str, value: &ScalarValue) -> Option<PushedFilter> {
        let (named, constant) = (&column.named, dialect::constant(self.kind, value)?);
        let bytes = format!("({} {written} {})", as_bytes(&column.sent), as_bytes(&constant));
        Some(PushedFilter::exact(match written {
            "=" if fits(column, value) => format!("(({named} = {constant}) AND {bytes})"),
            _ => bytes,
        }))
    }

    /// Databases disagree on NaN and on the sign of zero, so NaN and both zeros are selected too.
    fn float(&self, column: &Column, op: Operator, value: &ScalarValue) -> Option<PushedFilter> {
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
            // They have no NaN.
            Kind::Sqlite | Kind::Mysql => {
                return Some(PushedFilter::more(format!("({} {written} {constant})", column.named)));
            }
            Kind::Postgres => "'NaN'::float8",
            Kind::DuckDb => "CAST('NaN' AS DOUBLE)",
            Kind::FlightSql => return None,
        };
        let named = &column.named;
        Some(PushedFilter::more(format!("({named} {written} {constant} OR {named} = {none})")))
    }

    fn listed(&self, list: &InList) -> Option<PushedFilter> {
        let column = self.column(&list.expr)?;
        let exact = match column.compares {
            Comparison::All | Comparison::EqualTexts | Comparison::ByteTexts => true,
            Comparison::Days => !list.negated,
            Comparison::CoarseTexts if !list.negated => false,
            Comparison::CoarseTexts | Comparison::Floats | Comparison::Nothing => return None,
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
        if column.compares != Comparison::ByteTexts {
            return Some(PushedFilter { sql: plain, exact });
        }
        let constants: Vec<String> = constants.iter().map(|constant| as_bytes(constant)).collect();
        let bytes = within(&as_bytes(&column.sent), &constants);
        let alone = list.negated || !values.iter().all(|value| fits(column, value));
        Some(PushedFilter::exact(if alone { bytes } else { format!("({plain} AND {bytes})") }))
    }
}

/// Whether a constant exists in the character set of a column. A converted column has
/// another character set than the constant.
fn fits(column: &Column, value: &ScalarValue) -> bool {
    column.sent == column.named || value.try_as_str().flatten().is_some_and(str::is_ascii)
}

fn as_bytes(text: &str) -> String {
    format!("CAST({text} AS BINARY)")
}

/// Whether a constant is in the range of MySQL's TIMESTAMP (1970 to 2038); always true
/// for other types.
fn is_moment_there(column: &Column, value: &ScalarValue) -> bool {
    /// One day less on both sides.
    const MICROS: std::ops::Range<i64> = 86_400_000_000..2_147_397_247_000_000;
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    if column.compares != Comparison::Days || *column.field.data_type() != moment {
        return true;
    }
    match value.cast_to(&moment) {
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => MICROS.contains(&micros),
        _ => false,
    }
}

/// Column and constant must have the same type here; the types of texts and decimals count as one.
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

fn joined(left: &PushedFilter, word: &str, right: &PushedFilter) -> PushedFilter {
    PushedFilter { sql: format!("({} {word} {})", left.sql, right.sql), exact: left.exact && right.exact }
}

#[cfg(test)]
mod tests;
