//! Places in a text: from the lines and columns of the tokenizer to bytes.

use sqlparser::tokenizer::Location;

/// Byte offsets of places that the tokenizer gives as line and column, both from 1, columns in characters. The text is walked
/// once, so the places have to come in their order.
#[derive(Debug)]
pub struct Offsets<'sql> {
    rest: &'sql str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'sql> Offsets<'sql> {
    /// Of places in this text.
    pub fn new(sql: &'sql str) -> Self {
        Self { rest: sql, at: 0, line: 1, column: 1 }
    }

    /// `None` for a place that is not in the text, or before one that was asked for.
    pub fn of(&mut self, place: Location) -> Option<usize> {
        while (self.line, self.column) < (place.line, place.column) {
            let mut characters = self.rest.chars();
            let next = characters.next()?;
            self.rest = characters.as_str();
            self.at += next.len_utf8();
            (self.line, self.column) =
                if next == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        ((self.line, self.column) == (place.line, place.column)).then_some(self.at)
    }
}
