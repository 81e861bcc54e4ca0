//! Expressions as texts, which are keys of the join cache, and back. Equal texts mean the same, and different values never give equal
//! texts: names and values are JSON strings. Only what is listed here has a text; other expressions, functions that are not immutable, and
//! constants without exact text are never cached. Columns must be those of numbered tables, `"#2".name`.

use bowshot_engine::internals::asks_model;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, Result, ScalarValue, TableReference, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Like, Operator, TryCast, Volatility, not};
use std::fmt::Write as _;
use std::iter;
use std::str::FromStr;
use std::sync::Arc;

const MAX_BYTES: usize = 32 << 10;

pub(super) fn of(expr: &Expr) -> Option<String> {
    let mut text = String::new();
    write(expr, &mut text)?;
    (text.len() <= MAX_BYTES).then_some(text)
}

pub(super) fn column(table: usize, name: &str) -> Expr {
    column_of(&relation(table), name)
}

pub(super) fn relation(table: usize) -> TableReference {
    TableReference::bare(format!("#{table}"))
}

pub(super) fn column_of(relation: &TableReference, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation.clone()), name))
}

/// Table number and name of such a column.
pub(super) fn numbered(column: &Column) -> Option<(usize, &str)> {
    let table = column.relation.as_ref()?.table().strip_prefix('#')?.parse().ok()?;
    Some((table, &column.name))
}

fn quoted(text: &str) -> String {
    // A text can always be written as JSON.
    serde_json::to_string(text).unwrap_or_default()
}

fn list<'a>(head: &str, rest: impl IntoIterator<Item = &'a Expr>, text: &mut String) -> Option<()> {
    text.push('(');
    text.push_str(head);
    for expr in rest {
        text.push(' ');
        write(expr, text)?;
    }
    text.push(')');
    // Too long texts are given up early.
    (text.len() <= MAX_BYTES).then_some(())
}

fn write(expr: &Expr, text: &mut String) -> Option<()> {
    match expr {
        Expr::Alias(alias) => write(&alias.expr, text),
        Expr::Column(column) => {
            let (table, name) = numbered(column)?;
            write!(text, "#{table}:{}", quoted(name)).ok()
        }
        Expr::Literal(value, None) => {
            let data_type = quoted(&value.data_type().to_string());
            match literal(value)? {
                Some(value) => write!(text, "(lit {data_type} {})", quoted(&value)).ok(),
                None => write!(text, "(null {data_type})").ok(),
            }
        }
        Expr::BinaryExpr(binary) => binary_text(binary, text),
        Expr::Not(inner) => list("not", [inner.as_ref()], text),
        Expr::IsNull(inner) => list("isnull", [inner.as_ref()], text),
        Expr::IsNotNull(inner) => list("isnotnull", [inner.as_ref()], text),
        Expr::IsTrue(inner) => list("istrue", [inner.as_ref()], text),
        Expr::IsFalse(inner) => list("isfalse", [inner.as_ref()], text),
        Expr::IsUnknown(inner) => list("isunknown", [inner.as_ref()], text),
        Expr::IsNotTrue(inner) => list("isnottrue", [inner.as_ref()], text),
        Expr::IsNotFalse(inner) => list("isnotfalse", [inner.as_ref()], text),
        Expr::IsNotUnknown(inner) => list("isnotunknown", [inner.as_ref()], text),
        Expr::Negative(inner) => list("neg", [inner.as_ref()], text),
        Expr::Between(between) => {
            let head = if between.negated { "notbetween" } else { "between" };
            list(head, [between.expr.as_ref(), &between.low, &between.high], text)
        }
        Expr::Like(like) => {
            let escape = quoted(&like.escape_char.map(String::from).unwrap_or_default());
            let head = format!("like {} {} {escape}", like.negated, like.case_insensitive);
            list(&head, [like.expr.as_ref(), &like.pattern], text)
        }
        Expr::Case(case) => {
            let head = format!("case {} {}", case.expr.is_some(), case.else_expr.is_some());
            let pairs = case.when_then_expr.iter().flat_map(|(when, then)| [when, then]);
            let all = case.expr.iter().chain(&case.else_expr).chain(pairs);
            list(&head, all.map(AsRef::as_ref), text)
        }
        Expr::Cast(Cast { expr, field }) if field.metadata().is_empty() => {
            list(&format!("cast {}", quoted(&field.data_type().to_string())), [expr.as_ref()], text)
        }
        Expr::TryCast(TryCast { expr, field }) if field.metadata().is_empty() => {
            list(&format!("trycast {}", quoted(&field.data_type().to_string())), [expr.as_ref()], text)
        }
        Expr::InList(InList { expr, list: all, negated }) => {
            list(&format!("in {negated}"), iter::once(expr.as_ref()).chain(all), text)
        }
        // A model may have another version later.
        Expr::ScalarFunction(call) if asks_model(&call.func) => None,
        Expr::ScalarFunction(call) if call.func.signature().volatility == Volatility::Immutable => {
            list(&format!("fn {}", quoted(call.func.name())), &call.args, text)
        }
        _ => None,
    }
}

/// `a > b` is written `b < a`, so that both have the same text.
fn binary_text(binary: &BinaryExpr, text: &mut String) -> Option<()> {
    let (left, right) = (binary.left.as_ref(), binary.right.as_ref());
    // A constant goes to the right side.
    let (operator, left, right) = match binary.op.swap() {
        Some(swapped) if matches!(left, Expr::Literal(..)) => (swapped, right, left),
        Some(swapped)
            if matches!(binary.op, Operator::Gt | Operator::GtEq) && !matches!(right, Expr::Literal(..)) =>
        {
            (swapped, right, left)
        }
        _ => (binary.op, left, right),
    };
    list(&format!("bin {}", quoted(&operator.to_string())), [left, right], text)
}

/// The exact value as text; `Some(None)` is null, `None` a type that has no such text.
#[expect(clippy::option_option, reason = "the two kinds of absence mean different things")]
fn literal(value: &ScalarValue) -> Option<Option<String>> {
    fn plain<T: ToString>(value: Option<&T>) -> Option<Option<String>> {
        Some(value.map(ToString::to_string))
    }
    match value {
        ScalarValue::Null => Some(None),
        ScalarValue::Boolean(value) => plain(value.as_ref()),
        ScalarValue::Int8(value) => plain(value.as_ref()),
        ScalarValue::Int16(value) => plain(value.as_ref()),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => plain(value.as_ref()),
        ScalarValue::Int64(value)
        | ScalarValue::Date64(value)
        | ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => plain(value.as_ref()),
        ScalarValue::UInt8(value) => plain(value.as_ref()),
        ScalarValue::UInt16(value) => plain(value.as_ref()),
        ScalarValue::UInt32(value) => plain(value.as_ref()),
        ScalarValue::UInt64(value) => plain(value.as_ref()),
        ScalarValue::Float32(value) => plain(value.map(f32::to_bits).as_ref()),
        ScalarValue::Float64(value) => plain(value.map(f64::to_bits).as_ref()),
        ScalarValue::Decimal128(value, _, _) => plain(value.as_ref()),
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => {
            plain(value.as_ref())
        }
        _ => None,
    }
}

pub(super) fn parse(text: &str, state: &SessionState) -> Result<Expr> {
    let mut reader = Reader { rest: text, state };
    let expr = reader.expr()?;
    if reader.rest.is_empty() && of(&expr).as_deref() == Some(text) {
        return Ok(expr);
    }
    plan_err!("`{text}` is no expression of the join cache")
}

struct Reader<'a> {
    rest: &'a str,
    state: &'a SessionState,
}

impl Reader<'_> {
    fn expr(&mut self) -> Result<Expr> {
        if self.take("#") {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            self.rest = rest;
            self.expect(":")?;
            return Ok(column(number.parse().unwrap_or(usize::MAX), &self.string()?));
        }
        self.expect("(")?;
        let head = self.word();
        let expr = self.list(&head)?;
        self.expect(")")?;
        Ok(expr)
    }

    fn list(&mut self, head: &str) -> Result<Expr> {
        let one = |reader: &mut Self| Ok::<_, datafusion::error::DataFusionError>(Box::new(reader.next()?));
        Ok(match head {
            "lit" => {
                let (data_type, value) = (self.data_type()?, self.next_string()?);
                Expr::Literal(value_of(&data_type, &value)?, None)
            }
            "null" => Expr::Literal(ScalarValue::try_from(&self.data_type()?)?, None),
            "bin" => {
                let operator = operator(&self.next_string()?)?;
                Expr::BinaryExpr(BinaryExpr::new(one(self)?, operator, one(self)?))
            }
            "not" => not(self.next()?),
            "isnull" => Expr::IsNull(one(self)?),
            "isnotnull" => Expr::IsNotNull(one(self)?),
            "istrue" => Expr::IsTrue(one(self)?),
            "isfalse" => Expr::IsFalse(one(self)?),
            "isunknown" => Expr::IsUnknown(one(self)?),
            "isnottrue" => Expr::IsNotTrue(one(self)?),
            "isnotfalse" => Expr::IsNotFalse(one(self)?),
            "isnotunknown" => Expr::IsNotUnknown(one(self)?),
            "neg" => Expr::Negative(one(self)?),
            "between" | "notbetween" => {
                Expr::Between(Between::new(one(self)?, head == "notbetween", one(self)?, one(self)?))
            }
            "like" => {
                let (negated, insensitive, escape) = (self.truth()?, self.truth()?, self.next_string()?);
                Expr::Like(Like::new(negated, one(self)?, one(self)?, escape.chars().next(), insensitive))
            }
            "case" => {
                let (base, otherwise) = (self.truth()?, self.truth()?);
                let base = if base { Some(one(self)?) } else { None };
                let otherwise = if otherwise { Some(one(self)?) } else { None };
                let mut pairs = Vec::new();
                while self.rest.starts_with(' ') {
                    pairs.push((one(self)?, one(self)?));
                }
                Expr::Case(Case::new(base, pairs, otherwise))
            }
            "cast" => {
                let data_type = self.data_type()?;
                Expr::Cast(Cast::new(one(self)?, data_type))
            }
            "trycast" => {
                let data_type = self.data_type()?;
                Expr::TryCast(TryCast::new(one(self)?, data_type))
            }
            "in" => {
                let negated = self.truth()?;
                let expr = one(self)?;
                Expr::InList(InList::new(expr, self.remaining()?, negated))
            }
            "fn" => {
                let name = self.next_string()?;
                let Some(function) = self.state.scalar_functions().get(&name) else {
                    return plan_err!("function `{name}` is not there");
                };
                Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), self.remaining()?))
            }
            _ => return plan_err!("`{head}` is no expression of the join cache"),
        })
    }

    fn remaining(&mut self) -> Result<Vec<Expr>> {
        let mut all = Vec::new();
        while self.rest.starts_with(' ') {
            all.push(self.next()?);
        }
        Ok(all)
    }

    fn next(&mut self) -> Result<Expr> {
        self.expect(" ")?;
        self.expr()
    }

    fn next_string(&mut self) -> Result<String> {
        self.expect(" ")?;
        self.string()
    }

    fn data_type(&mut self) -> Result<DataType> {
        Ok(DataType::from_str(&self.next_string()?)?)
    }

    fn truth(&mut self) -> Result<bool> {
        self.expect(" ")?;
        let word = self.word();
        word.parse().or_else(|_| plan_err!("`{word}` is no truth value"))
    }

    fn word(&mut self) -> String {
        let length = self.rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word.to_owned()
    }

    fn string(&mut self) -> Result<String> {
        let mut strings = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        match strings.next() {
            Some(Ok(string)) => {
                self.rest = self.rest.get(strings.byte_offset()..).unwrap_or_default();
                Ok(string)
            }
            _ => plan_err!("`{}` does not begin with a string", self.rest),
        }
    }

    fn take(&mut self, start: &str) -> bool {
        let rest = self.rest.strip_prefix(start);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, start: &str) -> Result<()> {
        if self.take(start) { Ok(()) } else { plan_err!("`{start}` is missing before `{}`", self.rest) }
    }
}

/// The operators that expressions of the cache may have.
const OPERATORS: &[Operator] = &[
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::Plus,
    Operator::Minus,
    Operator::Multiply,
    Operator::Divide,
    Operator::Modulo,
    Operator::And,
    Operator::Or,
    Operator::IsDistinctFrom,
    Operator::RegexMatch,
    Operator::RegexIMatch,
    Operator::RegexNotMatch,
    Operator::RegexNotIMatch,
    Operator::BitwiseAnd,
    Operator::BitwiseOr,
    Operator::BitwiseXor,
    Operator::BitwiseShiftRight,
    Operator::BitwiseShiftLeft,
    Operator::StringConcat,
];

fn operator(name: &str) -> Result<Operator> {
    let found = OPERATORS.iter().find(|operator| operator.to_string() == name);
    found.copied().ok_or_else(|| datafusion::common::plan_datafusion_err!("operator `{name}` is not there"))
}

fn value_of(data_type: &DataType, value: &str) -> Result<ScalarValue> {
    fn number<T: FromStr>(value: &str) -> Result<Option<T>> {
        value.parse().map(Some).or_else(|_| plan_err!("`{value}` is no value of its type"))
    }
    Ok(match data_type {
        DataType::Boolean => ScalarValue::Boolean(number(value)?),
        DataType::Int8 => ScalarValue::Int8(number(value)?),
        DataType::Int16 => ScalarValue::Int16(number(value)?),
        DataType::Int32 => ScalarValue::Int32(number(value)?),
        DataType::Int64 => ScalarValue::Int64(number(value)?),
        DataType::UInt8 => ScalarValue::UInt8(number(value)?),
        DataType::UInt16 => ScalarValue::UInt16(number(value)?),
        DataType::UInt32 => ScalarValue::UInt32(number(value)?),
        DataType::UInt64 => ScalarValue::UInt64(number(value)?),
        DataType::Float32 => ScalarValue::Float32(number(value)?.map(f32::from_bits)),
        DataType::Float64 => ScalarValue::Float64(number(value)?.map(f64::from_bits)),
        DataType::Date32 => ScalarValue::Date32(number(value)?),
        DataType::Date64 => ScalarValue::Date64(number(value)?),
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(number(value)?, *precision, *scale),
        DataType::Timestamp(unit, zone) => {
            let (value, zone) = (number(value)?, zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
            }
        }
        DataType::Utf8 => ScalarValue::Utf8(Some(value.to_owned())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(value.to_owned())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(value.to_owned())),
        other => return plan_err!("constants of type {other} have no text"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::functions::expr_fn::{lower, now, random};
    use datafusion::logical_expr::{case, cast, lit, try_cast, when};
    use datafusion::prelude::SessionContext;

    fn x() -> Expr {
        column(3, "x \"quoted\" #1")
    }

    #[test]
    fn expressions_come_back_from_their_texts() {
        let state = SessionContext::new().state();
        let zone = Some("Europe/Berlin".into());
        for expr in [
            x().eq(lit(5_i64)),
            x().lt(lit(-0.0_f64)).or(x().is_null()),
            x().like(lit("a%\")(lit")).and(x().not_in_list("a", "b")),
            x().between(lit(ScalarValue::Date32(Some(7))), lit(ScalarValue::Date32(None))),
            cast(x(), DataType::Decimal128(12, 2)).gt(column(0, "y")),
            try_cast(x(), DataType::Timestamp(TimeUnit::Nanosecond, None)).is_not_null(),
            lit(ScalarValue::TimestampMicrosecond(Some(1), zone)).lt_eq(x()),
            lit(ScalarValue::Decimal128(Some(12345), 10, 2)).eq(x()),
            lower(x()).eq(lit("größe")),
            case(x()).when(lit(1), lit("a")).otherwise(lit("b")).expect("case").eq(lit("a")),
            when(x().is_true(), lit(1)).end().expect("when").eq(lit(1)),
            -x() * lit(2_u8) % lit(7_i32),
        ] {
            let text = of(&expr).unwrap_or_else(|| panic!("{expr} has no text"));
            let again = parse(&text, &state).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(of(&again).as_deref(), Some(text.as_str()));
        }
    }

    #[test]
    fn what_may_differ_from_run_to_run_has_no_text() {
        for expr in [random().lt(x().clone()), now().lt(x()), lit(ScalarValue::Binary(Some(vec![1])))] {
            assert_eq!(of(&expr), None, "{expr}");
        }
        assert_eq!(of(&Expr::Column(Column::from_name("x"))), None, "of no numbered table");
    }

    trait NotInList {
        fn not_in_list(self, one: &str, other: &str) -> Expr;
    }

    impl NotInList for Expr {
        fn not_in_list(self, one: &str, other: &str) -> Expr {
            self.in_list(vec![lit(one), lit(other)], true)
        }
    }

    #[test]
    fn types_are_part_of_the_text() {
        assert_ne!(of(&x().eq(lit(5_i64))), of(&x().eq(lit(5_i32))));
        assert_ne!(of(&x().eq(lit("5"))), of(&x().eq(lit(5_i32))));
        assert_eq!(of(&x().gt(column(1, "y"))), of(&column(1, "y").lt(x())));
        assert_eq!(of(&lit(5_i64).lt(x())), of(&x().gt(lit(5_i64))));
    }
}
