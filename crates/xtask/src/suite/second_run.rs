//! A second run of the few tests of a suite that failed: one that passes alone depends on what else the machine does. It is reported as
//! unstable, to be mended, and does not fail the whole run.

use super::counts::{Format, Report, Verdict};
use super::table::Suite;

/// More failures than these have one cause, which a second run would only show again.
const MOST: usize = 2;

/// The command of the suite for the tests that failed, where a second run can tell something.
pub(super) fn command(suite: &Suite, first: &Report) -> Option<Vec<String>> {
    let failed = failed(first);
    let can = suite.counts == Format::Pytest && !suite.conformance && (1..=MOST).contains(&failed.len());
    can.then(|| {
        let options = suite.run.iter().filter(|word| !is_path(word)).cloned();
        options.chain(failed).collect()
    })
}

/// Paths of tests in a command of pytest, which names of single tests replace.
fn is_path(word: &str) -> bool {
    !word.starts_with('-') && (word == "tests" || word.ends_with(".py"))
}

fn failed(report: &Report) -> Vec<String> {
    let cases = report.cases.iter().filter(|(_, verdict)| **verdict == Verdict::Failed);
    cases.map(|(name, _)| name.clone()).collect()
}

/// The tests that failed in the first run and passed in the second.
pub(super) fn passed(first: &Report, second: &Report) -> Vec<String> {
    let has_passed = |name: &String| second.cases.get(name) == Some(&Verdict::Passed);
    failed(first).into_iter().filter(has_passed).collect()
}

#[cfg(test)]
mod tests {
    use super::super::counts;
    use super::{Format, Report, Suite, command, passed};

    fn suite(run: &[&str]) -> Suite {
        let text = format!(
            "name = 's'\ngroup = 'g'\nabout = ''\ncounts = 'pytest'\nlimit_minutes = 1\nrun = {run:?}"
        );
        toml::from_str(&text).unwrap()
    }

    fn report(output: &str) -> Report {
        counts::parse(Format::Pytest, output)
    }

    #[test]
    fn few_failures_run_again_by_name() {
        let suite = suite(&["{python}", "-m", "pytest", "-rA", "--ignore=b.py", "a.py"]);
        let first = report("PASSED a.py::t\nFAILED a.py::u[x] - assert 1\nERROR a.py::v - lost");
        assert_eq!(
            command(&suite, &first).unwrap(),
            ["{python}", "-m", "pytest", "-rA", "--ignore=b.py", "a.py::u[x]", "a.py::v"]
        );
        assert_eq!(passed(&first, &report("PASSED a.py::u[x]\nFAILED a.py::v - lost")), ["a.py::u[x]"]);
        assert!(passed(&first, &report("")).is_empty());
    }

    #[test]
    fn no_failure_and_many_are_not_repeated() {
        let suite = suite(&["pytest"]);
        assert!(command(&suite, &report("PASSED a.py::t")).is_none());
        let many: String = (0..3).map(|number| format!("FAILED a.py::t{number} - assert\n")).collect();
        assert!(command(&suite, &report(&many)).is_none());
    }
}
