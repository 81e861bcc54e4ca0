//! The records of a text, one after the other, from whatever gives its bytes. A record has a limit: few compressed bytes
//! can be a line of any length, and a quote that is never closed takes the rest of the file.

use super::dialect::Dialect;
use super::record::{Fault, Record, Step, Text};
use std::io::{self, Read};

const FIRST_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) enum Trouble {
    Reading(io::Error),
    Broken(Fault),
    TooLong(usize),
}

pub(crate) struct RecordReader {
    source: Box<dyn Read + Send>,
    dialect: Dialect,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are the text's.
    filled: usize,
    at: usize,
    last: bool,
    record: Record,
    /// Lines before the record, and before the next one.
    before: u64,
    lines: u64,
    /// Bytes of the text before the buffer.
    passed: u64,
    /// Whether a line without anything is a record, as it is in a table of one column.
    pub(super) blank_rows: bool,
    /// Whether there was a record: empty lines above the first are none.
    begun: bool,
    max_line_bytes: usize,
}

impl RecordReader {
    /// `begun`: what was read of the source already.
    pub(super) fn new(
        source: Box<dyn Read + Send>,
        begun: Vec<u8>,
        dialect: Dialect,
        max_line_bytes: usize,
    ) -> Self {
        let filled = begun.len();
        Self {
            source,
            dialect,
            buffer: begun,
            filled,
            at: 0,
            last: false,
            record: Record::default(),
            before: 0,
            lines: 0,
            passed: 0,
            blank_rows: false,
            begun: false,
            max_line_bytes,
        }
    }

    /// Goes to the next record; false behind the last.
    pub(crate) fn advance(&mut self) -> Result<bool, Trouble> {
        loop {
            let bytes = self.buffer.get(..self.filled).unwrap_or_default();
            let text = Text { bytes, last: self.last, dialect: &self.dialect };
            match text.record(self.at, &mut self.record) {
                Step::Record(next) => {
                    self.begun = true;
                    self.before = self.lines;
                    self.lines += self.record.lines;
                    self.at = next;
                    return Ok(true);
                }
                Step::Blank(next) => {
                    let above = self.lines;
                    self.lines += 1;
                    self.at = next;
                    if self.blank_rows && self.begun {
                        self.before = above;
                        return Ok(true);
                    }
                }
                Step::Comment(next) => {
                    self.lines += 1;
                    self.at = next;
                }
                Step::End => return Ok(false),
                Step::More => self.fill()?,
                Step::Broken(fault) => {
                    self.before = self.lines;
                    return Err(Trouble::Broken(fault));
                }
            }
        }
    }

    /// Leaves out lines, whatever they hold; also the one that [`Self::advance`] could not read.
    pub(crate) fn skip_lines(&mut self, lines: u64) -> Result<(), Trouble> {
        let mut left = lines;
        while left > 0 {
            let bytes = self.buffer.get(..self.filled).unwrap_or_default();
            match (Text { bytes, last: self.last, dialect: &self.dialect }).line(self.at) {
                Some(next) => {
                    self.at = next;
                    self.lines += 1;
                    left -= 1;
                }
                None if self.last => return Ok(()),
                None => self.fill()?,
            }
            if self.last && self.at >= self.filled {
                return Ok(());
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), Trouble> {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.filled, 0);
            self.passed += self.at as u64;
            self.filled -= self.at;
            self.at = 0;
        }
        if self.filled > self.max_line_bytes {
            return Err(Trouble::TooLong(self.max_line_bytes));
        }
        if self.buffer.len() < FIRST_BYTES.max(self.filled * 2) {
            self.buffer.resize(FIRST_BYTES.max(self.filled * 2), 0);
        }
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.source.read(room) {
            Ok(0) => self.last = true,
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Trouble::Reading(error)),
        }
        Ok(())
    }

    pub(super) fn value(&self, place: usize) -> &[u8] {
        self.record.value(&self.buffer, place)
    }

    pub(crate) fn is_quoted(&self, place: usize) -> bool {
        self.record.is_quoted(place)
    }

    pub(super) fn len(&self) -> usize {
        self.record.len()
    }

    pub(crate) fn lines_before(&self) -> u64 {
        self.before
    }

    pub(super) fn position(&self) -> u64 {
        self.passed + self.at as u64
    }
}
