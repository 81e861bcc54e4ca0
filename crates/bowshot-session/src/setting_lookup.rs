//! Resolves a name in `SET`: a session option, a compatibility parameter, or an error that suggests similar names.

use bowshot_api::{
    COMPATIBILITY_PARAMETERS, CompatibilityParameter, Error, Reason, Result, SESSION_OPTIONS, SessionOption,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum SettingKind {
    Option(&'static SessionOption),
    Parameter(&'static CompatibilityParameter),
}

impl SettingKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Option(option) => option.name,
            Self::Parameter(parameter) => parameter.name,
        }
    }
}

/// PostgreSQL's search path. Its first schema is the option `schema`.
pub(crate) const SEARCH_PATH: &str = "search_path";

/// Aliases of session options and parameters, in lower case.
const ALIASES: &[(&str, &str)] = &[
    ("timezone", "time_zone"),
    ("time.zone", "time_zone"),
    ("datafusion.execution.time_zone", "time_zone"),
    (SEARCH_PATH, "schema"),
    ("current_schema", "schema"),
    ("current_catalog", "catalog"),
    ("statement_timeout", "statement_timeout_ms"),
    ("max_execution_time", "statement_timeout_ms"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// Aliases that SHOW lists: name, option.
pub(crate) const DISPLAY_ALIASES: [(&str, &str); 3] =
    [(SEARCH_PATH, "schema"), ("statement_timeout", "statement_timeout_ms"), (TIME_ZONE, "time_zone")];

/// PostgreSQL's name of the session's zone.
pub(crate) const TIME_ZONE: &str = "TimeZone";

/// Suggestions for an unknown name.
const MAX_CLOSE: usize = 3;
/// Longer names get no suggestions.
const MAX_CHARS: usize = 64;

/// Resolves a name.
///
/// # Errors
/// `NotFound`, with the names that are close.
pub(crate) fn find(name: &str) -> Result<SettingKind> {
    let lower = name.to_ascii_lowercase();
    let wanted = ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |(_, name)| name);
    if let Some(option) = exact(wanted) {
        return Ok(SettingKind::Option(option));
    }
    let parameter = COMPATIBILITY_PARAMETERS.iter().find(|known| known.name.eq_ignore_ascii_case(wanted));
    parameter.map(SettingKind::Parameter).ok_or_else(|| unknown(name))
}

pub(crate) fn exact(name: &str) -> Option<&'static SessionOption> {
    SESSION_OPTIONS.iter().find(|option| option.name == name)
}

/// Converts a value that was set under an alias.
///
/// # Errors
/// `Invalid` for a value that does not fit.
pub(crate) fn translated(name: &str, value: &str) -> Result<String> {
    if !["statement_timeout", "lock_timeout"].iter().any(|timeout| name.eq_ignore_ascii_case(timeout)) {
        return Ok(value.to_owned());
    }
    milliseconds(value).map(|ms| ms.to_string()).ok_or_else(|| {
        Error::invalid(format!("invalid value `{value}` for `{name}`"))
            .with_reason(Reason::InvalidValue)
            .with_hint("write a number of milliseconds, or a unit: us, ms, s, min, h or d")
    })
}

/// A PostgreSQL duration; milliseconds without a unit.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(unit_at)?;
    let per_unit = match unit {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3_600e3,
        "d" => 86_400e3,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok()?;
    let whole = (number * per_unit).round();
    (0.0..=f64::from(i32::MAX)).contains(&whole).then_some(whole as u64)
}

fn unknown(name: &str) -> Error {
    let error =
        Error::not_found(format!("session option `{name}` not found")).with_reason(Reason::UndefinedOption);
    let close = close_to(name);
    if close.is_empty() {
        return error.with_hint("`SHOW ALL` lists all settings");
    }
    let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
    error.with_hint(format!("did you mean {}? `SHOW ALL` lists all settings", close.join(" or ")))
}

fn close_to(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    if name.chars().count() > MAX_CHARS {
        return Vec::new();
    }
    let aliases = ALIASES.iter().map(|(alias, _)| *alias).filter(|alias| !alias.contains('.'));
    let options = SESSION_OPTIONS.iter().map(|option| option.name);
    let all = options.chain(aliases).chain(COMPATIBILITY_PARAMETERS.iter().map(|known| known.name));
    let allowed = (name.len() / 3).max(1);
    let mut close: Vec<(usize, &str)> = all
        .map(|known| (strsim::levenshtein(&name, &known.to_ascii_lowercase()), known))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    close.sort_unstable();
    close.into_iter().take(MAX_CLOSE).map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1500", Some(1_500)),
            ("5s", Some(5_000)),
            ("1.5 min", Some(90_000)),
            ("2h", Some(7_200_000)),
            ("-1", None),
            ("5 parsecs", None),
            ("", None),
            ("90000d", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn close_names_are_told() {
        let error = find("time_zon").expect_err("unknown");
        assert!(error.to_string().contains("`time_zone`"), "{error}");
        let error = find("nothing_of_the_kind").expect_err("unknown");
        assert!(!error.to_string().contains("did you mean"), "{error}");
    }
}
