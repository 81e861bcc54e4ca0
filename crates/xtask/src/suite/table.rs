//! The table of suites, `tests/suites.toml`.

use super::counts::Format;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    suite: Vec<Suite>,
}

/// One suite; the head of `tests/suites.toml` documents the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) about: String,
    pub(super) run: Vec<String>,
    pub(super) counts: Format,
    #[serde(default)]
    pub(super) prepare: Vec<Vec<String>>,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    #[serde(default)]
    pub(super) requirements: Option<String>,
    #[serde(default)]
    pub(super) folder: String,
    #[serde(default)]
    pub(super) conformance: bool,
    #[serde(default)]
    pub(super) long: bool,
    #[serde(default)]
    pub(super) beside: bool,
    pub(super) limit_minutes: u64,
    /// What the suite may take on two processors; compared with what was measured, never with the clock.
    #[serde(default)]
    pub(super) budget_seconds: Option<u64>,
}

impl Suite {
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_minutes * 60)
    }
}

pub(super) fn load(root: &Path) -> Result<Vec<Suite>> {
    let path = root.join("tests/suites.toml");
    let text = fs::read_to_string(&path).context("cannot read `tests/suites.toml`")?;
    let table: Table = toml::from_str(&text).context("`tests/suites.toml` is not a table of suites")?;
    let mut seen = BTreeSet::new();
    for suite in &table.suite {
        if !seen.insert(suite.name.as_str()) {
            bail!("`tests/suites.toml` has two suites `{}`", suite.name);
        }
        if suite.run.is_empty() {
            bail!("suite `{}` has no command", suite.name);
        }
    }
    Ok(table.suite)
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::machine;

    #[test]
    fn the_table_of_this_repository_loads() {
        let suites = load(&machine::root()).unwrap();
        assert!(suites.iter().any(|suite| suite.name == "rust"));
    }
}
