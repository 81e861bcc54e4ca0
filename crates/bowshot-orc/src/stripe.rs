//! One stripe: where its streams are, how its columns are encoded, and the time zone of its writer.

use crate::bytewise::Bits;
use crate::error::corrupt;
use crate::integers::Integers;
use crate::protobuf::Fields;
use crate::stream::{Packing, Stream};
use crate::tail::{OrcFile, StripePlace};
use crate::{Error, Source};
use chrono_tz::Tz;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an unpacked footer of a stripe.
const MAX_FOOTER_BYTES: usize = 64 << 20;

/// What a stream is of its column, by the numbers of the format.
pub(crate) const PRESENT: u64 = 0;
pub(crate) const DATA: u64 = 1;
pub(crate) const LENGTH: u64 = 2;
pub(crate) const DICTIONARY: u64 = 3;
pub(crate) const SECONDARY: u64 = 5;

/// See the module.
pub(crate) struct Stripe {
    source: Arc<dyn Source>,
    packing: Packing,
    streams: HashMap<(usize, u64), Range<u64>>,
    encodings: Vec<Encoding>,
    /// The zone of points in time that have none; `None` is UTC.
    pub(crate) zone: Option<Tz>,
}

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Encoding {
    pub(crate) dictionary: bool,
    /// The second version of run lengths.
    pub(crate) second: bool,
    pub(crate) words: u64,
}

impl Stripe {
    pub(crate) fn open(file: &OrcFile, source: &Arc<dyn Source>, place: &StripePlace) -> Result<Self, Error> {
        // The places were held against the file's length: their sums are numbers.
        let end = place.offset + place.index_bytes + place.data_bytes;
        let footer = Stream::new(source, file.packing, end..end + place.footer_bytes);
        let footer = { footer }.read_all(MAX_FOOTER_BYTES)?;
        let (source, packing) = (Arc::clone(source), file.packing);
        let (streams, encodings) = (HashMap::new(), Vec::new());
        let mut stripe = Self { source, packing, streams, encodings, zone: None };
        let mut at = place.offset;
        for field in Fields(&footer) {
            match field? {
                (1, value) => stripe.add(value.bytes()?, &mut at, end)?,
                (2, value) => stripe.encodings.push(Encoding::read(value.bytes()?)?),
                (3, value) => stripe.zone = zone(&value.text()?)?,
                _ => {}
            }
        }
        Ok(stripe)
    }

    /// Streams lie one behind the other.
    fn add(&mut self, stream: &[u8], at: &mut u64, end: u64) -> Result<(), Error> {
        let (mut kind, mut column, mut length) = (0, 0, 0);
        for field in Fields(stream) {
            match field? {
                (1, value) => kind = value.number()?,
                (2, value) => column = value.number()?,
                (3, value) => length = value.number()?,
                _ => {}
            }
        }
        let behind = at.checked_add(length).filter(|behind| *behind <= end);
        let behind = behind.ok_or_else(|| corrupt("a stream is longer than its stripe"))?;
        if let (Ok(column), true) = (usize::try_from(column), length > 0) {
            self.streams.insert((column, kind), *at..behind);
        }
        *at = behind;
        Ok(())
    }

    pub(crate) fn encoding(&self, column: usize) -> Result<Encoding, Error> {
        let encoding = self.encodings.get(column).copied();
        encoding.ok_or_else(|| corrupt("a stripe does not say how a column is written"))
    }

    /// A stream of a column. A writer leaves out those that have no values.
    pub(crate) fn stream(&self, column: usize, kind: u64) -> Stream {
        match self.streams.get(&(column, kind)) {
            Some(range) => Stream::new(&self.source, self.packing, range.clone()),
            None => Stream::empty(&self.source, self.packing),
        }
    }

    pub(crate) fn integers(&self, column: usize, kind: u64, signed: bool) -> Result<Integers, Error> {
        Ok(Integers::new(self.stream(column, kind), self.encoding(column)?.second, signed))
    }

    /// Which rows have a value, unless all have.
    pub(crate) fn present(&self, column: usize) -> Option<Bits> {
        let there = self.streams.contains_key(&(column, PRESENT));
        there.then(|| Bits::new(self.stream(column, PRESENT)))
    }
}

impl Encoding {
    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut encoding = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => {
                    let kind = value.number()?;
                    if kind > 3 {
                        return Err(corrupt("a column is written in an unknown way"));
                    }
                    (encoding.dictionary, encoding.second) = (kind & 1 == 1, kind & 2 == 2);
                }
                (2, value) => encoding.words = value.number()?,
                _ => {}
            }
        }
        Ok(encoding)
    }
}

fn zone(name: &str) -> Result<Option<Tz>, Error> {
    if matches!(name, "" | "UTC" | "GMT" | "Etc/UTC" | "Etc/GMT" | "Z") {
        return Ok(None);
    }
    let zone = name.parse().map_err(|_| Error::Unsupported(format!("the time zone `{name}`")))?;
    Ok(Some(zone))
}
