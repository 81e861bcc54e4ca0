//! Names that are no settings: what was probably meant.

use super::{Origin, SETTINGS};
use crate::usage::Usage;

pub(super) fn unknown(name: &str, origin: Origin<'_>) -> Usage {
    let place = match origin {
        Origin::File(path) => format!(" in `{}`", path.display()),
        Origin::Environment | Origin::CommandLine => String::new(),
    };
    let usage = Usage::new(format!("unknown key `{name}`{place}"));
    match closest_setting(name) {
        Some(near) => usage.with_hint(format!("did you mean `{near}`?")),
        None => usage.with_hint("`bowshot docs settings` lists all settings"),
    }
}

/// The setting most like a name that may lack its section and the end of its last word: `max_runing` is near
/// `limits.max_running_queries`.
fn closest_setting(name: &str) -> Option<&'static str> {
    let likeness = |setting: &'static str| {
        let own = setting.rsplit('.').next().unwrap_or(setting);
        let setting = if name.contains('.') { setting } else { own };
        let length = name.chars().count();
        let begun = (length..length + 2).map(|length| setting.chars().take(length).collect::<String>());
        let begun = begun.map(|begun| strsim::normalized_damerau_levenshtein(name, &begun));
        // A whole name that is as near is nearer.
        let begun = if length < 4 { 0.0 } else { begun.fold(0.0, f64::max) * 0.9 };
        strsim::normalized_damerau_levenshtein(name, setting).max(begun)
    };
    let near = SETTINGS.iter().map(|setting| (likeness(setting.name), setting.name));
    // Of those that begin alike, the shortest.
    near.filter(|(likeness, _)| *likeness >= 0.65)
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.len().cmp(&one.1.len())))
        .map(|(_, name)| name)
}

/// The candidate most like `name`, if any is at least as like as `least` (0 to 1).
fn closest(name: &str, candidates: impl Iterator<Item = String>, least: f64) -> Option<String> {
    candidates
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, &candidate), candidate))
        .filter(|(likeness, _)| *likeness >= least)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, candidate)| candidate)
}

/// A variable that is no setting is refused when it looks like one. Others are let pass, because the client reads some
/// (`BOWSHOT_URI`, …) and orchestrators make up their own (`BOWSHOT_SERVICE_HOST`, …).
pub(super) fn refuse_mistyped(variable: &str) -> Result<(), Usage> {
    const OTHERS: &[&str] = bowshot_api::words! {
        BOWSHOT_CA_FILE BOWSHOT_CLIENT_CERTIFICATE BOWSHOT_CLIENT_KEY BOWSHOT_CONFIG BOWSHOT_URI
        BOWSHOT_USER BOWSHOT_PASSWORD BOWSHOT_TOKEN
    };
    if OTHERS.contains(&variable) || is_of_orchestrator(variable) {
        return Ok(());
    }
    let rest = variable.trim_start_matches("BOWSHOT_");
    let in_section = SETTINGS
        .iter()
        .filter_map(|setting| setting.name.split_once('.'))
        .any(|(section, _)| rest.starts_with(&format!("{}_", section.to_ascii_uppercase())));
    let suffixes =
        SETTINGS.iter().map(|setting| setting.variable().trim_start_matches("BOWSHOT_").to_owned());
    let near = closest(rest, suffixes, if in_section { 0.6 } else { 0.75 });
    match near {
        Some(near) => Err(Usage::new(format!("unknown environment variable `{variable}`"))
            .with_hint(format!("did you mean `BOWSHOT_{near}`?"))),
        None if in_section => Err(Usage::new(format!("unknown environment variable `{variable}`"))
            .with_hint("`bowshot docs settings` lists all settings with their variables")),
        None => Ok(()),
    }
}

/// As Kubernetes names them for services whose names begin with `bowshot`.
fn is_of_orchestrator(variable: &str) -> bool {
    variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_PORT")
        || variable.contains("_SERVICE_PORT")
        || variable.contains("_PORT_")
}

#[cfg(test)]
mod tests {
    use super::closest_setting;

    #[test]
    fn the_nearest_setting_is_suggested() {
        for (name, near) in [
            ("max_runing", Some("limits.max_running_queries")),
            ("limits.max_runing", Some("limits.max_running_queries")),
            ("limts.max_sessions", Some("limits.max_sessions")),
            ("statement_timeot", Some("limits.statement_timeout")),
            ("limits.memory", Some("limits.memory_bytes")),
            ("htp", Some("http")),
            ("flight.port", None),
            ("colour", None),
        ] {
            assert_eq!(closest_setting(name), near, "{name}");
        }
    }
}
