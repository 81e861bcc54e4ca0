//! Names and constants in the SQL of a database. Everything from outside is quoted here.

use crate::kind::Kind;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::scalar::ScalarValue;
use std::fmt::Write as _;

/// A name in double quotes. `None` for a name that no database can have.
pub(crate) fn name(name: &str) -> Option<String> {
    (!name.contains('\0')).then(|| format!("\"{}\"", name.replace('"', "\"\"")))
}

/// A name of MySQL in backticks, which no mode changes.
pub(crate) fn backticked(name: &str) -> Option<String> {
    (!name.contains('\0')).then(|| format!("`{}`", name.replace('`', "``")))
}

/// Names joined by dots.
pub(crate) fn path(parts: &[&str]) -> Option<String> {
    let parts: Option<Vec<String>> = parts.iter().map(|part| name(part)).collect();
    Some(parts?.join("."))
}

/// A text as a constant. `None` if the database cannot have it in a statement.
pub(crate) fn text(kind: Kind, text: &str) -> Option<String> {
    // A mode of MySQL changes what a backslash means; hexadecimal digits are safe.
    if kind == Kind::Mysql && text.contains(|c: char| c == '\\' || c.is_control()) {
        let digits = text.bytes().fold(String::with_capacity(text.len() * 2), |mut digits, byte| {
            let _ = write!(digits, "{byte:02X}");
            digits
        });
        return Some(format!("_utf8mb4 X'{digits}'"));
    }
    // What a backslash means to a Flight SQL server is unknown.
    if text.contains('\0') || kind == Kind::FlightSql && text.contains('\\') {
        return None;
    }
    let doubled = text.replace('\'', "''");
    // A setting of PostgreSQL changes what a backslash means, but not in this form.
    if kind == Kind::Postgres && text.contains('\\') {
        return Some(format!("E'{}'", doubled.replace('\\', "\\\\")));
    }
    Some(format!("'{doubled}'"))
}

/// A constant that means the same in the database; `None` where that is uncertain.
pub(crate) fn constant(kind: Kind, value: &ScalarValue) -> Option<String> {
    use ScalarValue as V;
    Some(match value {
        V::Int8(Some(number)) => whole(i128::from(*number)),
        V::Int16(Some(number)) => whole(i128::from(*number)),
        V::Int32(Some(number)) => whole(i128::from(*number)),
        V::Int64(Some(number)) => whole(i128::from(*number)),
        V::UInt8(Some(number)) => whole(i128::from(*number)),
        V::UInt16(Some(number)) => whole(i128::from(*number)),
        V::UInt32(Some(number)) => whole(i128::from(*number)),
        V::UInt64(Some(number)) => whole(i128::from(*number)),
        V::Decimal128(Some(number), _, scale) => decimal(*number, *scale)?,
        V::Boolean(Some(truth)) if kind != Kind::Sqlite => if *truth { "TRUE" } else { "FALSE" }.to_owned(),
        // MySQL compares them in double precision.
        V::Float32(Some(number)) if number.is_finite() && kind == Kind::Mysql => {
            float(kind, &format!("{:e}", f64::from(*number)), true)?
        }
        V::Float32(Some(number)) if number.is_finite() => float(kind, &format!("{number:e}"), true)?,
        V::Float64(Some(number)) if number.is_finite() => float(kind, &format!("{number:e}"), false)?,
        V::Utf8(Some(written)) | V::LargeUtf8(Some(written)) | V::Utf8View(Some(written)) => {
            text(kind, written)?
        }
        V::Date32(Some(_)) if kind != Kind::Sqlite => format!("DATE '{}'", moment(value, 10)?),
        V::TimestampSecond(Some(_), zone)
        | V::TimestampMillisecond(Some(_), zone)
        | V::TimestampMicrosecond(Some(_), zone)
        | V::TimestampNanosecond(Some(_), zone)
            if kind != Kind::Sqlite =>
        {
            timestamp(kind, value, zone.is_some())?
        }
        _ => return None,
    })
}

/// Parenthesized if negative: `--1` would be a comment.
fn whole(number: i128) -> String {
    if number < 0 { format!("({number})") } else { number.to_string() }
}

fn decimal(number: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (before, after) = digits.split_at_checked(digits.len() - scale)?;
    let sign = if number < 0 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    Some(format!("({sign}{before}{point}{after})"))
}

fn float(kind: Kind, written: &str, single: bool) -> Option<String> {
    Some(match kind {
        Kind::Postgres => format!("'{written}'::{}", if single { "float4" } else { "float8" }),
        Kind::DuckDb => format!("CAST('{written}' AS {})", if single { "FLOAT" } else { "DOUBLE" }),
        Kind::Sqlite | Kind::Mysql if written.contains('e') => format!("({written})"),
        Kind::Sqlite | Kind::Mysql | Kind::FlightSql => return None,
    })
}

/// A date or timestamp in ISO format. Other years than those of four digits are written differently everywhere.
fn moment(value: &ScalarValue, day: usize) -> Option<String> {
    let written = array_value_to_string(value.to_array().ok()?.as_ref(), 0).ok()?;
    let plain = written.len() >= day
        && written.bytes().take(4).all(|byte| byte.is_ascii_digit())
        && written.as_bytes().get(4) == Some(&b'-')
        && !written.starts_with("0000");
    plain.then_some(written)
}

fn timestamp(kind: Kind, value: &ScalarValue, zoned: bool) -> Option<String> {
    let zone = zoned.then(|| "+00:00".into());
    // Databases have microseconds only.
    let micros = value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).ok()?;
    if micros.cast_to(&value.data_type()).ok()? != *value {
        return None;
    }
    let plain = micros.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()?;
    let written = moment(&plain, 19)?.replacen('T', " ", 1);
    let written = written.strip_suffix('Z').unwrap_or(&written);
    Some(match zoned {
        // Sessions of MySQL are in UTC.
        true if kind == Kind::Mysql => format!("TIMESTAMP '{}'", written.trim_end_matches("+00:00")),
        false => format!("TIMESTAMP '{written}'"),
        true => format!("TIMESTAMP WITH TIME ZONE '{}+00:00'", written.trim_end_matches("+00:00")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pg(value: ScalarValue) -> Option<String> {
        constant(Kind::Postgres, &value)
    }

    #[test]
    fn whatever_is_in_a_name_or_a_text_stays_in_it() {
        assert_eq!(name("a\"b; --").as_deref(), Some("\"a\"\"b; --\""));
        assert_eq!(name("a\0"), None);
        assert_eq!(pg(ScalarValue::from("it's")).as_deref(), Some("'it''s'"));
        assert_eq!(pg(ScalarValue::from("\\'; x")).as_deref(), Some("E'\\\\''; x'"));
        assert_eq!(constant(Kind::Sqlite, &ScalarValue::from("\\'")).as_deref(), Some("'\\'''"));
        assert_eq!(pg(ScalarValue::from("a\0b")), None);
        let my = |text: &str| constant(Kind::Mysql, &ScalarValue::from(text)).unwrap();
        assert_eq!(my("it's \"`"), "'it''s \"`'");
        assert_eq!(my("\\' OR 1"), "_utf8mb4 X'5C27204F522031'");
        assert_eq!(my("\0"), "_utf8mb4 X'00'");
        assert_eq!(backticked("a`b\"").as_deref(), Some("`a``b\"`"));
        assert_eq!(backticked("a\0"), None);
    }

    #[test]
    fn constants_are_written_exactly_or_not_at_all() {
        assert_eq!(pg(ScalarValue::Int64(Some(i64::MIN))).as_deref(), Some("(-9223372036854775808)"));
        assert_eq!(pg(ScalarValue::Decimal128(Some(-5), 10, 2)).as_deref(), Some("(-0.05)"));
        assert_eq!(pg(ScalarValue::Decimal128(Some(12345), 10, 2)).as_deref(), Some("(123.45)"));
        assert_eq!(pg(ScalarValue::Decimal128(Some(7), 10, 0)).as_deref(), Some("(7)"));
        assert_eq!(pg(ScalarValue::Decimal128(Some(7), 10, -2)), None);
        assert_eq!(pg(ScalarValue::Date32(Some(0))).as_deref(), Some("DATE '1970-01-01'"));
        assert_eq!(pg(ScalarValue::Date32(Some(i32::MAX / 2))), None);
        let micros = ScalarValue::TimestampMicrosecond(Some(1_500_000), None);
        assert_eq!(pg(micros).as_deref(), Some("TIMESTAMP '1970-01-01 00:00:01.500'"));
        assert_eq!(pg(ScalarValue::TimestampNanosecond(Some(1), None)), None);
        let zoned = ScalarValue::TimestampMicrosecond(Some(0), Some("+02:00".into()));
        assert_eq!(pg(zoned).as_deref(), Some("TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00+00:00'"));
        assert_eq!(pg(ScalarValue::Float64(Some(0.1))).as_deref(), Some("'1e-1'::float8"));
        assert_eq!(pg(ScalarValue::Float64(Some(f64::NAN))), None);
        assert_eq!(constant(Kind::Sqlite, &ScalarValue::Date32(Some(0))), None);
        assert_eq!(pg(ScalarValue::Int64(None)), None);
        let my = |value: ScalarValue| constant(Kind::Mysql, &value).unwrap();
        assert_eq!(my(ScalarValue::Float32(Some(0.1))), "(1.0000000149011612e-1)");
        assert_eq!(my(ScalarValue::Float64(Some(-0.1))), "(-1e-1)");
        let zoned = ScalarValue::TimestampMicrosecond(Some(0), Some("+02:00".into()));
        assert_eq!(my(zoned), "TIMESTAMP '1970-01-01 00:00:00'");
        assert_eq!(my(ScalarValue::Date32(Some(0))), "DATE '1970-01-01'");
    }
}
