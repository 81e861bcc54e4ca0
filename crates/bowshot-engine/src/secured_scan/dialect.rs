//! The dialect of policies and masks.

use datafusion::config::Dialect;
use datafusion::execution::SessionState;
use std::borrow::Cow;
use std::sync::Arc;

/// The state in which policies and masks are planned and computed. Operators and functions mean something else in the dialect
/// `mysql`, and the dialect of a session is the choice of its user, who must not choose what a policy means.
pub(super) fn in_policy_dialect(state: &SessionState) -> Cow<'_, SessionState> {
    let dialect = Dialect::Generic;
    if state.config_options().sql_parser.dialect == dialect {
        return Cow::Borrowed(state);
    }
    let mut state = state.clone();
    state.config_mut().options_mut().sql_parser.dialect = dialect;
    let options = Arc::clone(state.config_options());
    let properties = state.execution_props_mut();
    let start = properties.query_execution_start_time;
    // Functions read these options.
    properties.mark_start_execution(options);
    properties.query_execution_start_time = start.or(properties.query_execution_start_time);
    Cow::Owned(state)
}
