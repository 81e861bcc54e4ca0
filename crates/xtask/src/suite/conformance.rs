//! Conformance suites of other projects: compares their results with the documented exclusions in `tests/conformance/NAME.toml`, records them
//! in `tests/conformance/results.json`, and writes the reference page. An excluded test that passes is a failure.

use super::counts::Verdict;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What a suite is, from `tests/conformance/NAME.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    title: String,
    source: String,
    text: String,
    #[serde(default)]
    exclusion: Vec<Entry>,
}

/// A test with the reason why it is excluded or how it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) test: String,
    pub(crate) reason: String,
}

/// The result of one suite as it is recorded; a suite may write this itself to the file in `BOWSHOT_RESULT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    #[serde(default)]
    suite: String,
    pub(crate) passed: u64,
    #[serde(default)]
    pub(crate) failed: Vec<Entry>,
    #[serde(default)]
    pub(crate) excluded: Vec<Entry>,
}

const RESULTS: &str = "tests/conformance/results.json";

/// Judges a run: from the suite's own result file if it wrote one, else from its tests by name.
pub(super) fn judge(
    root: &Path,
    suite: &str,
    cases: &BTreeMap<String, Verdict>,
    result_file: &Path,
) -> Result<Recorded> {
    if result_file.exists() {
        let text = fs::read_to_string(result_file).context("cannot read the suite's result file")?;
        let mut recorded: Recorded = serde_json::from_str(&text)
            .with_context(|| format!("`{}` is not a result", result_file.display()))?;
        suite.clone_into(&mut recorded.suite);
        explain(&mut recorded, &about(root, suite)?.exclusion);
        return Ok(recorded);
    }
    Ok(from_cases(suite, cases, &about(root, suite)?.exclusion))
}

/// Moves the failures that are documented to the exclusions.
fn explain(recorded: &mut Recorded, exclusions: &[Entry]) {
    let (known, failed): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut recorded.failed)
        .into_iter()
        .partition(|failure| exclusions.iter().any(|exclusion| covers(&exclusion.test, &failure.test)));
    recorded.failed = failed;
    for failure in known {
        let reason = exclusions.iter().find(|exclusion| covers(&exclusion.test, &failure.test));
        let reason = reason.map_or(failure.reason, |exclusion| exclusion.reason.clone());
        recorded.excluded.push(Entry { test: failure.test, reason });
    }
}

fn from_cases(suite: &str, cases: &BTreeMap<String, Verdict>, exclusions: &[Entry]) -> Recorded {
    let mut recorded = Recorded { suite: suite.to_owned(), passed: 0, failed: vec![], excluded: vec![] };
    for (test, verdict) in cases {
        let exclusion = exclusions.iter().find(|exclusion| covers(&exclusion.test, test));
        let entry = |reason: &str| Entry { test: test.clone(), reason: reason.to_owned() };
        match (verdict, exclusion) {
            (Verdict::Passed, None) => recorded.passed += 1,
            (Verdict::Passed, Some(_)) => recorded.failed.push(entry("passes, so its exclusion must go")),
            (Verdict::Failed | Verdict::Skipped, Some(known)) => recorded.excluded.push(entry(&known.reason)),
            (Verdict::Failed, None) => recorded.failed.push(entry("failed; the output of the run says how")),
            (Verdict::Skipped, None) => recorded.failed.push(entry("skipped without a documented exclusion")),
        }
    }
    for exclusion in exclusions {
        if !cases.keys().any(|test| covers(&exclusion.test, test)) {
            let reason = "excluded, but no such test ran".to_owned();
            recorded.failed.push(Entry { test: exclusion.test.clone(), reason });
        }
    }
    recorded
}

/// An exclusion covers the test of its name and the subtests below it.
fn covers(exclusion: &str, test: &str) -> bool {
    test.strip_prefix(exclusion).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn about(root: &Path, suite: &str) -> Result<About> {
    let path = root.join(format!("tests/conformance/{suite}.toml"));
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` does not describe a suite", path.display()))
}

/// What is missing when fewer tests passed than at the last recorded run: a suite that ends in the middle has no failing
/// test, and its exclusions may explain why its command failed.
pub(super) fn shortfall(root: &Path, suite: &str, passed: u64) -> Result<Option<String>> {
    let known = recorded(root)?.into_iter().find(|known| known.suite == suite);
    Ok(known.and_then(|known| below(known.passed, passed)))
}

fn below(recorded: u64, passed: u64) -> Option<String> {
    (passed < recorded).then(|| {
        format!(
            "{passed} passed, {recorded} did at the last recorded run; if that is right, `--write-docs` records it"
        )
    })
}

fn recorded(root: &Path) -> Result<Vec<Recorded>> {
    let path = root.join(RESULTS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{RESULTS}`"))?;
    serde_json::from_str(&text).with_context(|| format!("`{RESULTS}` is not a list of results"))
}

/// Replaces the recorded results of the suites that ran.
pub(super) fn record<'a>(root: &Path, results: impl Iterator<Item = &'a Recorded>) -> Result<()> {
    let mut all = recorded(root)?;
    for result in results {
        all.retain(|known| known.suite != result.suite);
        all.push(result.clone());
    }
    all.sort_by(|a, b| a.suite.cmp(&b.suite));
    let text = serde_json::to_string_pretty(&all).context("results cannot be written as JSON")?;
    crate::docs::write(&root.join(RESULTS), &format!("{text}\n"))
}

/// `docs/reference/conformance.md`.
pub(crate) fn page(root: &Path) -> Result<String> {
    let mut table = String::new();
    let mut sections = String::new();
    for result in recorded(root)? {
        let about = about(root, &result.suite)?;
        let failed = result.failed.len();
        let excluded = result.excluded.len();
        writeln!(
            table,
            "| {} | {} | {} | {failed} | {excluded} |",
            about.title, about.source, result.passed
        )?;
        write!(sections, "\n## {}\n\n{}\n", about.title, about.text.trim())?;
        entries(&mut sections, "Failed", &result.failed)?;
        entries(&mut sections, "Excluded", &result.excluded)?;
    }
    Ok(format!(
        "<!-- Generated by `cargo xtask test --only conformance --write-docs`. Do not edit. -->\n\n\
         # Conformance\n\n\
         Suites that others wrote, run against Bowshot. The counts are those of the last recorded run; every\n\
         `cargo xtask test` runs the suites again and fails where a test fails or an exclusion no longer holds.\n\n\
         | suite | source | passed | failed | excluded |\n|---|---|---:|---:|---:|\n{table}{sections}"
    ))
}

fn entries(out: &mut String, title: &str, entries: &[Entry]) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    write!(out, "\n{title}:\n\n| test | reason |\n|---|---|\n")?;
    for entry in entries {
        writeln!(out, "| `{}` | {} |", entry.test.replace('|', "\\|"), entry.reason.replace('|', "\\|"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_hold_or_fail() {
        let cases = [
            ("a", Verdict::Passed),
            ("w/x", Verdict::Skipped),
            ("w/y", Verdict::Passed),
            ("f", Verdict::Failed),
            ("s", Verdict::Skipped),
        ];
        let cases = cases.into_iter().map(|(name, verdict)| (name.to_owned(), verdict)).collect();
        let exclusion = |test: &str| Entry { test: test.to_owned(), reason: "writes".to_owned() };
        let judged = from_cases("n", &cases, &[exclusion("w"), exclusion("gone")]);
        assert_eq!((judged.passed, judged.excluded.len()), (1, 1));
        let failed: Vec<&str> = judged.failed.iter().map(|entry| entry.test.as_str()).collect();
        assert_eq!(failed, ["f", "s", "w/y", "gone"]);
    }

    #[test]
    fn fewer_tests_than_recorded_are_a_complaint() {
        assert_eq!(below(10, 10), None);
        assert_eq!(below(10, 11), None);
        assert!(below(10, 9).is_some_and(|complaint| complaint.starts_with("9 passed, 10 did")));
        let root = std::env::temp_dir().join(format!("xtask-shortfall-{}", std::process::id()));
        std::fs::create_dir_all(root.join("tests/conformance")).unwrap();
        let results = r#"[{"suite": "known", "passed": 10}]"#;
        std::fs::write(root.join(RESULTS), results).unwrap();
        assert!(shortfall(&root, "known", 3).unwrap().is_some());
        assert_eq!(shortfall(&root, "known", 10).unwrap(), None);
        assert_eq!(shortfall(&root, "new", 0).unwrap(), None);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn documented_failures_are_exclusions() {
        let entry = |test: &str, reason: &str| Entry { test: test.to_owned(), reason: reason.to_owned() };
        let failed = vec![entry("a.slt:1", "differs"), entry("b.slt:2", "differs")];
        let mut recorded = Recorded { suite: "slt".to_owned(), passed: 3, failed, excluded: vec![] };
        explain(&mut recorded, &[entry("b.slt:2", "no time zone")]);
        assert_eq!(recorded.failed, [entry("a.slt:1", "differs")]);
        assert_eq!(recorded.excluded, [entry("b.slt:2", "no time zone")]);
    }
}
