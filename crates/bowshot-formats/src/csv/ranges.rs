//! Whether a file of separated values may be cut into ranges: only where each line end ends a record.

use super::dialect::Dialect;
use crate::data_file::DataFile;
use bowshot_object_store::Error;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

/// Whether a quoted value spans lines, so that the file cannot be cut into ranges. Reads the whole file once.
pub(crate) fn quoted_newlines(file: &Arc<DataFile>, dialect: &Dialect) -> Result<bool, Error> {
    let Some(quote) = dialect.quote else { return Ok(false) };
    let reader = file.reader(0);
    let fault = reader.fault();
    let mut bytes = BufReader::with_capacity(1 << 20, reader);
    let mut scan =
        QuoteScan { delimiter: dialect.delimiter, quote, quoted: false, before: b'\n', closing: false };
    loop {
        let count = match bytes.fill_buf() {
            Ok([]) => return Ok(false),
            Ok(chunk) if scan.feed(chunk) => return Ok(true),
            Ok(chunk) => chunk.len(),
            Err(error) => {
                return Err(fault.get().cloned().unwrap_or_else(|| Error::io(file.path(), error)));
            }
        };
        bytes.consume(count);
    }
}

/// Quotes open a value only at its start; inside, a doubled quote is one character.
struct QuoteScan {
    delimiter: u8,
    quote: u8,
    quoted: bool,
    before: u8,
    /// A quote ended the last chunk inside a value: the next byte decides whether it closed the value.
    closing: bool,
}

impl QuoteScan {
    fn feed(&mut self, chunk: &[u8]) -> bool {
        let mut at = 0;
        if self.closing {
            self.closing = false;
            if chunk.first() == Some(&self.quote) {
                at = 1;
            } else {
                self.quoted = false;
            }
        }
        while let Some(found) = chunk.get(at..).and_then(|rest| memchr::memchr(self.quote, rest)) {
            let quote = at + found;
            if self.quoted {
                if memchr::memchr(b'\n', &chunk[at..quote]).is_some() {
                    return true;
                }
                match chunk.get(quote + 1) {
                    Some(next) if *next == self.quote => at = quote + 2,
                    Some(_) => {
                        self.quoted = false;
                        at = quote + 1;
                    }
                    None => {
                        self.closing = true;
                        at = quote + 1;
                    }
                }
            } else {
                let before = if quote == 0 { self.before } else { chunk[quote - 1] };
                self.quoted = before == self.delimiter || before == b'\n' || before == b'\r';
                at = quote + 1;
            }
        }
        self.before = chunk.last().copied().unwrap_or(self.before);
        self.quoted && !self.closing && memchr::memchr(b'\n', chunk.get(at..).unwrap_or(&[])).is_some()
    }
}
