//! `cargo xtask test`: builds the release programs and runs every suite of `tests/suites.toml`. A suite that cannot run is reported, and is a
//! failure in continuous integration.

pub(crate) mod conformance;
mod counts;
mod lanes;
pub(crate) mod needs;
mod process;
mod second_run;
pub(crate) mod seconds;
mod table;

use crate::{TestArgs, docs, machine};
use anyhow::{Context, Result, bail};
use conformance::Recorded;
use counts::Counts;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use table::Suite;

/// How one suite ended.
#[derive(Default)]
struct Outcome {
    name: String,
    counts: Counts,
    excluded: usize,
    complaint: Option<String>,
    took: Duration,
    /// Whether its command ran tests to its end, also if some of them failed: then its time is what the suite takes.
    ended: bool,
    recorded: Option<Recorded>,
    /// What a suite that failed printed last, to be read again below the table: a log is read from its end.
    ending: Vec<String>,
    /// Tests that failed and then passed when they ran alone.
    unstable: Vec<String>,
}

impl Outcome {
    fn failed(&self) -> u64 {
        // A suite that broke without a failing test, or ran none, is one failure.
        self.counts.failed.max(u64::from(self.complaint.is_some()))
    }
}

pub(crate) fn run(args: &TestArgs) -> Result<bool> {
    let suites = table::load(&machine::root())?;
    if args.list {
        for suite in &suites {
            machine::say(&format!("{:<20} {:<14} {}", suite.name, suite.group, suite.about));
        }
        return Ok(true);
    }
    let chosen = choose(suites, args)?;
    if !args.no_build && !build()? {
        machine::say("the release build failed");
        machine::say("0 passed, 1 failed");
        return Ok(false);
    }
    let measured = seconds::measured(&machine::root())?;
    let outcomes = lanes::run(&chosen, &measured, |index, suite| {
        machine::say(&format!("\n== {} ({} of {}): {}", suite.name, index + 1, chosen.len(), suite.about));
        run_suite(suite, args.write_docs)
    });
    if args.write_docs {
        conformance::record(
            &machine::root(),
            outcomes.iter().filter_map(|outcome| outcome.recorded.as_ref()),
        )?;
        docs::run(false)?;
    }
    if args.record_seconds {
        seconds::record(&machine::root(), &outcomes)?;
    }
    Ok(summarise(&outcomes))
}

/// The suites that are named, or else all that are run together: those of minutes, or those of hours.
fn choose(suites: Vec<Suite>, args: &TestArgs) -> Result<Vec<Suite>> {
    let is_named =
        |suite: &Suite, name: &str| suite.name == name || (suite.group == name && suite.long == args.long);
    for name in &args.only {
        if !suites.iter().any(|suite| is_named(suite, name)) {
            bail!("no suite or group `{name}`; `cargo xtask test --list` shows them");
        }
    }
    let is_chosen = |suite: &Suite| match args.only.as_slice() {
        [] => suite.long == args.long,
        names => names.iter().any(|name| is_named(suite, name)),
    };
    Ok(suites.into_iter().filter(is_chosen).collect())
}

/// One selection and one profile for programs and tests, so that nothing heavy is compiled twice.
fn build() -> Result<bool> {
    machine::say(
        "building the release programs and tests; the first build of the dependencies takes a while",
    );
    let target = machine::target_dir().display().to_string();
    Ok(source_times("sync", &target)?
        && machine::show("cargo", &["build", "--release", "--workspace", "--bins"])?
        && machine::show("cargo", &["test", "--release", "--workspace", "--no-run"])?
        && source_times("record", &target)?)
}

/// Clones that share a target folder are told apart by the contents of their files, not by their times alone.
fn source_times(step: &str, target: &str) -> Result<bool> {
    machine::show(machine::python()?, &[".ci/source_times.py", step, target])
}

fn run_suite(suite: &Suite, recording: bool) -> Outcome {
    let started = Instant::now();
    let mut outcome = Outcome { name: suite.name.clone(), ..Outcome::default() };
    let missing: Vec<&str> =
        suite.needs.iter().map(String::as_str).filter(|program| !machine::has(program)).collect();
    if missing.is_empty() {
        if let Err(error) = run_commands(suite, recording, &mut outcome) {
            outcome.complaint = Some(format!("{error:#}"));
        }
    } else {
        skip(suite, &missing, &mut outcome);
    }
    outcome.took = started.elapsed();
    if let Some(complaint) = &outcome.complaint {
        machine::say(&format!("{}: {complaint}", suite.name));
    }
    outcome
}

fn skip(suite: &Suite, missing: &[&str], outcome: &mut Outcome) {
    let reason = format!("not run, {} not found", missing.join(" and "));
    machine::say(&format!("SKIPPED {}: {reason}", suite.name));
    outcome.counts.skipped = 1;
    if machine::is_ci() {
        outcome.complaint = Some(format!("{reason}; nothing may be skipped in continuous integration"));
    }
}

fn run_commands(suite: &Suite, recording: bool, outcome: &mut Outcome) -> Result<()> {
    let places = needs::places(suite)?;
    let result_file = result_file(suite);
    if result_file.exists() {
        std::fs::remove_file(&result_file).context("an old result file cannot be removed")?;
    }
    for command in &suite.prepare {
        let run = process::run(places.command(command, &suite.folder, &result_file)?, suite.limit())?;
        if !run.success {
            bail!("the preparation `{}` failed", command.join(" "));
        }
    }
    let mut run = process::run(places.command(&suite.run, &suite.folder, &result_file)?, suite.limit())?;
    let report = counts::parse(suite.counts, &run.output);
    outcome.counts = report.counts;
    let ending = ending(&run.output);
    if let Some(words) = second_run::command(suite, &report).filter(|_| !run.timed_out) {
        let second = process::run(places.command(&words, &suite.folder, &result_file)?, suite.limit())?;
        outcome.unstable = second_run::passed(&report, &counts::parse(suite.counts, &second.output));
        let passed = outcome.unstable.len() as u64;
        outcome.counts.passed += passed;
        outcome.counts.failed -= passed;
        run.success |= second.success && outcome.counts.failed == 0;
    }
    if suite.conformance {
        let recorded = conformance::judge(&machine::root(), &suite.name, &report.cases, &result_file)?;
        outcome.counts = Counts { passed: recorded.passed, failed: recorded.failed.len() as u64, skipped: 0 };
        outcome.excluded = recorded.excluded.len();
        for failure in &recorded.failed {
            machine::say(&format!("FAILED {}: {}", failure.test, failure.reason));
        }
        outcome.recorded = Some(recorded);
    }
    outcome.ended = !run.timed_out && outcome.counts.passed + outcome.counts.failed > 0;
    complain(suite, run, outcome);
    if outcome.failed() > 0 {
        outcome.ending = ending;
    }
    if suite.conformance && !recording && outcome.complaint.is_none() {
        outcome.complaint = conformance::shortfall(&machine::root(), &suite.name, outcome.counts.passed)?;
    }
    Ok(())
}

fn complain(suite: &Suite, run: process::Finished, outcome: &mut Outcome) {
    outcome.complaint = if run.timed_out {
        Some(format!("still running after {} minutes, stopped", suite.limit_minutes))
    } else if outcome.counts.passed + outcome.counts.failed == 0 {
        Some("ran no test".to_owned())
    } else if machine::is_ci() && outcome.counts.skipped > 0 {
        Some(format!(
            "{} skipped tests; nothing may be skipped in continuous integration",
            outcome.counts.skipped
        ))
    } else if !run.success && outcome.counts.failed == 0 && outcome.excluded == 0 {
        Some("the command failed without a failing test".to_owned())
    } else {
        None
    };
}

/// The lines that tell of failures, and the last ones.
fn ending(output: &str) -> Vec<String> {
    const TOLD: usize = 20;
    const LAST: usize = 12;
    let lines: Vec<&str> = output.lines().collect();
    let (earlier, last) = lines.split_at(lines.len().saturating_sub(LAST));
    const MARKS: [&str; 8] =
        ["FAILED", "ERROR ", "--- FAIL", "panicked at", "✖", "AssertionError", "FAULT ", "NOT CLEAN"];
    let tells = |line: &&&str| MARKS.iter().any(|mark| line.contains(mark));
    earlier.iter().filter(tells).take(TOLD).chain(last).map(|line| line.chars().take(400).collect()).collect()
}

fn result_file(suite: &Suite) -> PathBuf {
    machine::target_dir().join(format!("result-{}.json", suite.name))
}

fn summarise(outcomes: &[Outcome]) -> bool {
    machine::say(&format!(
        "\n{:<20} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "suite", "passed", "failed", "skipped", "excluded", "seconds"
    ));
    for outcome in outcomes {
        machine::say(&format!(
            "{:<20} {:>8} {:>8} {:>8} {:>9} {:>9.1}  {}",
            outcome.name,
            outcome.counts.passed,
            outcome.failed(),
            outcome.counts.skipped,
            outcome.excluded,
            outcome.took.as_secs_f64(),
            outcome.complaint.as_deref().unwrap_or_default()
        ));
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.failed() > 0) {
        machine::say(&format!("\n{} failed:", outcome.name));
        for line in &outcome.ending {
            machine::say(&format!("    {line}"));
        }
    }
    for outcome in outcomes {
        for test in &outcome.unstable {
            machine::say(&format!(
                "UNSTABLE {}: `{test}` failed, and passed when it ran alone",
                outcome.name
            ));
        }
    }
    let passed: u64 = outcomes.iter().map(|outcome| outcome.counts.passed).sum();
    let failed: u64 = outcomes.iter().map(Outcome::failed).sum();
    machine::say(&format!("\n{passed} passed, {failed} failed"));
    failed == 0
}
