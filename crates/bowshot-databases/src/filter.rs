//! Conditions in the SQL of a database.
//!
//! A condition is sent where every row that it keeps here is kept there too. Where the database keeps exactly these rows it is
//! not looked at again ([`Sent::exact`]); where it may keep more (texts that a collation takes for equal, NaN), it is computed
//! here over what comes. Everything else (functions, arithmetic, LIKE, the order of texts, casts) is computed here alone.
//!
//! A row on which a condition is neither true nor false is kept by neither. Below NOT nothing may be sent that keeps more.

use crate::columns::{Column, Compares};
use crate::dialect;
use crate::settings::Kind;
use datafusion::arrow::datatypes::DataType;
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
                let inner = self.write(inner, depth + 1).filter(|inner| inner.exact)?;
                Some(Sent::exact(format!("(NOT {})", inner.sql)))
            }
            Expr::IsNull(inner) => Some(Sent::exact(format!("({} IS NULL)", self.column(inner)?.named))),
            Expr::IsNotNull(inner) => {
                Some(Sent::exact(format!("({} IS NOT NULL)", self.column(inner)?.named)))
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
            Compares::Nothing | Compares::EqualTexts | Compares::CoarseTexts => return None,
        }
        let sql = format!("({} {written} {})", column.named, dialect::constant(self.kind, value)?);
        Some(Sent { sql, exact: column.compares != Compares::CoarseTexts })
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
            // There is no NaN in it.
            Kind::Sqlite => return Some(Sent::more(format!("({} {written} {constant})", column.named))),
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
            Compares::All | Compares::EqualTexts => true,
            Compares::CoarseTexts if !list.negated => false,
            Compares::CoarseTexts | Compares::Floats | Compares::Nothing => return None,
        };
        if list.list.is_empty() || list.list.len() > MAX_LIST {
            return None;
        }
        let constant = |expr: &Expr| match expr {
            Expr::Literal(value, _) if same_type(column, value) => dialect::constant(self.kind, value),
            _ => None,
        };
        let constants = list.list.iter().map(constant).collect::<Option<Vec<_>>>()?.join(", ");
        let not = if list.negated { "NOT " } else { "" };
        Some(Sent { sql: format!("({} {not}IN ({constants}))", column.named), exact })
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
mod tests {
    use super::*;
    use datafusion::prelude::{col, in_list, lit};

    fn columns() -> Vec<Arc<Column>> {
        let column = |name: &str, data_type, compares| {
            Arc::new(Column::plain(name, &dialect::name(name).unwrap(), data_type, compares))
        };
        vec![
            column("i", DataType::Int64, Compares::All),
            column("t", DataType::Utf8, Compares::EqualTexts),
            column("c", DataType::Utf8, Compares::CoarseTexts),
            column("f", DataType::Float64, Compares::Floats),
            column("b", DataType::Boolean, Compares::All),
            column("x", DataType::Utf8, Compares::Nothing),
        ]
    }

    fn exact(expr: &Expr) -> Option<String> {
        sent(Kind::Postgres, expr, &columns()).filter(|sent| sent.exact).map(|sent| sent.sql)
    }

    fn more(expr: &Expr) -> Option<String> {
        sent(Kind::Postgres, expr, &columns()).filter(|sent| !sent.exact).map(|sent| sent.sql)
    }

    #[test]
    fn what_means_the_same_is_exact() {
        let expr = col("i").gt(lit(5_i64)).and(col("t").eq(lit("a'b")).or(col("b")));
        assert_eq!(exact(&expr).unwrap(), r#"(("i" > 5) AND (("t" = 'a''b') OR "b"))"#);
        assert_eq!(exact(&lit(5_i64).gt(col("i"))).unwrap(), r#"("i" < 5)"#);
        let listed = in_list(col("i"), vec![lit(1_i64), lit(-2_i64)], true);
        assert_eq!(exact(&listed).unwrap(), r#"("i" NOT IN (1, (-2)))"#);
        let between = col("i").not_between(lit(1_i64), lit(2_i64));
        assert_eq!(exact(&between).unwrap(), r#"(NOT (("i" >= 1) AND ("i" <= 2)))"#);
        assert_eq!(exact(&col("x").is_null()).unwrap(), r#"("x" IS NULL)"#);
        assert_eq!(exact(&Expr::Not(Box::new(col("b")))).unwrap(), r#"(NOT "b")"#);
    }

    #[test]
    fn what_may_keep_more_is_computed_again() {
        assert_eq!(more(&col("c").eq(lit("a"))).unwrap(), r#"("c" = 'a')"#);
        assert_eq!(
            more(&col("f").lt(lit(0.0_f64))).unwrap(),
            r#"("f" <= '0e0'::float8 OR "f" = 'NaN'::float8)"#
        );
        let half = col("i").eq(lit(1_i64)).and(col("t").like(lit("a%")));
        assert_eq!(more(&half).unwrap(), r#"("i" = 1)"#);
    }

    #[test]
    fn what_may_keep_less_is_not_sent() {
        let no = |expr: Expr| assert_eq!(sent(Kind::Postgres, &expr, &columns()), None, "{expr}");
        no(col("t").lt(lit("a")));
        no(col("c").not_eq(lit("a")));
        no(Expr::Not(Box::new(col("c").eq(lit("a")))));
        no(Expr::Not(Box::new(col("i").eq(lit(1_i64)).and(col("t").like(lit("a%"))))));
        no(in_list(col("c"), vec![lit("a")], true));
        no(in_list(col("i"), vec![lit(1_i64), lit(ScalarValue::Int64(None))], true));
        no(col("i").eq(lit(1_i32)));
        no(col("i").eq(lit(1_i64)).or(col("t").like(lit("a%"))));
        no((col("i") + lit(1_i64)).eq(lit(1_i64)));
        no(col("x").eq(lit("a")));
        no(col("t").eq(lit("a\0")));
        no(col("f").eq(lit(f64::NAN)));
        no(col("missing").is_null());
        no(lit(true));
    }
}
