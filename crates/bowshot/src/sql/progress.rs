//! Progress of a long result on stderr: rows, megabytes, rate.

use super::say;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Results faster than this need no progress.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time between lines where the last line cannot be overwritten.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// Counts what has come, and shows it when asked to.
#[derive(Debug)]
pub(super) struct Progress {
    wanted: bool,
    on_terminal: bool,
    started: Instant,
    last_line: Option<Instant>,
    expected_rows: Option<u64>,
    rows: u64,
    bytes: u64,
}

impl Progress {
    pub(super) fn new(wanted: bool) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let started = Instant::now();
        Self { wanted, on_terminal, started, last_line: None, expected_rows: None, rows: 0, bytes: 0 }
    }

    pub(super) fn expect_rows(&mut self, rows: Option<u64>) {
        self.expected_rows = rows;
    }

    pub(super) fn add(&mut self, rows: usize, bytes: usize) {
        self.rows += rows as u64;
        self.bytes += bytes as u64;
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Shows the state of things, if it is time to.
    pub(super) fn show(&mut self) {
        let waited = self.started.elapsed() >= PATIENCE;
        let due = self.on_terminal || self.last_line.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
        if !self.wanted || !waited || !due {
            return;
        }
        self.last_line = Some(Instant::now());
        let line = self.line();
        if self.on_terminal {
            let mut stderr = std::io::stderr();
            drop(write!(stderr, "\r\x1b[2K{line}").and_then(|()| stderr.flush()));
        } else {
            say(&line);
        }
    }

    /// Removes the line, so that something else can be written.
    pub(super) fn clear(&self) {
        if self.on_terminal && self.last_line.is_some() {
            let mut stderr = std::io::stderr();
            drop(write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush()));
        }
    }

    /// Leaves the totals standing, if anything was shown.
    pub(super) fn finish(&self) {
        self.clear();
        if self.last_line.is_some() {
            say(&self.line());
        }
    }

    fn line(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        if self.rows == 0 {
            return format!("running, {seconds:.1} s");
        }
        let share = match self.expected_rows {
            Some(expected) if expected > 0 => {
                format!("{:.0} %, ", 100.0 * self.rows as f64 / expected as f64)
            }
            _ => String::new(),
        };
        let megabytes = self.bytes as f64 / 1e6;
        format!(
            "{share}{} rows, {megabytes:.1} MB, {:.1} MB/s, {seconds:.1} s",
            self.rows,
            megabytes / seconds.max(1e-9)
        )
    }
}
