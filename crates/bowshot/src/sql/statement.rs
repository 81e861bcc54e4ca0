//! Runs one statement: start it, write its batches, show progress, and cancel it on the server at Ctrl-C.

use super::interrupt::Interrupts;
use super::output::{Destination, Layout};
use super::progress::Progress;
use super::say;
use anyhow::Result;
use bowshot_api::batch_bytes;
use bowshot_flight::client::{Client, Query};
use futures::StreamExt;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(250);

/// A connection and the settings that statements run with.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) client: Client,
    pub(super) destination: Destination,
    /// Rows that a table shows; 0 for all.
    pub(super) max_rows: usize,
    pub(super) timing: bool,
    /// One line per value instead of one per row.
    pub(super) expanded: bool,
    pub(super) progress: bool,
    pub(super) interrupts: Interrupts,
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Cancelled,
}

impl Runner {
    /// Runs one statement to its end or to Ctrl-C.
    pub(super) async fn run(&self, sql: &str) -> Result<Outcome> {
        self.interrupts.reset();
        let started = Instant::now();
        let query = tokio::select! {
            biased;
            // Dropping the request stops the statement on the server.
            () = self.interrupts.pressed() => return Ok(Outcome::Cancelled),
            query = self.client.execute(sql) => query?,
        };
        let outcome = self.read(&query).await;
        if self.timing {
            say(&format!("time: {:.3} s", started.elapsed().as_secs_f64()));
        }
        outcome
    }

    async fn read(&self, query: &Query) -> Result<Outcome> {
        let layout = Layout { max_rows: self.max_rows, expanded: self.expanded };
        let mut sink = self.destination.open(&query.schema(), layout)?;
        let mut progress =
            Progress::new(self.progress && !self.destination.draws_on_terminal(), query.rows());
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batches = query.batches();
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => {
                    drop(batches);
                    progress.clear();
                    self.cancel(query).await;
                    return Ok(Outcome::Cancelled);
                }
                _ = tick.tick() => progress.show(),
                batch = batches.next() => match batch {
                    Some(Ok(batch)) => {
                        progress.add(batch.num_rows(), batch_bytes(&batch));
                        sink.write(&batch)?;
                    }
                    Some(Err(error)) => {
                        progress.clear();
                        return Err(error.into());
                    }
                    None => break,
                }
            }
        }
        progress.finish();
        let rows = progress.rows();
        let cut = sink.finish()?;
        self.tell_rows(query, rows, cut);
        Ok(Outcome::Done)
    }

    async fn cancel(&self, query: &Query) {
        // Dropping the stream has reset the request already; the server may be done with the query by now.
        if let Err(error) = query.cancel().await {
            say(&format!("the server says about the cancelled query: {error}"));
        }
    }

    fn tell_rows(&self, query: &Query, rows: u64, cut: u64) {
        if !self.destination.is_table() {
            return;
        }
        if query.schema().fields().is_empty() {
            say("done");
        } else if cut > 0 {
            say(&format!("({rows} rows, the last {cut} not shown; --max-rows 0 shows all)"));
        } else {
            say(&format!("({rows} row{})", if rows == 1 { "" } else { "s" }));
        }
    }
}
