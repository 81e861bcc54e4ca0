//! The cells of a sheet, written as separated values while they are read: one row of the sheet on each line.

use super::workbook::Workbook;
use super::xml::{Part, Parts, Tag};
use std::io::{self, Read};

/// Columns and rows that a sheet can have.
const MAX_COLUMNS: usize = 16_384;
const MAX_ROWS: u64 = 1_048_576;

pub(super) struct Text {
    parts: Parts,
    book: Workbook,
    /// What was written and not read yet.
    text: Vec<u8>,
    at: usize,
    rows: u64,
    /// Rows without a value right above the next one.
    blank: usize,
    done: bool,
}

impl Text {
    pub(super) fn new(bytes: Box<dyn Read + Send>, book: Workbook) -> Self {
        Self { parts: Parts::new(bytes), book, text: Vec::new(), at: 0, rows: 0, blank: 0, done: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        while self.text.is_empty() && !self.done {
            match self.parts.next()? {
                Part::Open(tag) if tag.name == b"row" => self.row(&tag)?,
                // What follows is about how the sheet looks.
                Part::Close(name) if name == b"sheetData" => self.done = true,
                Part::End => return Err(io::ErrorKind::UnexpectedEof.into()),
                Part::Open(tag) if tag.name == b"sheetData" && tag.empty => self.done = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn row(&mut self, row: &Tag) -> io::Result<()> {
        let number = row.get("r").and_then(|number| number.parse().ok()).unwrap_or(self.rows + 1);
        if number <= self.rows || number > MAX_ROWS {
            return Err(io::Error::other("its rows are out of order"));
        }
        // Rows without cells need not be there. Lines have the numbers of rows all the same.
        self.blank += (number - self.rows - 1) as usize;
        self.rows = number;
        self.text.extend(std::iter::repeat_n(b'\n', self.blank));
        let mut columns = 0;
        if !row.empty {
            loop {
                match self.parts.next()? {
                    Part::Open(tag) if tag.name == b"c" => columns = self.cell(&tag, columns)?,
                    Part::Close(name) if name == b"row" => break,
                    Part::End => return Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => {}
                }
            }
        }
        if self.text.len() == self.blank {
            // Those behind the last row with a value have a format at most.
            self.text.clear();
            self.blank += 1;
            return Ok(());
        }
        self.blank = 0;
        self.text.push(b'\n');
        Ok(())
    }

    /// Writes a cell, and gives the number of cells of its row so far.
    fn cell(&mut self, cell: &Tag, before: usize) -> io::Result<usize> {
        let place = cell.get("r").and_then(column).unwrap_or(before);
        if place < before || place >= MAX_COLUMNS {
            return Err(io::Error::other("its cells are out of order"));
        }
        let (mut value, mut inline) = (None, None);
        if !cell.empty {
            loop {
                match self.parts.next()? {
                    Part::Open(tag) if tag.name == b"v" && !tag.empty => {
                        value = Some(self.parts.text_within()?)
                    }
                    Part::Open(tag) if tag.name == b"is" && !tag.empty => {
                        inline = Some(self.parts.text_within()?)
                    }
                    Part::Open(tag) if !tag.empty && tag.name == b"f" => {
                        self.parts.text_within()?;
                    }
                    Part::Close(name) if name == b"c" => break,
                    Part::End => return Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => {}
                }
            }
        }
        // A value behind the first has a comma before it.
        let commas = if before == 0 { place } else { place - before + 1 };
        self.text.extend(std::iter::repeat_n(b',', commas));
        match (cell.get("t"), value, inline) {
            (_, _, Some(text)) => self.quoted(&text),
            (Some("s"), Some(place), None) => {
                let text = self.book.shared(&place).map(str::to_owned);
                self.quoted(
                    &text.ok_or_else(|| io::Error::other("a cell refers to a missing shared string"))?,
                );
            }
            (Some("str"), Some(text), None) => self.quoted(&text),
            (Some("b"), Some(truth), None) => {
                self.text.extend_from_slice(if truth.trim() == "1" { b"true" } else { b"false" });
            }
            // An error is no value.
            (Some("e"), ..) | (_, None, None) => {}
            (_, Some(number), None) => {
                let moment = self.book.moment(&number, cell.get("s"));
                self.text.extend_from_slice(moment.as_deref().unwrap_or(number.trim()).as_bytes());
            }
        }
        Ok(place + 1)
    }

    fn quoted(&mut self, text: &str) {
        self.text.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                self.text.push(b'"');
            }
            self.text.push(byte);
        }
        self.text.push(b'"');
    }
}

/// The place of the column in the name of a cell: `B7` is in the second.
fn column(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let mut place = 0_usize;
    for letter in letters {
        place = place.checked_mul(26)?.checked_add(usize::from(letter.to_ascii_uppercase() - b'A') + 1)?;
    }
    place.checked_sub(1)
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() && !self.done {
            self.fill()?;
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
