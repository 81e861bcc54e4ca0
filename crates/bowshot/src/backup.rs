//! `bowshot backup`, `bowshot restore` and `bowshot verify`: data folders as files. No server is called, and one may run on the folder.

use crate::config::{Config, Flags};
use crate::serve::Signals;
use anyhow::{Context, Result};
use bowshot_object_store::{ObjectFolder, Remotes};
use bowshot_tables::Error;
use bowshot_tables::durable::backup::{Backup, Copied, Share, Stop, backup, restore, tables_address};
use bowshot_tables::durable::verify::{Depth, Found, Kind, verify};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What to back up, and where to.
#[derive(Debug, Args)]
#[command(
    after_help = "Run it as the user of the server, on its machine. The server keeps serving. The backup has everything that was committed before the command began, and each transaction as a whole or not at all."
)]
pub(crate) struct BackupArgs {
    /// Folder to make; it must not be there, or be empty
    #[arg(value_name = "DEST")]
    into: PathBuf,
    /// Data folder of the server
    #[arg(long, value_name = "DIR", env = "BOWSHOT_DATA")]
    data: PathBuf,
    /// Configuration file of the server, for the credentials of the object store that has its tables
    #[arg(long, value_name = "FILE", env = "BOWSHOT_CONFIG")]
    config: Option<PathBuf>,
    /// Share files with this earlier backup, on the same file system, instead of copying them again
    #[arg(long, value_name = "DIR", conflicts_with = "link")]
    since: Option<PathBuf>,
    /// Share files with the data folder, on the same file system, instead of copying them: quick, and lost with that disk
    #[arg(long)]
    link: bool,
    /// Tell what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What to bring back, and where to.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Folder that `bowshot backup` has made
    #[arg(value_name = "SRC")]
    from: PathBuf,
    /// Data folder to make; it must not be there, or be empty
    #[arg(long, value_name = "DIR", env = "BOWSHOT_DATA")]
    data: PathBuf,
    /// Tell what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What to verify.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 if anything is wrong: one line for each fault on stdout, with what to do. Nothing is changed. While a server uses the folder, one consistent state of it is checked."
)]
pub(crate) struct VerifyArgs {
    /// Data folder, or a folder that `bowshot backup` has made
    #[arg(long, value_name = "DIR", env = "BOWSHOT_DATA")]
    data: PathBuf,
    /// Read every value of every row, too
    #[arg(long)]
    deep: bool,
    /// Tell what was found as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run_backup(args: BackupArgs) -> Result<()> {
    let share = match (args.since, args.link) {
        (Some(earlier), _) => Share::With(earlier),
        (None, true) => Share::WithData,
        (None, false) => Share::Nothing,
    };
    let store = store_of(&args.data, args.config)?;
    let wanted = Backup { data: args.data, into: args.into, share, store };
    let done = until_stopped(move |stop| backup(&wanted, stop)).await?;
    told(&done, args.json)
}

/// The object store with the tables of a folder, if any.
pub(crate) fn store_of(data: &Path, config: Option<PathBuf>) -> Result<Option<ObjectFolder>> {
    let Some(address) = tables_address(data).map_err(in_words)? else { return Ok(None) };
    // A configuration with the store need not name the folder.
    let values = vec![("data".to_owned(), data.display().to_string())];
    let flags = Flags { file: config, values, ..Flags::default() };
    let mut options = Config::load(&flags, std::env::vars_os())?.remote;
    // Copied files are read once.
    options.cache_bytes = 0;
    Ok(Some(Remotes::new(options)?.folder(&address)?))
}

pub(crate) async fn run_restore(args: RestoreArgs) -> Result<()> {
    let (from, data) = (args.from, args.data);
    let done = until_stopped(move |stop| restore(&from, &data, stop)).await?;
    told(&done, args.json)
}

/// Verifies a folder; the exit code is 1 if something is damaged.
pub(crate) async fn run_verify(args: VerifyArgs) -> Result<ExitCode> {
    let depth = if args.deep { Depth::Rows } else { Depth::Footers };
    let found = until_stopped(move |stop| verify(&args.data, depth, stop)).await?;
    crate::print(&if args.json { as_json(&found) } else { as_text(&found) })?;
    Ok(if found.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs blocking work until it is done or a signal arrives.
pub(crate) async fn until_stopped<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Result<T> {
    let mut signals = Signals::listen()?;
    let stop = Arc::new(Stop::new(false));
    let told = Arc::clone(&stop);
    let mut working = tokio::task::spawn_blocking(move || work(&told));
    let done = tokio::select! {
        done = &mut working => done,
        _ = signals.next() => {
            stop.store(true, Ordering::Relaxed);
            working.await
        }
    };
    Ok(done.context("the operation failed")?.map_err(in_words)?)
}

/// The displayed error: without its source, which repeats it, and with a hint about commands instead of statements.
fn in_words(error: Error) -> bowshot_api::Error {
    let of_disk = matches!(error, Error::File { .. } | Error::Catalog { .. });
    let whole = bowshot_api::Error::from(error);
    let hint = if of_disk {
        Some("free space on the disk, check the disk, or run the command as the user of the server")
    } else {
        whole.hint()
    };
    let bare = bowshot_api::Error::new(whole.kind(), whole.message());
    match hint {
        Some(hint) => bare.with_hint(hint),
        None => bare,
    }
}

pub(crate) fn told(done: &Copied, as_json: bool) -> Result<()> {
    let Copied { taken, tables, files, bytes, shared_bytes } = done;
    if as_json {
        let text = json!({
            "taken": taken, "tables": tables, "files": files, "bytes": bytes, "shared_bytes": shared_bytes,
        });
        return crate::print(&format!("{text}\n"));
    }
    let shared =
        if *shared_bytes > 0 { format!(", of which {shared_bytes} are shared") } else { String::new() };
    crate::print(&format!("state of {taken}: {tables} tables, {files} files, {bytes} bytes{shared}\n"))
}

fn kind(found: &Found) -> &'static str {
    match found.kind {
        Kind::Stopped => "data folder",
        Kind::Running => "data folder in use",
        Kind::Backup => "backup",
    }
}

fn as_text(found: &Found) -> String {
    let mut text = String::new();
    for fault in &found.faults {
        text.push_str(&format!("FAULT   {}: {}. {}\n", fault.place, fault.problem, fault.remedy));
    }
    for remark in &found.remarks {
        text.push_str(&format!("remark  {remark}\n"));
    }
    let Found { tables, files, rows, .. } = found;
    let faults = match found.faults.len() {
        0 => "all is well".to_owned(),
        1 => "1 fault".to_owned(),
        many => format!("{many} faults"),
    };
    text.push_str(&format!("{}: {tables} tables, {rows} rows, {files} files: {faults}\n", kind(found)));
    if found.kind == Kind::Running {
        text.push_str("a server uses the folder: unreferenced files were not searched for\n");
    }
    text
}

fn as_json(found: &Found) -> String {
    let faults = found
        .faults
        .iter()
        .map(|fault| json!({ "place": fault.place, "problem": fault.problem, "remedy": fault.remedy }));
    let text = json!({
        "kind": kind(found),
        "faults": faults.collect::<Vec<_>>(),
        "remarks": found.remarks,
        "tables": found.tables,
        "files": found.files,
        "rows": found.rows,
        "in_store": found.in_store,
    });
    format!("{text}\n")
}
