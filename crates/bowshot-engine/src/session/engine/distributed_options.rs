//! Session options for parts of a plan that run on other nodes.

use super::Engine;
use crate::session::template::builder_from;
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use std::collections::HashMap;

impl Engine {
    /// A state in which a part of a plan runs: with the functions that all sessions have, and these options beside the default
    /// ones. `keep` takes over what `part` has been given among its options already.
    ///
    /// # Errors
    /// When an option is not known here.
    pub fn state_of_part(
        &self,
        mut part: SessionStateBuilder,
        options: &[(String, String)],
        keep: impl FnOnce(&ConfigOptions, &mut ConfigOptions),
    ) -> datafusion::common::Result<SessionState> {
        let given = part.config().get_or_insert_default();
        let mut own = self.shared.template.config_options().as_ref().clone();
        for (key, value) in options {
            own.set(key, value)?;
        }
        keep(given.options(), &mut own);
        *given.options_mut() = own;
        let mut functions = builder_from(&self.shared.template);
        *part.scalar_functions() = functions.scalar_functions().take();
        *part.higher_order_functions() = functions.higher_order_functions().take();
        *part.aggregate_functions() = functions.aggregate_functions().take();
        *part.window_functions() = functions.window_functions().take();
        Ok(part.build())
    }

    /// Options of a session's state that are not the default ones. Those of our rules are left out: they are for who plans, and
    /// have no prefix by which they could be set.
    pub fn own_options(&self, state: &SessionState) -> Vec<(String, String)> {
        let default = self.shared.template.config_options().entries();
        let default: HashMap<_, _> = default.into_iter().map(|entry| (entry.key, entry.value)).collect();
        let own = state.config_options().entries().into_iter();
        let own = own.filter(|entry| entry.key.contains('.'));
        let differs = own.filter(|entry| default.get(&entry.key) != Some(&entry.value));
        differs.filter_map(|entry| Some((entry.key, entry.value?))).collect()
    }
}
