//! Signals: SIGTERM and SIGINT stop the server, SIGHUP reads files again.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

/// The signals that ask the process to end.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
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

/// The signal that asks the process to read files again. Whoever listens hears all of them.
#[derive(Debug)]
pub(crate) struct Hangups(Option<Signal>);

impl Hangups {
    /// From now on the signal no longer ends the process. Where it cannot be listened to, it does as before.
    pub(crate) fn listen() -> Self {
        let listened = signal(SignalKind::hangup());
        if let Err(error) = &listened {
            tracing::warn!(%error, "SIGHUP cannot be listened to");
        }
        Self(listened.ok())
    }

    /// Waits for the next one, or so long.
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
