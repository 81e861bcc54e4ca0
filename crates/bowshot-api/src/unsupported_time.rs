//! Dates and times of PostgreSQL that Arrow cannot represent: infinities, years before 1, and 24:00.

use crate::{Error, Reason};

/// The error for a text of PostgreSQL's type `kind` that Arrow cannot represent; `None` for any other text.
///
/// ```
/// let error = bowshot_api::unsupported_time("date", "-infinity").unwrap();
/// assert!(error.message().contains("no infinite date"));
/// assert!(bowshot_api::unsupported_time("date", "2024-01-31").is_none());
/// ```
pub fn unsupported_time(kind: &str, text: &str) -> Option<Error> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_infinite = ["infinity", "inf"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_before_christ = text.len() > 3
        && text.get(text.len() - 3..).is_some_and(|era| era.eq_ignore_ascii_case(" bc"))
        && text.starts_with(|first: char| first.is_ascii_digit());
    let is_end_of_day =
        text.strip_prefix("24:00").is_some_and(|rest| rest.chars().all(|c| matches!(c, '0' | ':' | '.')));
    let (why, hint) = match kind {
        "time" if is_end_of_day => {
            ("a time of day ends before 24:00".to_owned(), "use '00:00' of the next day, or an INTERVAL")
        }
        "time" => return None,
        _ if is_infinite => {
            (format!("there is no infinite {kind}"), "use NULL, or a day far away such as '9999-12-31'")
        }
        _ if is_before_christ => {
            (format!("a {kind} has no year before 1"), "keep the year as a number, or the whole as a text")
        }
        _ => return None,
    };
    let shown: String = text.chars().take(100).collect();
    let error = Error::invalid(format!("`{shown}` cannot be kept: {why}"));
    Some(error.with_reason(Reason::DatetimeOutOfRange).with_hint(hint))
}
