//! Settings of a session that affect caches.

use bowshot_engine::reuse::SessionCache;
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use std::sync::Arc;

/// Prefix of the time zone in the settings of a join.
const TIME_ZONE: &str = "zone=";

/// Whether the session of this state uses the join cache.
pub(crate) fn joins_are_on(state: &SessionState) -> bool {
    of_session(state).is_none_or(|session| session.enabled)
}

/// Whether its queries use the result cache.
pub(crate) fn results_are_on(state: &SessionState) -> bool {
    of_session(state).is_none_or(|session| session.results)
}

/// The cache settings of a session.
pub(crate) fn of_session(state: &SessionState) -> Option<&SessionCache> {
    state.config_options().extensions.get::<SessionCache>()
}

/// Settings that change the meaning of expressions, and are not part of the plan: see [`in_settings`].
pub(crate) fn meaning(state: &SessionState) -> String {
    state
        .config_options()
        .execution
        .time_zone
        .as_ref()
        .map_or_else(String::new, |zone| format!("{TIME_ZONE}{zone}"))
}

/// The options for these settings.
pub(crate) fn in_settings(options: &Arc<ConfigOptions>, settings: &str) -> Arc<ConfigOptions> {
    let zone = settings.strip_prefix(TIME_ZONE).map(str::to_owned);
    if options.execution.time_zone == zone {
        return Arc::clone(options);
    }
    let mut options = ConfigOptions::clone(options);
    options.execution.time_zone = zone;
    Arc::new(options)
}

/// Whether the settings have the current format.
pub(crate) fn are_known(settings: &str) -> bool {
    settings.is_empty() || settings.starts_with(TIME_ZONE)
}
