//! Runs one statement: writes its batches, shows progress, and cancels it at Ctrl-C.

use super::interrupt::Interrupts;
use super::output::{Destination, Layout};
use super::progress::Progress;
use super::say;
use anyhow::Result;
use bowshot_api::batch_bytes;
use bowshot_flight::client::{Client, Query};
use futures::StreamExt;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::{Interval, MissedTickBehavior};

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
    /// Lines of the screen, at a prompt.
    pub(super) screen_lines: Option<usize>,
    pub(super) progress: bool,
    pub(super) interrupts: Interrupts,
    /// Where the next result goes instead.
    pub(super) next_destination: Option<Destination>,
    /// What was entered last, for the editor.
    pub(super) last: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Cancelled,
}

impl Runner {
    /// Runs one statement whose result may have a destination of its own, which is kept until there is a result.
    pub(super) async fn run_next(&mut self, sql: &str) -> Result<Outcome> {
        let next = self.next_destination.take();
        let usual = next.map(|next| std::mem::replace(&mut self.destination, next));
        let outcome = Box::pin(self.run(sql)).await;
        let Some(usual) = usual else { return outcome };
        let next = std::mem::replace(&mut self.destination, usual);
        match (&outcome, next.path()) {
            (Ok(Outcome::Done), Some(path)) => say(&format!("written to `{}`", path.display())),
            _ => self.next_destination = Some(next),
        }
        outcome
    }

    /// Runs one statement to its end or to Ctrl-C.
    pub(super) async fn run(&self, sql: &str) -> Result<Outcome> {
        self.interrupts.reset();
        let started = Instant::now();
        let mut progress = Progress::new(self.progress && !self.destination.draws_on_terminal());
        let outcome = self.start_and_read(sql, &mut progress).await;
        // Nothing may be written over what follows.
        progress.clear();
        if self.timing {
            say(&format!("time: {:.3} s", started.elapsed().as_secs_f64()));
        }
        if let Err(error) = &outcome
            && let Some(shown) = marked_place(sql, &format!("{error:#}"))
        {
            say(&shown);
        }
        outcome
    }

    async fn start_and_read(&self, sql: &str, progress: &mut Progress) -> Result<Outcome> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut starting = pin!(self.client.execute(sql));
        loop {
            tokio::select! {
                biased;
                // Dropping the request stops the statement on the server.
                () = self.interrupts.pressed() => return Ok(Outcome::Cancelled),
                _ = tick.tick() => progress.show(),
                query = &mut starting => return self.read(&query?, tick, progress).await,
            }
        }
    }

    async fn read(&self, query: &Query, mut tick: Interval, progress: &mut Progress) -> Result<Outcome> {
        let mut sink = self.destination.open(&query.schema(), self.layout(self.max_rows))?;
        progress.expect_rows(query.rows());
        let mut batches = query.batches();
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => {
                    cancel(query).await;
                    return Ok(Outcome::Cancelled);
                }
                _ = tick.tick() => progress.show(),
                batch = batches.next() => match batch.transpose()? {
                    Some(batch) => {
                        progress.add(batch.num_rows(), batch_bytes(&batch));
                        sink.write(&batch)?;
                    }
                    None => break,
                }
            }
        }
        progress.finish();
        let cut = sink.finish()?;
        self.tell_rows(query, progress.rows(), cut);
        Ok(Outcome::Done)
    }

    /// How a table looks of which so many rows are shown, 0 for all.
    pub(super) fn layout(&self, max_rows: usize) -> Layout {
        Layout { max_rows, expanded: self.expanded, screen_lines: self.screen_lines }
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

/// Tells the server to stop. It may be done with the query by now.
async fn cancel(query: &Query) {
    match query.cancel().await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => say(&format!("cannot cancel the statement: {error}")),
    }
}

/// The line of the statement that an error is about, and a caret below the place in it.
fn marked_place(sql: &str, message: &str) -> Option<String> {
    let place = message.rsplit(" at line ").next().filter(|rest| rest.len() < message.len())?;
    let (line, rest) = place.split_once(", column ")?;
    let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let text = sql.lines().nth(line.checked_sub(1)?)?;
    // Tabs stay tabs, so that the caret is below what it means.
    let before = text.chars().take(column.checked_sub(1)?);
    let blank: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    Some(format!("{text}\n{blank}^"))
}
