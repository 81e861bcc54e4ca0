//! Compares the budget of a build from nothing, `tests/build-budget.toml`, with the newest report of `cargo build --timings` in the target
//! folder.

use crate::machine;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const BUDGET: &str = "tests/build-budget.toml";
/// What stands before the table of units in Cargo's report.
const UNITS: &str = "const UNIT_DATA = ";

/// Minutes of compilers and build scripts, added up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    whole: u32,
    crates: BTreeMap<String, u32>,
}

/// One run of a compiler or of a build script.
#[derive(Debug, Deserialize)]
struct Unit {
    name: String,
    /// Empty for a library, ` (run)` for a build script, ` NAME (test)` for tests.
    #[serde(default)]
    target: String,
    /// Seconds.
    duration: f64,
}

pub(super) fn complaints(root: &Path) -> Result<Vec<String>> {
    let budget = load(root)?;
    let Some(report) = newest_report(&machine::target_dir().join("cargo-timings"))? else {
        return Ok(Vec::new());
    };
    let text = fs::read_to_string(&report).with_context(|| format!("cannot read `{}`", report.display()))?;
    let units = parse_units(&text).with_context(|| format!("cannot parse `{}`", report.display()))?;
    Ok(over_budget(&budget, &units))
}

fn load(root: &Path) -> Result<Budget> {
    let text = fs::read_to_string(root.join(BUDGET)).with_context(|| format!("cannot read `{BUDGET}`"))?;
    toml::from_str(&text).with_context(|| format!("`{BUDGET}` is not a table of minutes"))
}

fn newest_report(folder: &Path) -> Result<Option<PathBuf>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(folder).context("cannot list the reports of Cargo")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            newest = newest.max(Some((fs::metadata(&path)?.modified()?, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

fn parse_units(report: &str) -> Result<Vec<Unit>> {
    let (_, rest) = report.split_once(UNITS).context("the report has no table of units")?;
    let units = serde_json::Deserializer::from_str(rest).into_iter::<Vec<Unit>>().next();
    Ok(units.context("the table of units is empty")??)
}

fn over_budget(budget: &Budget, units: &[Unit]) -> Vec<String> {
    let built: Vec<&Unit> = units.iter().filter(|unit| !unit.target.ends_with("(test)")).collect();
    let minutes = |name: Option<&str>| {
        let units = built.iter().filter(|unit| name.is_none_or(|name| unit.name == name));
        units.map(|unit| unit.duration).sum::<f64>() / 60.0
    };
    let crates = budget.crates.iter().map(|(name, allowed)| (Some(name.as_str()), *allowed));
    let mut found = Vec::new();
    for (name, allowed) in crates.chain([(None, budget.whole)]) {
        let taken = minutes(name);
        if taken > f64::from(allowed) {
            let name = name.unwrap_or("the whole build");
            found.push(format!(
                "{BUDGET}: `{name}` takes {taken:.1} minutes of a budget of {allowed}: split it, lower its level of optimisation, or drop a dependency"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_names_crates_of_this_repository() {
        let root = machine::root();
        let budget = load(&root).unwrap();
        assert!(budget.crates.keys().all(|name| root.join("crates").join(name).is_dir()), "{budget:?}");
        assert!(budget.crates.values().sum::<u32>() < budget.whole, "{budget:?}");
    }

    #[test]
    fn what_takes_longer_than_its_budget_is_found() {
        let budget: Budget = toml::from_str("whole = 10\n[crates]\nbowshot-engine = 2\n").unwrap();
        let check = |units: &str| {
            let report = format!("<script>\nconst UNIT_DATA = [{units}];\nconst CONCURRENCY_DATA = [];\n");
            over_budget(&budget, &parse_units(&report).unwrap()).len()
        };
        assert_eq!(check(""), 0);
        let unit = |name: &str, target: &str, duration: f64| {
            format!(
                r#"{{"i": 1, "name": "{name}", "target": "{target}", "duration": {duration:.1}, "sections": null}}"#
            )
        };
        let engine = unit("bowshot-engine", "", 119.9);
        assert_eq!(check(&engine), 0);
        assert_eq!(check(&format!("{engine}, {}", unit("bowshot-engine", " custom-build", 1.0))), 1);
        assert_eq!(
            check(&format!("{engine}, {}", unit("bowshot-engine", " bowshot-engine (test)", 90.0))),
            0
        );
        assert_eq!(check(&format!("{engine}, {}", unit("datafusion", "", 481.0))), 1);
        assert!(parse_units("<html>").is_err());
    }
}
