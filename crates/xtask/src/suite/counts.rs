//! Reads what test runners print: counts for every format, and the names of the tests where the format tells them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Which runner's output a suite prints.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// `cargo test`: one `test result:` line for each binary.
    Cargo,
    /// pytest with `-rA`: a `PASSED name` line for each test.
    Pytest,
    /// `go test -v`: `--- PASS: name`.
    Go,
    /// Maven Surefire: the last `Tests run:` line.
    Surefire,
    /// A line `N passed, N failed`.
    Plain,
}

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

/// How one test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// Counts, and the tests by name where the format tells them.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) cases: BTreeMap<String, Verdict>,
}

pub(super) fn parse(format: Format, output: &str) -> Report {
    match format {
        Format::Cargo => Report { counts: cargo(output), ..Report::default() },
        Format::Surefire => Report { counts: surefire(output), ..Report::default() },
        Format::Plain => Report { counts: plain(output), ..Report::default() },
        Format::Pytest => named(pytest(output)),
        Format::Go => named(go(output)),
    }
}

fn named(cases: BTreeMap<String, Verdict>) -> Report {
    let count = |wanted| cases.values().filter(|verdict| **verdict == wanted).count() as u64;
    let counts = Counts {
        passed: count(Verdict::Passed),
        failed: count(Verdict::Failed),
        skipped: count(Verdict::Skipped),
    };
    Report { counts, cases }
}

/// The number right before a word, as in `12 passed` and `Tests run: 3,` read backwards.
fn number_before(text: &str, word: &str) -> Option<u64> {
    let head = text.split(word).next().filter(|head| head.len() < text.len())?;
    head.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let tail = text.split_once(word)?.1.trim_start();
    tail.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn cargo(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines().filter(|line| line.starts_with("test result:")) {
        counts.passed += number_before(line, " passed").unwrap_or(0);
        counts.failed += number_before(line, " failed").unwrap_or(0);
        counts.skipped += number_before(line, " ignored").unwrap_or(0);
    }
    counts
}

fn surefire(output: &str) -> Counts {
    let Some(line) =
        output.lines().rev().find(|line| line.contains("Tests run:") && !line.contains(" -- in "))
    else {
        return Counts::default();
    };
    let read = |word| number_after(line, word).unwrap_or(0);
    let failed = read("Failures:") + read("Errors:");
    let skipped = read("Skipped:");
    Counts { passed: read("Tests run:").saturating_sub(failed + skipped), failed, skipped }
}

fn plain(output: &str) -> Counts {
    let is_closing = |line: &&str| line.contains(" passed, ") && line.trim_end().ends_with(" failed");
    let Some(line) = output.lines().rev().find(is_closing) else {
        return Counts::default();
    };
    Counts {
        passed: number_before(line, " passed").unwrap_or(0),
        failed: number_before(line, " failed").unwrap_or(0),
        skipped: 0,
    }
}

fn pytest(output: &str) -> BTreeMap<String, Verdict> {
    let mut cases = BTreeMap::new();
    for line in output.lines() {
        let (verdict, rest) = match line.split_once(' ') {
            Some(("PASSED", rest)) => (Verdict::Passed, rest),
            Some(("FAILED" | "ERROR", rest)) => (Verdict::Failed, rest),
            Some(("SKIPPED" | "XFAIL", rest)) => (Verdict::Skipped, rest),
            _ => continue,
        };
        let name = rest.split(" - ").next().unwrap_or(rest).trim();
        // An error while tearing down follows the test's own line and outweighs it.
        if verdict == Verdict::Failed || !cases.contains_key(name) {
            cases.insert(name.to_owned(), verdict);
        }
    }
    cases
}

/// Leaves only: a suite's own line repeats what its tests said.
fn go(output: &str) -> BTreeMap<String, Verdict> {
    let mut cases = BTreeMap::new();
    for line in output.lines() {
        let Some(rest) = line.trim_start().strip_prefix("--- ") else { continue };
        let (verdict, rest) = match rest.split_once(": ") {
            Some(("PASS", rest)) => (Verdict::Passed, rest),
            Some(("FAIL", rest)) => (Verdict::Failed, rest),
            Some(("SKIP", rest)) => (Verdict::Skipped, rest),
            _ => continue,
        };
        let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
        cases.insert(name.to_owned(), verdict);
    }
    let parents: Vec<String> = cases
        .keys()
        .flat_map(|name| name.match_indices('/').filter_map(|(end, _)| name.get(..end)).map(str::to_owned))
        .collect();
    // A parent that failed while its tests passed failed by itself (setting up, tearing down).
    for parent in parents {
        let prefix = format!("{parent}/");
        let failed_below =
            cases.iter().any(|(name, verdict)| name.starts_with(&prefix) && *verdict == Verdict::Failed);
        if cases.get(&parent) != Some(&Verdict::Failed) || failed_below {
            cases.remove(&parent);
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, output: &str, passed: u64, failed: u64, skipped: u64) {
        assert_eq!(parse(format, output).counts, Counts { passed, failed, skipped }, "{output}");
    }

    #[test]
    fn runners_are_counted() {
        let cargo = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured\nx\ntest result: FAILED. 1 passed; 2 failed; 0 ignored";
        check(Format::Cargo, cargo, 13, 2, 1);
        let surefire = "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0 -- in A\n[ERROR] Tests run: 7, Failures: 1, Errors: 1, Skipped: 1";
        check(Format::Surefire, surefire, 4, 2, 1);
        check(Format::Plain, "slt: 981 passed, 2 failed\n", 981, 2, 0);
        let pytest = "PASSED a.py::t[x - y]\nPASSED a.py::u\nFAILED a.py::v - assert 1\nSKIPPED [1] a.py:3: why\nERROR a.py::u - x";
        check(Format::Pytest, pytest, 1, 2, 1);
        check(Format::Go, "", 0, 0, 0);
    }

    #[test]
    fn go_counts_leaves_and_parents_that_failed_by_themselves() {
        let output = "--- FAIL: T (0.1s)\n    --- PASS: T/A (0.0s)\n    --- FAIL: T/B (0.0s)\n        --- PASS: T/B/x (0.0s)\n    --- SKIP: T/C (0.0s)";
        let report = parse(Format::Go, output);
        assert_eq!(report.counts, Counts { passed: 2, failed: 1, skipped: 1 });
        assert_eq!(report.cases.get("T/B"), Some(&Verdict::Failed));
        assert!(!report.cases.contains_key("T"));
    }
}
