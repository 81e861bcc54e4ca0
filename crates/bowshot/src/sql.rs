//! `bowshot sql`: a small Flight SQL client for a statement, a file of statements or a prompt; writes tables, CSV, JSON lines, Parquet or
//! Arrow. Data goes to stdout (or `--output`), everything else to stderr. Exit codes: 0 good, 1 a statement failed or was cancelled, 2 wrong
//! usage.

mod backslash_commands;
mod complete;
mod interrupt;
mod output;
mod pager;
mod progress;
mod prompt;
mod statement;
mod table;

use crate::connect::ConnectArgs;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use bowshot_api::OptionValue;
use bowshot_flight::client::Client;
use bowshot_sql::{Dialect, DialectName, split_script};
use clap::{Args, ValueEnum};
use interrupt::Interrupts;
use output::{Destination, Format, WriteFailed};
use statement::{Outcome, Runner};
use std::fmt;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs SQL on a server and prints the results.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Statements to run; without any, they come from --file, from stdin, or from a prompt
    sql: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
    /// Run the statements in a file, in turn, up to the first that fails
    #[arg(long, short, value_name = "FILE", conflicts_with = "sql")]
    file: Option<PathBuf>,
    /// Form of the results; without it the ending of --output tells, and without --output it is `table`
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write the result to a file; it appears only when it is complete
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rows that a table shows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    max_rows: usize,
    /// Show progress also where stderr is not a terminal
    #[arg(long)]
    progress: bool,
    /// Tell how long each statement took
    #[arg(long)]
    timing: bool,
    /// Set a session option, for example `--set endpoints=auto`
    #[arg(long = "set", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

fn usage(text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage::new(text))
}

/// Runs what the arguments say. The exit code tells of cancelled statements; errors are the caller's to tell.
///
/// # Errors
/// [`Usage`] for wrong calls, otherwise what the server or the file system said.
pub(crate) async fn run(args: SqlArgs) -> Result<ExitCode> {
    match session(&args).await {
        // The reader of the output has closed it.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        result => result,
    }
}

async fn session(args: &SqlArgs) -> Result<ExitCode> {
    let destination = Destination::new(args.format, args.output.as_deref())?;
    let source = Source::of(args)?;
    if let Source::Statements(statements) = &source {
        destination.check_count(statements.len())?;
    }
    let client = args.connect.client().await?;
    for option in &args.options {
        set_option(&client, option).await?;
    }
    let mut runner = Runner {
        client,
        destination,
        max_rows: args.max_rows,
        timing: args.timing,
        expanded: false,
        screen_lines: None,
        progress: args.progress || std::io::stderr().is_terminal(),
        interrupts: Interrupts::listen(),
        next_destination: None,
        last: String::new(),
    };
    let code = match source {
        Source::Prompt => prompt::run(&mut runner, args.connect.uri()).await?,
        Source::Statements(statements) => run_all(&mut runner, &statements).await?,
    };
    // The server would notice the closed connection; this is only faster.
    drop(runner.client.close().await);
    Ok(code)
}

/// Where the statements come from.
enum Source {
    Statements(Vec<String>),
    Prompt,
}

impl Source {
    fn of(args: &SqlArgs) -> Result<Self> {
        let text = if let Some(sql) = &args.sql {
            sql.clone()
        } else if let Some(path) = &args.file {
            std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?
        } else if std::io::stdin().is_terminal() {
            if args.output.is_some() {
                return Err(usage("--output needs a statement, or a --file with one"));
            }
            return Ok(Self::Prompt);
        } else {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
            text
        };
        let statements: Vec<String> = statements_of(&text).map(str::to_owned).collect();
        if statements.is_empty() {
            return Err(usage("no SQL statement was given"));
        }
        Ok(Self::Statements(statements))
    }
}

/// All statements of a text; the last needs no semicolon.
fn statements_of(text: &str) -> impl Iterator<Item = &str> {
    let (statements, rest) = split_script(text, Dialect::new(DialectName::Ansi));
    statements.into_iter().chain(Some(rest).filter(|rest| !rest.is_empty()))
}

async fn run_all(runner: &mut Runner, statements: &[String]) -> Result<ExitCode> {
    for (index, sql) in statements.iter().enumerate() {
        let context = || format!("statement {} of {}", index + 1, statements.len());
        let result = runner.run(sql).await;
        let outcome = if statements.len() > 1 { result.with_context(context)? } else { result? };
        if outcome == Outcome::Cancelled {
            say("cancelled");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets `NAME=VALUE`; an empty value resets the option.
async fn set_option(client: &Client, pair: &str) -> Result<()> {
    let Some((name, value)) = pair.split_once('=') else {
        bail!(usage(format!("`{pair}` is not of the form NAME=VALUE")));
    };
    let value = value.trim();
    let value = (!value.is_empty()).then(|| OptionValue::String(value.to_owned()));
    client.set_option(name.trim(), value).await?;
    Ok(())
}

/// One line on stderr; errors are ignored.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Whether stdout was closed. Some of Arrow's writers report it as text only.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        kind == Some(std::io::ErrorKind::BrokenPipe) || cause.to_string().contains("Broken pipe")
    };
    error.is::<WriteFailed>() && error.chain().any(broken)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}
