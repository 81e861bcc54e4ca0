//! The end of a file, where it says what is in it: its types, its stripes and how they are packed.

use crate::decompression::{Codec, MAX_BLOCK_BYTES};
use crate::error::corrupt;
use crate::messages::{self, ColumnStatistics, Footer, StripeInformation, decode};
use crate::stream::{Packing, Stream};
use crate::types::{self, Kind, Node};
use crate::{Error, Source};
use arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use std::ops::Range;
use std::sync::Arc;

const MAGIC: &[u8] = b"ORC";

/// Bytes of an unpacked footer.
const MAX_FOOTER_BYTES: usize = 256 << 20;

/// Bytes of blocks, if the file does not say.
const DEFAULT_BLOCK_BYTES: u64 = 256 << 10;

/// Milliseconds around 1970 that nanoseconds of 64 bits reach, a day less because of time zones.
const NANOSECONDS_REACH_MS: u64 = 9_223_372_036_854 - 86_400_000;

/// What a file says about itself.
#[derive(Debug)]
pub struct OrcFile {
    columns: SchemaRef,
    pub(crate) nodes: Vec<Node>,
    rows: u64,
    pub(crate) stripes: Vec<StripeInformation>,
    pub(crate) packing: Packing,
}

impl OrcFile {
    /// Reads the end of a file.
    ///
    /// # Errors
    ///
    /// If the file is none of ORC, contradicts itself, or has what is not read.
    pub fn open(source: &Arc<dyn Source>) -> Result<Self, Error> {
        let (script, end) = PostScript::read(source.as_ref())?;
        let start = end.checked_sub(script.footer_bytes);
        let start = start.ok_or_else(|| corrupt("its footer is longer than the file"))?;
        let footer = Stream::new(source, script.packing, start..end).read_all(MAX_FOOTER_BYTES)?;
        let footer: Footer = decode(&footer)?;
        if footer.encryption.is_some() {
            return Err(Error::Unsupported("columns that are encrypted".to_owned()));
        }
        let root = types::tree(&footer.types, |id| unit(footer.statistics.get(id)))?;
        let children = match root.kind {
            Kind::Struct(children) => children,
            _ => vec![("value".to_owned(), root)],
        };
        check(&footer, start)?;
        let columns = Arc::new(Schema::new(types::fields(&children)));
        let nodes = children.into_iter().map(|(_, node)| node).collect();
        Ok(Self {
            columns,
            nodes,
            rows: footer.number_of_rows,
            stripes: footer.stripes,
            packing: script.packing,
        })
    }

    /// The columns of the file.
    #[must_use]
    pub fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// What stands at the very end, and tells how to read what is before it.
struct PostScript {
    footer_bytes: u64,
    packing: Packing,
}

impl PostScript {
    /// With the place where the footer ends.
    fn read(source: &dyn Source) -> Result<(Self, u64), Error> {
        let none = || corrupt("it is no ORC file");
        let last = source.size().checked_sub(1).ok_or_else(none)?;
        let length = source.read(last..last + 1)?.first().copied().unwrap_or(0);
        let start = last.checked_sub(u64::from(length)).ok_or_else(none)?;
        let bytes = source.read(start..last)?;
        let script: messages::PostScript = decode(&bytes).map_err(|_| none())?;
        let codec = Codec::of(script.compression)?;
        let block = script.compression_block_size.unwrap_or(DEFAULT_BLOCK_BYTES);
        // Those of the first writers have it at their beginning only.
        if script.magic != MAGIC && source.size() >= 3 && source.read(0..3)? != MAGIC {
            return Err(none());
        }
        if codec.is_some() && block > MAX_BLOCK_BYTES {
            return Err(corrupt("its blocks are longer than blocks are"));
        }
        let block_bytes = usize::try_from(block).unwrap_or(usize::MAX);
        let packing = Packing { codec, block_bytes };
        Ok((Self { footer_bytes: script.footer_length, packing }, start))
    }
}

/// Nanoseconds, unless the statistics of a column say that they do not reach.
fn unit(statistics: Option<&ColumnStatistics>) -> TimeUnit {
    let bounds = statistics.and_then(|column| column.timestamp.as_ref());
    let is_wide = bounds.is_some_and(|bounds| {
        let bounds = [bounds.minimum, bounds.maximum, bounds.minimum_utc, bounds.maximum_utc];
        bounds.iter().any(|bound| bound.unsigned_abs() > NANOSECONDS_REACH_MS)
    });
    if is_wide { TimeUnit::Microsecond } else { TimeUnit::Nanosecond }
}

/// Whether the stripes lie before `end` and have all rows.
fn check(footer: &Footer, end: u64) -> Result<(), Error> {
    if !footer.stripes.iter().all(|stripe| range(stripe).is_some_and(|range| range.end <= end)) {
        return Err(corrupt("a stripe of it is longer than the file"));
    }
    let mut counts = footer.stripes.iter().map(|stripe| stripe.number_of_rows);
    match counts.try_fold(0_u64, u64::checked_add) == Some(footer.number_of_rows) {
        true => Ok(()),
        false => Err(corrupt("its stripes have other numbers of rows than the file says")),
    }
}

/// The bytes of a stripe; none if there are no such numbers.
fn range(stripe: &StripeInformation) -> Option<Range<u64>> {
    let bytes = stripe.index_length.checked_add(stripe.data_length)?.checked_add(stripe.footer_length)?;
    Some(stripe.offset..stripe.offset.checked_add(bytes)?)
}
