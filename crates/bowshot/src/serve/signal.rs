//! Signals: SIGTERM and SIGINT stop the server, SIGHUP reads files again.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

/// The signals that end the process.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Handles these signals from now on.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot install the signal handlers");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The signal to read files again.
#[derive(Debug)]
pub(crate) struct Hangups(Option<Signal>);

impl Hangups {
    /// Handles the signal from now on, if the system supports it.
    pub(crate) fn listen() -> Self {
        let listened = signal(SignalKind::hangup());
        if let Err(error) = &listened {
            tracing::warn!(%error, "cannot handle SIGHUP");
        }
        Self(listened.ok())
    }

    /// Waits for the next one, or for a timeout.
    pub(crate) async fn or_after(&mut self, interval: Duration) {
        match &mut self.0 {
            Some(signal) => {
                tokio::select! {
                    _ = signal.recv() => {}
                    () = sleep(interval) => {}
                }
            }
            None => sleep(interval).await,
        }
    }
}
