//! `bowshot doctor`: problems of a set-up and their solutions. Takes the arguments of `bowshot serve`, starts nothing, and removes what it
//! writes to try folders.

mod access;
mod folders;
mod machine;
mod network;

use crate::cli::ServerArgs;
use crate::config::Config;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;

/// What to look at, and how to tell.
#[derive(Debug, Args)]
#[command(
    after_help = "One line for each check: `ok`, `WARN` for what may be intended, `FAIL` for what does not work. Exit code 1 if anything fails."
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Tell it as JSON
    #[arg(long)]
    json: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Good,
    /// It works, but may not be intended.
    Doubtful,
    /// It does not work.
    Bad,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "WARN",
            Self::Bad => "FAIL",
        }
    }
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The stable name of the check.
    check: &'static str,
    state: State,
    finding: String,
    /// What to do.
    remedy: Option<String>,
}

impl Line {
    fn good(check: &'static str, finding: impl Into<String>) -> Self {
        Self { check, state: State::Good, finding: finding.into(), remedy: None }
    }

    fn doubtful(check: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Doubtful, finding: finding.into(), remedy: Some(remedy.into()) }
    }

    fn bad(check: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Bad, finding: finding.into(), remedy: Some(remedy.into()) }
    }

    fn error(check: &'static str, error: &anyhow::Error, otherwise: &str) -> Self {
        let usage = error.downcast_ref::<crate::usage::Usage>();
        let door = error.chain().find_map(|cause| cause.downcast_ref::<bowshot_api::Error>());
        let hint = usage.and_then(crate::usage::Usage::hint).or(door.and_then(bowshot_api::Error::hint));
        // Errors of the server API have hint and sources in their text.
        let finding = match error.downcast_ref::<bowshot_api::Error>() {
            Some(door) => door.message().to_owned(),
            None => format!("{error:#}"),
        };
        Self::bad(check, finding, hint.unwrap_or(otherwise))
    }
}

/// Runs all checks; the exit code is 1 if any fails.
pub(crate) async fn run(args: DoctorArgs) -> Result<ExitCode> {
    let lines = looked_at(args.server).await;
    let text = if args.json { as_json(&lines) } else { as_text(&lines) };
    crate::print(&text)?;
    let fails = lines.iter().any(|line| line.state == State::Bad);
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn looked_at(args: ServerArgs) -> Vec<Line> {
    let mut lines = vec![Line::good("version", format!("bowshot {}", env!("CARGO_PKG_VERSION")))];
    let flags = args.into_flags();
    let file = flags.file.clone().or_else(|| std::env::var_os("BOWSHOT_CONFIG").map(Into::into));
    let config = match Config::load(&flags, std::env::vars_os()) {
        Ok(config) => config,
        Err(usage) => {
            lines.push(Line::error(
                "configuration",
                &usage.into(),
                "`bowshot docs settings` lists all settings",
            ));
            return lines;
        }
    };
    lines.push(folders::configuration(file.as_deref(), &config));
    let in_use = folders::is_in_use(&config);
    lines.extend(network::ports(&config, in_use).await);
    lines.extend(network::tls(&config).await);
    lines.extend(network::cluster(&config));
    lines.extend(network::traces(&config).await);
    lines.extend(access::users(&config));
    lines.extend(folders::data(&config, in_use));
    lines.extend(folders::others(&config));
    lines.extend(machine::limits(&config));
    lines.extend(machine::clock(&config));
    lines
}

fn as_text(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&format!("{:<5} {:<14} {}\n", line.state.name(), line.check, line.finding));
        if let Some(remedy) = &line.remedy {
            text.push_str(&format!("{:<20} → {remedy}\n", ""));
        }
    }
    let count = |state| lines.iter().filter(|line| line.state == state).count();
    let (good, doubtful, bad) = (count(State::Good), count(State::Doubtful), count(State::Bad));
    text.push_str(&format!("{good} ok, {doubtful} warnings, {bad} failures\n"));
    text
}

fn as_json(lines: &[Line]) -> String {
    let checks = lines.iter().map(|line| {
        json!({
            "check": line.check,
            "state": line.state.name().to_ascii_lowercase(),
            "finding": line.finding,
            "remedy": line.remedy,
        })
    });
    format!("{}\n", json!({ "checks": checks.collect::<Vec<_>>() }))
}
