//! How a text of separated values is written: what separates, quotes and escapes, and what stands before the header.

use super::sniff::NO_DELIMITER;
use encoding_rs::Encoding;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    pub delimiter: u8,
    pub quote: Option<u8>,
    /// What makes a quote inside of a quoted value a character; the quote itself where it is doubled.
    pub escape: Option<u8>,
    /// Begins lines that are no records.
    pub comment: Option<u8>,
    /// Whether blanks may stand between a delimiter and a quote.
    pub(crate) skip_space: bool,
    /// What ends a line; a return before a line feed belongs to it.
    pub(crate) line_end: u8,
}

impl Dialect {
    pub fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            quote: Some(b'"'),
            escape: Some(b'"'),
            comment: None,
            skip_space: false,
            line_end: b'\n',
        }
    }

    /// Whether a search for quotes alone can tell that no value spans lines.
    pub fn is_plain(&self) -> bool {
        self.line_end == b'\n' && !self.skip_space && self.escape == self.quote
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delim={}", shown(self.delimiter))?;
        match self.quote {
            Some(b'"') => {}
            Some(quote) => write!(f, " quote={}", shown(quote))?,
            None => f.write_str(" quote=none")?,
        }
        if let Some(escape) = self.escape.filter(|_| self.escape != self.quote) {
            write!(f, " escape={}", shown(escape))?;
        }
        if let Some(comment) = self.comment {
            write!(f, " comment={}", shown(comment))?;
        }
        if self.skip_space {
            f.write_str(" blanks before quotes")?;
        }
        if self.line_end == b'\r' {
            f.write_str(" lines end with \\r")?;
        }
        Ok(())
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b'\t' => "\\t".to_owned(),
        NO_DELIMITER => "none".to_owned(),
        byte => format!("'{}'", char::from(byte)),
    }
}

/// What of the text comes before its records, and in which characters it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preamble {
    /// `None`: UTF-8.
    pub encoding: Option<&'static Encoding>,
    /// Bytes of the mark that UTF-8 may begin with.
    pub(crate) mark_bytes: usize,
    /// Lines above the header, or above the first record.
    pub skip: u64,
    pub header: bool,
}
