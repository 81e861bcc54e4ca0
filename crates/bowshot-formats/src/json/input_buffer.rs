//! A buffer of input that grows up to a limit while a value does not fit in it.

use std::io::{self, Read};

const FIRST_BYTES: usize = 256 << 10;

pub(super) struct Window {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    filled: usize,
    /// Where the next value is looked for.
    pub(super) at: usize,
    /// Whether the text ends with the window.
    pub(super) last: bool,
    /// Lines that end before that place.
    pub(super) lines: u64,
    max_bytes: usize,
}

#[derive(Debug)]
pub(super) enum Stop {
    Reading(io::Error),
    TooLong(usize),
}

impl Window {
    pub(super) fn new(source: Box<dyn Read + Send>, max_bytes: usize) -> Self {
        Self { source, buffer: Vec::new(), filled: 0, at: 0, last: false, lines: 0, max_bytes }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Lines that end before a place of the window.
    pub(super) fn lines_before(&self, place: usize) -> u64 {
        let passed = self.buffer.get(self.at..place).unwrap_or_default();
        self.lines + memchr::memchr_iter(b'\n', passed).count() as u64
    }

    pub(super) fn advance(&mut self, place: usize) {
        self.lines = self.lines_before(place);
        self.at = place;
    }

    /// Behind the line of a place.
    pub(super) fn line_end(&self, place: usize) -> Option<usize> {
        let rest = self.bytes().get(place..)?;
        match memchr::memchr(b'\n', rest) {
            Some(found) => Some(place + found + 1),
            None => self.last.then_some(self.filled),
        }
    }

    /// Reads on, until the window has at least twice as much of what begins at its place. What it has before that is gone.
    pub(super) fn fill(&mut self) -> Result<(), Stop> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled > self.max_bytes {
            return Err(Stop::TooLong(self.max_bytes));
        }
        let wanted = FIRST_BYTES.max(self.filled * 2);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        // As long as there is room: who begins a value again each time that some bytes come, does so too often.
        while self.filled < self.buffer.len() {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => {
                    self.last = true;
                    break;
                }
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Reading(error)),
            }
        }
        Ok(())
    }
}
