//! Texts side by side, of which the last ones can be taken back. They are checked to be UTF-8 all at once, when they become
//! an array.

use super::columns::Wrong;
use arrow::array::StringArray;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<i32>,
}

impl Texts {
    /// False if there is no room for more.
    pub(super) fn push(&mut self, text: &[u8]) -> bool {
        self.push_with(|bytes| bytes.extend_from_slice(text))
    }

    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        write(&mut self.bytes);
        match i32::try_from(self.bytes.len()) {
            Ok(end) => self.ends.push(end),
            Err(_) => {
                self.bytes.truncate(before);
                return false;
            }
        }
        true
    }

    /// Empty texts up to a number of them.
    pub(super) fn pad(&mut self, count: usize) {
        let end = self.ends.last().copied().unwrap_or(0);
        self.ends.resize(count.max(self.ends.len()), end);
    }

    pub(super) fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(usize::try_from(self.ends.last().copied().unwrap_or(0)).unwrap_or(0));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let place = |at: i32| usize::try_from(at).unwrap_or(0);
        starts
            .zip(&self.ends)
            .map(move |(start, end)| self.bytes.get(place(start)..place(*end)).unwrap_or_default())
    }

    pub(super) fn finish(self, nulls: Option<NullBuffer>) -> Result<StringArray, Wrong> {
        let mut ends = Vec::with_capacity(self.ends.len() + 1);
        ends.push(0);
        ends.extend_from_slice(&self.ends);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let bytes = Buffer::from_vec(self.bytes);
        StringArray::try_new(offsets, bytes.clone(), nulls).map_err(|error| {
            let texts = Self { bytes: bytes.to_vec(), ends: self.ends };
            match texts.iter().position(|text| std::str::from_utf8(text).is_err()) {
                None => Wrong::from(error),
                row => Wrong { row, detail: "invalid UTF-8".to_owned() },
            }
        })
    }
}
