//! `bowshot access`: access rules in a file, for instance in git. `diff` shows the SQL statements that lead from the rules of a server to those
//! of the file, `apply` runs them in one transaction as an administrator over Flight. Sections that the file does not have are not changed.
//! Passwords and tokens are never in the file.

mod diff;
mod file;
mod state;

use crate::connect::ConnectArgs;
use crate::sql::say;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use bowshot_api::OptionValue;
use bowshot_flight::client::Client;
use clap::{Args, Subcommand};
use file::RulesFile;
use state::State;
use std::path::PathBuf;
use std::process::ExitCode;

/// What to do with a file of rules.
#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Show the statements that lead from the server's rules to those of a file
    Diff {
        #[command(flatten)]
        with: FileArgs,
        /// Exit with code 1 if there are any
        #[arg(long)]
        check: bool,
    },
    /// Run these statements, all or none of them
    Apply {
        #[command(flatten)]
        with: FileArgs,
    },
}

/// A file, and the server that it is for.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// File of roles, users, memberships, grants, policies and masks (TOML)
    file: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs what the arguments say.
///
/// # Errors
/// [`Usage`] for a file that is not understood, otherwise what the server said.
pub(crate) async fn run(command: AccessCommand) -> Result<ExitCode> {
    match command {
        AccessCommand::Diff { with, check } => {
            let (client, file) = begin(&with).await?;
            let statements = statements(&client, &file).await?;
            show(&statements)?;
            Ok(if check && !statements.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        AccessCommand::Apply { with } => {
            let (client, file) = begin(&with).await?;
            run_all(&client, &file).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn begin(with: &FileArgs) -> Result<(Client, String)> {
    let text = std::fs::read_to_string(&with.file)
        .with_context(|| format!("cannot read `{}`", with.file.display()))?;
    // Read the file first: without a valid file no connection is needed.
    RulesFile::read(&text, &["catalog".to_owned(), "schema".to_owned()])
        .map_err(|reason| refuse(with, &reason))?;
    let client = with.connect.client().await?;
    client.set_option("dialect", Some(OptionValue::String("ansi".to_owned()))).await?;
    Ok((client, text))
}

fn refuse(with: &FileArgs, reason: &str) -> anyhow::Error {
    let usage = Usage::new(format!("`{}` cannot be used: {reason}", with.file.display()));
    anyhow::Error::new(usage.with_hint("the guide to access has an example"))
}

async fn statements(client: &Client, file: &str) -> Result<Vec<String>> {
    let state = State::read(client).await?;
    let wanted =
        RulesFile::read(file, &state.place).map_err(|reason| anyhow::Error::new(Usage::new(reason)))?;
    if wanted.users.as_ref().is_some_and(|users| !users.contains_key(&state.user))
        && state.users.contains_key(&state.user)
    {
        bail!("the file would drop the current user `{}`: another admin has to apply it", state.user);
    }
    Ok(diff::diff(&wanted, &state))
}

/// In one transaction, so that no half of the rules is ever visible, and no concurrent change is lost.
async fn run_all(client: &Client, file: &str) -> Result<()> {
    state::ask(client, "BEGIN").await?;
    let done = async {
        let statements = statements(client, file).await?;
        for sql in &statements {
            state::ask(client, sql)
                .await
                .with_context(|| format!("nothing was changed, because of `{sql}`"))?;
        }
        state::ask(client, "COMMIT").await.context("nothing was changed")?;
        anyhow::Ok(statements)
    };
    match done.await {
        Ok(statements) => show(&statements),
        Err(error) => {
            // It may have ended already, and ends with the session anyway.
            drop(state::ask(client, "ROLLBACK").await);
            Err(error)
        }
    }
}

fn show(statements: &[String]) -> Result<()> {
    if statements.is_empty() {
        say("the server's rules are those of the file");
    }
    let text: String = statements.iter().map(|sql| format!("{sql};\n")).collect();
    crate::print(&text)
}
