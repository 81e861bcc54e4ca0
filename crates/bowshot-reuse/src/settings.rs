//! Settings of a session that affect caches.

use bowshot_engine::reuse::SessionCache;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::execution::SessionState;
use std::sync::Arc;

/// Prefix of the dialect in the settings of a join.
const DIALECT: &str = "dialect=";
/// Prefix of the time zone, behind the dialect.
const TIME_ZONE: &str = " zone=";

pub(crate) fn joins_are_on(state: &SessionState) -> bool {
    of_session(state).is_none_or(|session| session.enabled)
}

/// Whether its queries use the result cache.
pub(crate) fn results_are_on(state: &SessionState) -> bool {
    of_session(state).is_none_or(|session| session.results)
}

pub(crate) fn of_session(state: &SessionState) -> Option<&SessionCache> {
    state.config_options().extensions.get::<SessionCache>()
}

/// Settings that change the meaning of expressions, and are not part of the plan: see [`in_settings`]. Functions look at the dialect
/// when they run.
pub(crate) fn meaning(state: &SessionState) -> String {
    let options = state.config_options();
    let zone = options.execution.time_zone.iter().map(|zone| format!("{TIME_ZONE}{zone}"));
    format!("{DIALECT}{}{}", options.sql_parser.dialect, zone.collect::<String>())
}

pub(crate) fn in_settings(options: &Arc<ConfigOptions>, settings: &str) -> Arc<ConfigOptions> {
    let settings = settings.strip_prefix(DIALECT).unwrap_or_default();
    let (dialect, zone) =
        settings.split_once(TIME_ZONE).map_or((settings, None), |(dialect, zone)| (dialect, Some(zone)));
    let dialect: Dialect = dialect.parse().unwrap_or_default();
    if options.execution.time_zone.as_deref() == zone && options.sql_parser.dialect == dialect {
        return Arc::clone(options);
    }
    let mut options = ConfigOptions::clone(options);
    options.execution.time_zone = zone.map(str::to_owned);
    options.sql_parser.dialect = dialect;
    Arc::new(options)
}

/// Whether the settings have the current format.
pub(crate) fn are_known(settings: &str) -> bool {
    settings.starts_with(DIALECT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    #[test]
    fn settings_tell_dialects_and_zones_apart() {
        let mut state = SessionContext::new().state();
        let plain = (meaning(&state), Arc::clone(state.config_options()));
        let options = state.config_mut().options_mut();
        options.sql_parser.dialect = Dialect::MySQL;
        options.execution.time_zone = Some("Asia/Tokyo".to_owned());
        let settings = meaning(&state);
        assert_ne!(settings, plain.0);
        for (settings, from) in [(&settings, &plain.1), (&plain.0, state.config_options())] {
            let there = in_settings(from, settings);
            let is_plain = *settings == plain.0;
            assert_eq!(there.sql_parser.dialect == Dialect::MySQL, !is_plain);
            assert_eq!(there.execution.time_zone == plain.1.execution.time_zone, is_plain);
        }
    }
}
