//! The rows of `SHOW` and `current_setting`: all settings with their current values.

use crate::options::{DEFAULT_ISOLATION, ISOLATION, Options, default_isolation};
use crate::setting_lookup::{DISPLAY_ALIASES, SEARCH_PATH, TIME_ZONE};
use bowshot_api::{COMPATIBILITY_PARAMETERS, OptionValue, SESSION_OPTIONS};
use bowshot_system_catalog::client::Setting;

/// Reported PostgreSQL version.
const POSTGRES: (&str, &str) = ("16.0", "160000");
/// Reported MySQL version.
const MYSQL: (&str, &str) = ("8.0.36", "80036");

/// All settings, sorted by name, ignoring case.
pub(crate) fn settings(options: &Options, user: &str) -> Vec<Setting> {
    let values = options.list();
    let value_of = |name: &str| {
        values.iter().find(|(listed, _)| listed == name).map(|(_, value)| text(value)).unwrap_or_default()
    };
    let own = SESSION_OPTIONS.iter().map(|option| (option.name, value_of(option.name), option.text));
    let aliases = DISPLAY_ALIASES.iter().map(|(shown, name)| {
        let text =
            SESSION_OPTIONS.iter().find(|option| option.name == *name).map_or("", |option| option.text);
        let value = match (*shown, value_of(name)) {
            (SEARCH_PATH, _) if !options.search_path.is_empty() => options.search_path.clone(),
            // Clients of PostgreSQL know the name better than the offset.
            (TIME_ZONE, zone) if zone == "+00:00" && is_postgres(&options.dialect) => "UTC".to_owned(),
            (_, value) => value,
        };
        (*shown, value, text)
    });
    let parameters = COMPATIBILITY_PARAMETERS.iter().map(|known| {
        let kept = options.parameters.get(known.name).cloned();
        let value = kept.unwrap_or_else(|| fixed(known.name, &options.dialect, user, known.default));
        (known.name, value, known.text)
    });
    let setting = |(name, value, text): (&'static str, String, &'static str)| Setting { name, value, text };
    let mut all: Vec<Setting> = own.chain(aliases).chain(parameters).map(setting).collect();
    all.sort_by_cached_key(|setting| setting.name.to_ascii_lowercase());
    all
}

fn is_postgres(dialect: &str) -> bool {
    matches!(dialect, "postgres" | "postgresql")
}

/// Read-only values that depend on the session.
fn fixed(name: &str, dialect: &str, user: &str, default: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match (name, dialect) {
        ("session_authorization", _) => user.to_owned(),
        ("server_version", "postgres" | "postgresql") => format!("{} (Bowshot {version})", POSTGRES.0),
        ("server_version", "mysql") => format!("{}-Bowshot-{version}", MYSQL.0),
        ("server_version", _) => version.to_owned(),
        ("server_version_num", "postgres" | "postgresql") => POSTGRES.1.to_owned(),
        ("server_version_num", "mysql") => MYSQL.1.to_owned(),
        ("server_version_num", _) => number(version).to_string(),
        (ISOLATION | DEFAULT_ISOLATION, _) => default_isolation(dialect).unwrap_or(default).to_owned(),
        _ => default.to_owned(),
    }
}

/// A version as a number, two digits for each part after the first.
fn number(version: &str) -> u64 {
    version.split('.').take(3).fold(0, |sum, part| sum * 100 + part.parse::<u64>().unwrap_or(0))
}

fn text(value: &OptionValue) -> String {
    match value {
        OptionValue::Bool(true) => "on".to_owned(),
        OptionValue::Bool(false) => "off".to_owned(),
        other => crate::options::text(other),
    }
}
