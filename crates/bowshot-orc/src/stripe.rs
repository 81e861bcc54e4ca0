//! One stripe: where its streams are, how its columns are encoded, and the time zone of its writer.

use crate::byte_rle::Bits;
use crate::error::corrupt;
use crate::footer::OrcFile;
use crate::integer_rle::Integers;
use crate::messages::{self, ColumnEncoding, StripeFooter, StripeInformation, decode};
use crate::stream::{Packing, Stream};
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

pub(crate) struct Stripe {
    source: Arc<dyn Source>,
    packing: Packing,
    streams: HashMap<(usize, u64), Range<u64>>,
    encodings: Vec<Encoding>,
    /// The zone of points in time that have none; `None` is UTC.
    pub(crate) zone: Option<Tz>,
}

/// How the values of a column are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) dictionary: bool,
    /// The second version of run lengths.
    pub(crate) second: bool,
    pub(crate) words: u64,
}

impl Stripe {
    pub(crate) fn open(
        file: &OrcFile,
        source: &Arc<dyn Source>,
        stripe: &StripeInformation,
    ) -> Result<Self, Error> {
        // Where it lies was held against the file's length: these sums are numbers.
        let end = stripe.offset + stripe.index_length + stripe.data_length;
        let mut footer = Stream::new(source, file.packing, end..end + stripe.footer_length);
        let footer: StripeFooter = decode(&footer.read_all(MAX_FOOTER_BYTES)?)?;
        let encodings = footer.columns.iter().map(Encoding::of).collect::<Result<_, _>>()?;
        Ok(Self {
            source: Arc::clone(source),
            packing: file.packing,
            streams: streams(&footer.streams, stripe.offset..end)?,
            encodings,
            zone: zone(&footer.writer_timezone)?,
        })
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
    fn of(column: &ColumnEncoding) -> Result<Self, Error> {
        if column.kind > 3 {
            return Err(corrupt("a column is written in an unknown way"));
        }
        let (dictionary, second) = (column.kind & 1 == 1, column.kind & 2 == 2);
        Ok(Self { dictionary, second, words: column.dictionary_size })
    }
}

/// Where the streams are, which lie one behind the other.
fn streams(
    listed: &[messages::Stream],
    mut rest: Range<u64>,
) -> Result<HashMap<(usize, u64), Range<u64>>, Error> {
    let mut streams = HashMap::new();
    for stream in listed {
        let end = rest.start.checked_add(stream.length).filter(|end| *end <= rest.end);
        let end = end.ok_or_else(|| corrupt("a stream is longer than its stripe"))?;
        if let (Ok(column), true) = (usize::try_from(stream.column), stream.length > 0) {
            streams.insert((column, stream.kind), rest.start..end);
        }
        rest.start = end;
    }
    Ok(streams)
}

fn zone(name: &str) -> Result<Option<Tz>, Error> {
    if matches!(name, "" | "UTC" | "GMT" | "Etc/UTC" | "Etc/GMT" | "Z") {
        return Ok(None);
    }
    let zone = name.parse().map_err(|_| Error::Unsupported(format!("the time zone `{name}`")))?;
    Ok(Some(zone))
}
