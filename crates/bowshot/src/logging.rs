//! The log on stderr or in a file: lines for people or JSON for machines.

mod log_file;

use crate::config::{Config, LogFormat};
use crate::serve::Hangups;
use crate::traces::Collected;
use crate::usage::Usage;
use anyhow::{Context, Result};
use log_file::LogFile;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// Whatever is asked for: below these levels, libraries write what nobody may read there. Stores quote addresses with
/// signatures, the parser and the planner quote statements with passwords and tokens, and those of the protocols quote headers
/// and bodies.
const QUIET: [&str; 10] = [
    "object_store=error",
    "sqlparser=info",
    "datafusion=info",
    "h2=info",
    "hyper=info",
    "hyper_util=info",
    "tonic=info",
    "tower=info",
    // Its errors are written with backtraces, and come back as ours.
    "buoyant_kernel=off",
    // Trace spans are not logged.
    "traces=off",
];

/// How often the file is opened again without a signal.
const REOPEN_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) traces: Option<Collected>,
    pub(crate) file: Option<OpenLog>,
}

#[derive(Debug)]
pub(crate) struct OpenLog(Arc<LogFile>);

impl OpenLog {
    /// Opens the file again at each SIGHUP and from time to time, for ever.
    pub(crate) async fn follow(self) {
        let mut hangups = Hangups::listen();
        loop {
            hangups.or_after(REOPEN_INTERVAL).await;
            let file = Arc::clone(&self.0);
            if let Ok(Err(error)) = spawn_blocking(move || file.reopen()).await {
                tracing::error!(file = %self.0.path().display(), %error, "the log file cannot be opened again");
            }
        }
    }
}

/// Starts the log, and the collecting of traces if the configuration asks for it. To be called once.
///
/// # Errors
/// [`Usage`] when the filter of the configuration, or the headers for the collector, cannot be read; others when the file of the
/// log cannot be written to.
pub(crate) fn start(config: &Config) -> Result<Started> {
    let filter = EnvFilter::builder().parse(&config.log).map_err(|error| {
        Usage::new(format!("the log filter `{}` cannot be used: {error}", config.log)).with_hint(
            "write a level (error, warn, info, debug, trace) or pairs such as `warn,bowshot=debug`",
        )
    })?;
    let filter = QUIET.iter().filter_map(|quiet| quiet.parse().ok()).fold(filter, EnvFilter::add_directive);
    let collected = Collected::begin(&config.traces)?;
    let file = open_file(config)?;
    let writer = match &file {
        Some(OpenLog(file)) => BoxMakeWriter::new(Arc::clone(file)),
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let log = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(file.is_none() && std::io::stderr().is_terminal());
    let log = match config.log_format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    // Without traces a single filter is cheapest.
    let started = match &collected {
        None => tracing_subscriber::registry().with(log).with(filter).try_init(),
        Some(collected) => {
            tracing_subscriber::registry().with(log.with_filter(filter)).with(collected.layer()).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("cannot start the log: {error}"))?;
    Ok(Started { traces: collected, file })
}

fn open_file(config: &Config) -> Result<Option<OpenLog>> {
    let Some(path) = config.logged.file.clone() else { return Ok(None) };
    let file = LogFile::open(path.clone(), config.logged.clone());
    let file = file.with_context(|| format!("cannot write to the log file `{}`", path.display()))?;
    Ok(Some(OpenLog(Arc::new(file))))
}
