//! The log on stderr: lines for people or JSON for machines.

use crate::config::{Config, LogFormat};
use crate::traces::Collected;
use crate::usage::Usage;
use anyhow::Result;
use std::io::IsTerminal;
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

/// Starts the log, and the collecting of traces if the configuration asks for it. To be called once.
///
/// # Errors
/// [`Usage`] when the filter of the configuration, or the headers for the collector, cannot be read.
pub(crate) fn start(config: &Config) -> Result<Option<Collected>> {
    let filter = EnvFilter::builder().parse(&config.log).map_err(|error| {
        Usage::new(format!("the log filter `{}` cannot be used: {error}", config.log)).with_hint(
            "write a level (error, warn, info, debug, trace) or pairs such as `warn,bowshot=debug`",
        )
    })?;
    let filter = QUIET.iter().filter_map(|quiet| quiet.parse().ok()).fold(filter, EnvFilter::add_directive);
    let collected = Collected::begin(&config.traces)?;
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
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
    Ok(collected)
}
