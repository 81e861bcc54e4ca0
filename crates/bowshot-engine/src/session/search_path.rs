//! The schemas that a session looks for names in. Which of them are there is looked up anew for each statement.

use super::EngineSession;
use crate::catalog::names::Names;
use crate::catalog::public::Schemas;
use crate::catalog::search_path;
use bowshot_api::Result;
use bowshot_policy::snapshot::Pinned;
use datafusion::config::ConfigOptions;

impl EngineSession {
    pub(crate) fn names(&self, pinned: &Pinned) -> Names {
        let options = self.options();
        let names = &options.catalog;
        let path = match search_path::list(&options) {
            Some(_) => self.visible(pinned).other_schemas(),
            None => Vec::new(),
        };
        Names {
            pinned: pinned.clone(),
            access: self.gate.access(pinned),
            parts: self.shared.parts.clone(),
            default_catalog: names.default_catalog.clone(),
            default_schema: names.default_schema.clone(),
            path,
        }
    }

    /// The default schema of unqualified names, where new things are made.
    pub fn default_schema(&self) -> String {
        self.options().catalog.default_schema.clone()
    }

    /// The schemas of a list that are there and that the caller may know, in its order.
    pub fn schemas_of_path(&self, list: &str, pinned: &Pinned) -> Vec<String> {
        self.find_schemas(&self.options(), list, pinned)
    }

    /// Makes the first schema of the path that is there the default one: it may have been made or dropped since the last statement.
    pub(super) fn settle_search_path(&self, pinned: &Pinned) -> Result<()> {
        let options = self.options();
        let Some(list) = search_path::list(&options) else { return Ok(()) };
        match self.find_schemas(&options, list, pinned).first() {
            Some(first) if *first != options.catalog.default_schema => {
                self.set_config("datafusion.catalog.default_schema", first)
            }
            _ => Ok(()),
        }
    }

    fn find_schemas(&self, options: &ConfigOptions, list: &str, pinned: &Pinned) -> Vec<String> {
        let access = self.gate.access(pinned);
        let (seen, databases) = (self.gate.seen(pinned, &access), &self.shared.parts.databases);
        let default_catalog = &options.catalog.default_catalog;
        Schemas { pinned: &seen, databases, default_catalog }.find_listed(list, &access)
    }
}
