//! The log: on stderr, as lines for people or as JSON for machines. Data never goes there, and the log never to stdout.

use crate::config::{Config, LogFormat};
use crate::usage::Usage;
use anyhow::Result;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Whatever is asked for: below these levels, libraries write what nobody may read there. Stores quote addresses with
/// signatures, the parser and the planner quote statements with passwords and tokens, and those of the protocols quote headers
/// and bodies.
const QUIET: [&str; 8] = [
    "object_store=error",
    "sqlparser=info",
    "datafusion=info",
    "h2=info",
    "hyper=info",
    "hyper_util=info",
    "tonic=info",
    "tower=info",
];

/// Starts the log. To be called once.
///
/// # Errors
/// [`Usage`] when the filter of the configuration cannot be read.
pub(crate) fn start(config: &Config) -> Result<()> {
    let filter = EnvFilter::builder().parse(&config.log).map_err(|error| {
        Usage::new(format!("the log filter `{}` cannot be used: {error}", config.log)).with_hint(
            "write a level (error, warn, info, debug, trace) or pairs such as `warn,bowshot=debug`",
        )
    })?;
    let filter = QUIET.iter().filter_map(|quiet| quiet.parse().ok()).fold(filter, EnvFilter::add_directive);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start the log: {error}"))
}
