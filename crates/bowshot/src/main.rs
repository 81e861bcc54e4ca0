//! The program `bowshot`: command line, configuration, wiring, signals and exit codes. Nothing about SQL, files or protocols is decided here.
//! Exit codes: 0 good, 1 failed at run time, 2 wrong usage. Data goes to stdout, everything else to stderr.

mod access;
mod backup;
mod check;
mod cli;
mod cluster;
mod config;
mod connect;
mod demo;
mod doctor;
mod logging;
mod metrics_exporter;
mod open_files;
mod password;
mod ports_file;
mod reference;
mod serve;
mod sql;
mod standby;
mod traces;
mod usage;

use anyhow::{Context, Result};
use clap::Parser;
use cli::{AuditCommand, Cli, Command, ServerArgs};
use config::Config;
use logging::{OpenLog, Started};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use traces::Collected;
use usage::Usage;

/// The system's allocator handles large Arrow buffers of many threads badly. Allocations are
/// counted, so that the memory of all statements together has a limit.
#[global_allocator]
static ALLOCATOR: bowshot_ipc::os::Counting<mimalloc::MiMalloc> =
    bowshot_ipc::os::Counting(mimalloc::MiMalloc);

fn main() -> ExitCode {
    // Prints help and usage errors itself, the latter with exit code 2.
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => report(&error),
    }
}

fn run(command: Command) -> Result<ExitCode> {
    // Before other threads exist: a truncated mapped file must not end the process.
    bowshot_ipc::install_truncation_guard().context("cannot guard mapped files against truncation")?;
    match command {
        Command::Serve(args) => {
            let (config, started) = prepare(args)?;
            open_files::raise_limit();
            block_on(serve_logged(&config, started))?;
        }
        Command::Check(args) => {
            let (config, _) = prepare(args)?;
            block_on(check::run(&config))?;
        }
        Command::Backup(args) => block_on(backup::run_backup(args))?,
        Command::Restore(args) => block_on(backup::run_restore(args))?,
        Command::Standby(args) => block_on(standby::run_standby(args))?,
        Command::TakeOver(args) => block_on(standby::run_take_over(args))?,
        Command::Verify(args) => return block_on(backup::run_verify(args)),
        Command::Doctor(args) => return block_on(doctor::run(args)),
        Command::Demo(args) => block_on(demo::run(args))?,
        Command::Sql(args) => return block_on(sql::run(args)),
        Command::Access { what } => return block_on(access::run(what)),
        Command::HashPassword => password::run()?,
        Command::Audit { what: AuditCommand::Verify { file } } => audit(&file)?,
        Command::Cluster { what } => cluster::run(&what)?,
        Command::Docs { page } => reference::print(page)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to stdout.
fn print(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to stdout")
}

fn audit(file: &Path) -> Result<()> {
    let found =
        bowshot_access::verify(file).with_context(|| format!("`{}` is not complete", file.display()))?;
    let (lines, continues, last) = (found.lines, found.continues, found.last);
    print(&format!("{lines} lines, complete\ncontinues {continues}\nends with  {last}\n"))
}

fn prepare(args: ServerArgs) -> Result<(Config, Started)> {
    let config = Config::load(&args.into_flags(), std::env::vars_os())?;
    let started = logging::start(&config)?;
    Ok((config, started))
}

/// Serves, and meanwhile sends traces and follows the file of the log.
async fn serve_logged(config: &Config, Started { traces, file }: Started) -> Result<()> {
    let sending = traces.map(Collected::send).transpose()?;
    let following = file.map(OpenLog::follow).map(tokio::spawn);
    let served = serve::run(config).await;
    if let Some(following) = following {
        following.abort();
    }
    if let Some(sending) = sending {
        sending.finish().await;
    }
    served
}

/// Runs on the socket runtime. Queries have a runtime of their own in the engine.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("socket")
        .enable_all()
        .build()
        .context("cannot start the threads of the sockets")?;
    let outcome = runtime.block_on(work);
    // The end of the process ends its threads: unfinished work must not delay it, and detaching threads that end just
    // then may end it with a fault (glibc bug 19951).
    std::mem::forget(runtime);
    outcome
}

fn report(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<Usage>();
    let door = error.chain().find_map(|cause| cause.downcast_ref::<bowshot_api::Error>());
    let message = match door {
        // Errors of the server API print their hint after the message; here it has a line of its own.
        Some(door) if error.chain().count() == 1 => door.message().to_owned(),
        _ => format!("{error:#}"),
    };
    let hint = usage.and_then(Usage::hint).or(door.and_then(bowshot_api::Error::hint));
    let mut text = format!("error: {message}\n");
    if let Some(hint) = hint.filter(|hint| !message.contains(*hint)) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    // If stderr is closed, the exit code is enough.
    _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(if usage.is_some() { 2 } else { 1 })
}
