//! `bowshot standby` and `bowshot take-over`: a copy of a data folder that follows it, and how it becomes the data folder. No server is called.
//!
//! The copy is a folder with the newest state (`state-N`), a backup that shares files with the one before, which then goes.

use crate::backup::{store_of, told, until_stopped};
use crate::config::DataFolder;
use crate::serve::{Signals, data_folder};
use crate::usage::Usage;
use anyhow::{Context, Result};
use bowshot_tables::durable::backup::{Backup, CommitMark, Copied, Share, backup, promote};
use clap::Args;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::sleep;

const PREFIX: &str = "state-";
/// A state is taken this often, even if the clock of the disk did not tell of a commit.
const LONGEST: Duration = Duration::from_secs(60);

/// What to follow, and where to.
#[derive(Debug, Args)]
#[command(
    after_help = "Run it as the user of the server, on its machine, with DIR on another disk or on a mounted one of another machine. It \
                  follows until it is ended. `bowshot take-over DIR` makes a data folder of it."
)]
pub(crate) struct StandbyArgs {
    /// Folder of the copy
    #[arg(value_name = "DIR")]
    copy: PathBuf,
    /// Data folder of the server
    #[arg(long, value_name = "DIR", env = "BOWSHOT_DATA")]
    data: PathBuf,
    /// Configuration file of the server, for the credentials of the object store that has its tables
    #[arg(long, value_name = "FILE", env = "BOWSHOT_CONFIG")]
    config: Option<PathBuf>,
    /// Seconds between two looks
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
    /// Take one state and end
    #[arg(long)]
    once: bool,
}

/// What takes over from what.
#[derive(Debug, Args)]
#[command(
    after_help = "Stop the old server first and make sure that it does not restart: the two would diverge. With --from no acknowledged commit is lost; without, commits after the newest state of the copy are lost."
)]
pub(crate) struct TakeOverArgs {
    /// Folder that `bowshot standby` has kept
    #[arg(value_name = "DIR")]
    copy: PathBuf,
    /// Data folder to make, on the same file system; it must not be there, or be empty
    #[arg(long, value_name = "DIR", env = "BOWSHOT_DATA")]
    data: PathBuf,
    /// Data folder of the server that has ended, if it can still be read: its last state is fetched first
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Configuration file of that server, for the credentials of the object store that has its tables
    #[arg(long, value_name = "FILE", env = "BOWSHOT_CONFIG")]
    config: Option<PathBuf>,
}

/// Follows a data folder until a signal comes.
pub(crate) async fn run_standby(args: StandbyArgs) -> Result<()> {
    let _alone = alone(&args.copy)?;
    let mut signals = Signals::listen()?;
    let mut last: Option<(CommitMark, Instant)> = None;
    loop {
        let mark = CommitMark::read(&args.data);
        if last.as_ref().is_none_or(|(seen, at)| *seen != mark || at.elapsed() > LONGEST) {
            let followed = follow(&args.copy, &args.data, args.config.clone()).await;
            match followed {
                Ok(done) => {
                    told(&done, false)?;
                    last = Some((mark, Instant::now()));
                }
                Err(error) if args.once => return Err(error),
                Err(error) => {
                    if is_ended(&mut signals).await {
                        return Ok(());
                    }
                    crate::sql::say(&format!(
                        "error: {error:#}\nthe copy is behind; the next attempt is in {} s",
                        args.every
                    ));
                }
            }
        }
        if args.once {
            return Ok(());
        }
        tokio::select! {
            _ = signals.next() => return Ok(()),
            () = sleep(Duration::from_secs(args.every)) => {}
        }
    }
}

/// Makes a data folder of the newest state.
pub(crate) async fn run_take_over(args: TakeOverArgs) -> Result<()> {
    let _alone = alone(&args.copy)?;
    // Kept until the end: nobody starts the old server meanwhile.
    let _old = match &args.from {
        Some(from) if !from.is_dir() => {
            let usage = Usage::new(format!("`{}` is not a folder", from.display()));
            return Err(usage
                .with_hint("leave out `--from` to take over from the newest state of the copy")
                .into());
        }
        Some(from) => {
            let lock = locked(from).context("stop the old server first")?;
            told(&follow(&args.copy, from, args.config).await?, false)?;
            Some(lock)
        }
        None => None,
    };
    let Some((_, newest)) = states(&args.copy)?.pop() else {
        let usage = Usage::new(format!("`{}` has no copy of a data folder", args.copy.display()));
        return Err(usage.with_hint("name the folder that `bowshot standby` writes").into());
    };
    let data = args.data;
    let done = until_stopped(move |stop| promote(&newest, &data, stop)).await?;
    told(&done, false)
}

/// Takes the next state, and lets the earlier ones go.
async fn follow(copy: &Path, data: &Path, config: Option<PathBuf>) -> Result<Copied> {
    let earlier = states(copy)?;
    let last = earlier.last();
    let number = last.map_or(0, |(number, _)| *number) + 1;
    let share = last.map_or(Share::Nothing, |(_, path)| Share::With(path.clone()));
    let into = copy.join(format!("{PREFIX}{number:012}"));
    let wanted = Backup { data: data.to_path_buf(), into, share, store: store_of(data, config)? };
    let done = until_stopped(move |stop| backup(&wanted, stop)).await?;
    for (_, path) in &earlier {
        std::fs::remove_dir_all(path).with_context(|| format!("cannot remove `{}`", path.display()))?;
    }
    Ok(done)
}

/// The states of a copy by their numbers, the newest last. What is not whole has another name.
fn states(copy: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let context = || format!("cannot list `{}`", copy.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(copy).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u64>().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// One command at a time works on a copy.
fn alone(copy: &Path) -> Result<data_folder::LockedFolder> {
    locked(copy).context("cannot lock the copy; stop the `bowshot standby` that writes it first")
}

fn locked(folder: &Path) -> Result<data_folder::LockedFolder> {
    data_folder::take(Some(&DataFolder::At(folder.to_path_buf())))
}

/// Whether a signal has come.
async fn is_ended(signals: &mut Signals) -> bool {
    tokio::select! {
        biased;
        _ = signals.next() => true,
        () = ready(()) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::states;

    #[test]
    fn the_newest_state_is_the_last_one() {
        let copy = tempfile::tempdir().unwrap();
        for name in
            ["state-000000000010", "state-000000000009", ".bowshot-unfinished-1", "bowshot.lock", "state-x"]
        {
            std::fs::create_dir(copy.path().join(name)).unwrap();
        }
        let found = states(copy.path()).unwrap();
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [9, 10]);
        assert!(states(&copy.path().join("none")).is_err());
    }
}
