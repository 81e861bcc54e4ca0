//! Durations of suites: measured by `cargo xtask test --record-seconds`, kept in `tests/seconds.json`, shown in `CONTRIBUTING.md`, and
//! compared with the budget of each suite by `cargo xtask tidy`.

use super::Outcome;
use super::table::{self, Suite};
use crate::machine;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const MEASURED: &str = "tests/seconds.json";
const PAGE: &str = "CONTRIBUTING.md";
const START: &str = "<!-- suite seconds: made by `cargo xtask test --record-seconds`, do not edit -->\n";
const END: &str = "<!-- end of suite seconds -->\n";

/// Seconds by the name of the suite.
pub(super) type Seconds = BTreeMap<String, u64>;

/// Keeps what the suites have taken, beside what is known of those that did not run. One failed test of thousands does not change
/// how long a suite takes; a suite that was stopped, skipped or could not begin tells nothing.
pub(super) fn record(root: &Path, outcomes: &[Outcome]) -> Result<()> {
    let suites = table::load(root)?;
    let mut seconds = measured(root)?;
    let unmeasured = take_over(&mut seconds, outcomes);
    if !unmeasured.is_empty() {
        machine::say(&format!(
            "no seconds recorded of suites that did not run to their end: {}",
            unmeasured.join(", ")
        ));
    }
    seconds.retain(|name, _| suites.iter().any(|suite| suite.name == *name));
    fs::write(root.join(MEASURED), serde_json::to_string_pretty(&seconds)? + "\n")
        .with_context(|| format!("cannot write `{MEASURED}`"))?;
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read `{PAGE}`"))?;
    fs::write(root.join(PAGE), with_table(&page, &suites, &seconds)?)
        .with_context(|| format!("cannot write `{PAGE}`"))
}

/// Puts the seconds of the suites that ran to their end into the table; gives the names of the others.
fn take_over<'a>(seconds: &mut Seconds, outcomes: &'a [Outcome]) -> Vec<&'a str> {
    let (ended, others): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.ended);
    seconds.extend(ended.iter().map(|outcome| (outcome.name.clone(), outcome.took.as_secs().max(1))));
    others.iter().map(|outcome| outcome.name.as_str()).collect()
}

/// The suites of continuous integration that took longer than their budgets when they were measured last.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>> {
    Ok(over_budget(&table::load(root)?, &measured(root)?))
}

fn over_budget(suites: &[Suite], seconds: &Seconds) -> Vec<String> {
    let mut found = Vec::new();
    for suite in suites.iter().filter(|suite| !suite.long) {
        let (Some(budget), Some(&taken)) = (suite.budget_seconds, seconds.get(&suite.name)) else { continue };
        if taken > budget {
            found.push(format!(
                "{MEASURED}: `{}` takes {taken} s of a budget of {budget}: make it faster, or move a part to a long suite",
                suite.name
            ));
        }
    }
    found
}

pub(super) fn measured(root: &Path) -> Result<Seconds> {
    let path = root.join(MEASURED);
    if !path.exists() {
        return Ok(Seconds::new());
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{MEASURED}`"))?;
    serde_json::from_str(&text).with_context(|| format!("`{MEASURED}` is not a table of seconds"))
}

fn with_table(page: &str, suites: &[Suite], seconds: &Seconds) -> Result<String> {
    let (before, rest) =
        page.split_once(START).with_context(|| format!("`{PAGE}` has no table of seconds"))?;
    let (_, behind) = rest.split_once(END).with_context(|| format!("the table of `{PAGE}` has no end"))?;
    let mut table = "| suite | seconds | budget |\n|---|---|---|\n".to_owned();
    for suite in suites.iter().filter(|suite| !suite.long) {
        let taken = seconds.get(&suite.name).map_or_else(String::new, u64::to_string);
        let budget = suite.budget_seconds.map_or_else(String::new, |seconds| seconds.to_string());
        writeln!(table, "| `{}` | {taken} | {budget} |", suite.name)?;
    }
    Ok(format!("{before}{START}{table}{END}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Seconds, over_budget, take_over};
    use crate::machine;
    use crate::suite::counts::Counts;
    use crate::suite::table;
    use std::time::Duration;

    #[test]
    fn a_failed_test_hides_no_seconds() {
        let outcome = |name: &str, ended: bool| Outcome {
            name: name.to_owned(),
            ended,
            counts: Counts { passed: 9, failed: 1, skipped: 0 },
            took: Duration::from_millis(7_300),
            ..Outcome::default()
        };
        let outcomes = [outcome("rust", true), outcome("python", false)];
        let mut seconds = Seconds::from([("python".to_owned(), 3), ("sql".to_owned(), 4)]);
        assert_eq!(take_over(&mut seconds, &outcomes), ["python"]);
        let told = [("python", 3), ("rust", 7), ("sql", 4)].map(|(name, taken)| (name.to_owned(), taken));
        assert_eq!(seconds, Seconds::from(told));
    }

    #[test]
    fn a_suite_over_its_budget_is_told() {
        let mut suites = table::load(&machine::root()).unwrap();
        suites.retain(|suite| suite.name == "rust");
        suites[0].budget_seconds = Some(10);
        assert!(over_budget(&suites, &Seconds::new()).is_empty());
        assert!(over_budget(&suites, &Seconds::from([("rust".to_owned(), 10)])).is_empty());
        assert_eq!(over_budget(&suites, &Seconds::from([("rust".to_owned(), 11)])).len(), 1);
    }
}
