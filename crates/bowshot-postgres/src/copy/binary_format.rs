//! Parses the binary format of COPY, in pieces of any size. Lengths are checked against the bytes that have come.

use super::output::SIGNATURE;
use super::text_format::{Fields, Record};
use crate::status::Failure;
use bytes::{Buf, Bytes, BytesMut};

/// Parses the binary format of COPY.
pub(super) struct Tuples {
    pending: BytesMut,
    begun: bool,
    longest: usize,
}

/// The flag for OIDs before the rows, which PostgreSQL no longer supports.
const WITH_OIDS: i32 = 1 << 16;

fn malformed() -> Failure {
    Failure::new("22P04", "the data of COPY is not in PostgreSQL's binary form")
}

impl Tuples {
    pub(super) fn new(longest: usize) -> Self {
        Self { pending: BytesMut::new(), begun: false, longest }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.pending.len().saturating_add(bytes.len()) > self.longest.saturating_mul(2) {
            let message = format!("a row of COPY is longer than {} bytes", self.longest);
            return Err(Failure::new("54000", message).with_hint("raise `limits.max_message_bytes`"));
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// The next row; `last` says that nothing follows.
    pub(super) fn next(&mut self, last: bool) -> Result<Record, Failure> {
        if !self.begun {
            match head(&self.pending)? {
                Some(length) => {
                    self.pending.advance(length);
                    self.begun = true;
                }
                None if last => return Err(malformed()),
                None => return Ok(Record::Cut),
            }
        }
        match tuple(&self.pending)? {
            Some((length, None)) => {
                self.pending.advance(length);
                Ok(Record::End)
            }
            Some((length, Some(places))) => {
                let bytes: Bytes = self.pending.split_to(length).freeze();
                let value = |place: std::ops::Range<usize>| bytes.get(place).unwrap_or_default().to_vec();
                let fields: Fields = places.into_iter().map(|place| place.map(value)).collect();
                Ok(Record::Fields(fields))
            }
            None if last && !self.pending.is_empty() => Err(malformed()),
            None => Ok(Record::Cut),
        }
    }
}

/// The length of the header.
fn head(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes.get(..known) != SIGNATURE.get(..known) {
        return Err(malformed());
    }
    let Some(mut rest) = bytes.get(SIGNATURE.len()..) else { return Ok(None) };
    let (Ok(flags), Ok(extension)) = (rest.try_get_i32(), rest.try_get_i32()) else { return Ok(None) };
    if flags & (WITH_OIDS | !0xffff) != 0 {
        return Err(malformed());
    }
    let extension = usize::try_from(extension).map_err(|_| malformed())?;
    let length = SIGNATURE.len() + 8 + extension;
    Ok((bytes.len() >= length).then_some(length))
}

/// The ranges of the fields of a row; `None` at the end of the data.
type FieldRanges = Option<Vec<Option<std::ops::Range<usize>>>>;

fn tuple(bytes: &[u8]) -> Result<Option<(usize, FieldRanges)>, Failure> {
    let mut rest = bytes;
    let Ok(count) = rest.try_get_i16() else { return Ok(None) };
    if count == -1 {
        return Ok(Some((2, None)));
    }
    let count = usize::try_from(count).map_err(|_| malformed())?;
    let mut places = Vec::new();
    for _ in 0..count {
        let Ok(length) = rest.try_get_i32() else { return Ok(None) };
        let start = bytes.len() - rest.len();
        match (length, usize::try_from(length)) {
            (-1, _) => places.push(None),
            (_, Ok(length)) if length <= rest.len() => {
                places.push(Some(start..start + length));
                rest = rest.get(length..).unwrap_or_default();
            }
            (_, Ok(_)) => return Ok(None),
            (_, Err(_)) => return Err(malformed()),
        }
    }
    Ok(Some((bytes.len() - rest.len(), Some(places))))
}
