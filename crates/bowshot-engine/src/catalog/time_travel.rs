//! Which state of a table `FOR VERSION AS OF 3` and `FOR TIMESTAMP AS OF '…'` mean.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_sql::rewrite::AsOf as Written;
use bowshot_storage::tables::durable::AsOf;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

/// The state that is meant.
///
/// # Errors
/// `Syntax` for a time that is none.
pub(crate) fn state(written: &Written<'_>) -> Result<AsOf> {
    Ok(match written {
        Written::Version(version) => AsOf::Version(*version),
        Written::Time(text) => AsOf::Time(time(text)?),
    })
}

/// A time with a zone, else in UTC; a date is its first moment.
fn time(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
        return Ok(time.to_utc());
    }
    // As casts write it: `+00`, without minutes.
    for format in ["%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"] {
        if let Ok(time) = DateTime::parse_from_str(text, format) {
            return Ok(time.to_utc());
        }
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            return Ok(time.and_utc());
        }
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    day.map(|day| day.and_utc()).ok_or_else(|| not_a_time(text))
}

fn not_a_time(text: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("`{text}` is no point in time"))
        .with_hint("write `FOR TIMESTAMP AS OF '2026-01-31 12:00:00'`, in UTC or with a zone as `+01:00`")
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_those_of_utc_unless_they_name_a_zone() {
        for (text, expected) in [
            ("1970-01-01 00:00:01", Some(1_000_000)),
            ("1970-01-01T01:00:01+01:00", Some(1_000_000)),
            ("1970-01-01 00:00:01.5+00", Some(1_500_000)),
            ("1970-01-01 05:30:01+0530", Some(1_000_000)),
            ("1970-01-02", Some(86_400_000_000)),
            ("soon", None),
        ] {
            assert_eq!(time(text).ok().map(|time| time.timestamp_micros()), expected, "{text}");
        }
    }
}
