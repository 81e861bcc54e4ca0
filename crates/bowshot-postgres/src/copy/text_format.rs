//! Parses the text and CSV formats of COPY, in pieces of any size. A record is parsed when it is complete, and no byte is
//! searched twice for its end.

use crate::status::Failure;
use bowshot_sql::postgres::{CopyForm, CopyOptions};
use bytes::{Buf, BytesMut};

/// Parses the text and CSV formats of COPY.
pub(super) struct Lines {
    pending: BytesMut,
    /// Bytes that have been searched for the end of the record.
    searched: usize,
    quoted: bool,
    longest: usize,
}

/// The fields of a record; `None` is null.
pub(super) type Fields = Vec<Option<Vec<u8>>>;

/// The next record.
#[derive(Debug, PartialEq)]
pub(super) enum Record {
    Fields(Fields),
    /// `\.`, the end of the data.
    End,
    /// It is not complete yet.
    Cut,
}

impl Lines {
    pub(super) fn new(longest: usize) -> Self {
        Self { pending: BytesMut::new(), searched: 0, quoted: false, longest }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.pending.len().saturating_add(bytes.len()) > self.longest.saturating_mul(2) {
            let message = format!("a record of COPY is longer than {} bytes", self.longest);
            return Err(Failure::new("54000", message).with_hint("raise `limits.max_message_bytes`"));
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// The next record; `last` says that nothing follows.
    pub(super) fn next(&mut self, options: &CopyOptions, last: bool) -> Result<Record, Failure> {
        let Some(length) = self.end(options) else {
            if !last || self.pending.is_empty() {
                return Ok(Record::Cut);
            }
            if self.quoted {
                return Err(Failure::new("22P04", "unterminated CSV quoted field"));
            }
            let line = self.pending.split();
            self.searched = 0;
            return fields(&line, options);
        };
        let line = self.pending.split_to(length);
        self.pending.advance(1);
        self.searched = 0;
        fields(&line, options)
    }

    /// The end of the record.
    fn end(&mut self, options: &CopyOptions) -> Option<usize> {
        while let Some(byte) = self.pending.get(self.searched) {
            match (options.form, *byte) {
                (_, b'\n') if !self.quoted => return Some(self.searched),
                // A backslash escapes the next byte, also the end of a line.
                (CopyForm::Text, b'\\') => {
                    if self.searched + 1 >= self.pending.len() {
                        return None;
                    }
                    self.searched += 1;
                }
                (CopyForm::Csv, byte)
                    if self.quoted && byte == options.escape && options.escape != options.quote =>
                {
                    if self.searched + 1 >= self.pending.len() {
                        return None;
                    }
                    self.searched += 1;
                }
                (CopyForm::Csv, byte) if byte == options.quote => self.quoted = !self.quoted,
                _ => {}
            }
            self.searched += 1;
        }
        None
    }
}

fn fields(line: &[u8], options: &CopyOptions) -> Result<Record, Failure> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line == br"\." {
        return Ok(Record::End);
    }
    let fields = match options.form {
        CopyForm::Csv => csv(line, options)?,
        CopyForm::Text | CopyForm::Binary => text(line, options),
    };
    Ok(Record::Fields(fields))
}

fn text(line: &[u8], options: &CopyOptions) -> Fields {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut at = 0;
    loop {
        match line.get(at) {
            Some(b'\\') => {
                at += 2;
                continue;
            }
            Some(byte) if *byte != options.delimiter => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let raw = line.get(start..at.min(line.len())).unwrap_or_default();
        fields.push((raw != options.null.as_bytes()).then(|| unescaped(raw)));
        if at >= line.len() {
            return fields;
        }
        at += 1;
        start = at;
    }
}

/// Escapes such as `\n`, `\101` and `\x41`; any other byte after a backslash is itself.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((letter, after)) = rest.split_first() else {
            out.push(b'\\');
            break;
        };
        rest = after;
        out.push(match letter {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => number(letter - b'0', &mut rest, 8, 2),
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => number(0, &mut rest, 16, 2),
            other => *other,
        });
    }
    out
}

fn number(first: u8, rest: &mut &[u8], base: u8, most: usize) -> u8 {
    let mut value = first;
    for _ in 0..most {
        let digit = rest.first().and_then(|byte| char::from(*byte).to_digit(u32::from(base)));
        let Some(digit) = digit.and_then(|digit| u8::try_from(digit).ok()) else { break };
        value = value.wrapping_mul(base).wrapping_add(digit);
        *rest = rest.get(1..).unwrap_or_default();
    }
    value
}

fn csv(line: &[u8], options: &CopyOptions) -> Result<Fields, Failure> {
    let mut fields = Vec::new();
    let (mut field, mut quoted, mut was_quoted) = (Vec::new(), false, false);
    let mut bytes = line.iter().copied().peekable();
    loop {
        match bytes.next() {
            None if quoted => return Err(Failure::new("22P04", "unterminated CSV quoted field")),
            Some(byte) if quoted && byte == options.escape => {
                match bytes.next_if(|next| *next == options.quote || *next == options.escape) {
                    Some(next) => field.push(next),
                    None if options.escape == options.quote => quoted = false,
                    None => field.push(byte),
                }
            }
            Some(byte) if byte == options.quote => {
                quoted = !quoted;
                was_quoted = true;
            }
            Some(byte) if quoted || byte != options.delimiter => field.push(byte),
            end => {
                let value = std::mem::take(&mut field);
                fields.push((was_quoted || value != options.null.as_bytes()).then_some(value));
                was_quoted = false;
                if end.is_none() {
                    return Ok(fields);
                }
            }
        }
    }
}
