//! The end of a file, where it says what is in it: its types, its stripes and how they are packed.

use crate::error::corrupt;
use crate::protobuf::{Fields, zigzag};
use crate::stream::{Packing, Stream};
use crate::types::{self, Kind, Node, Written};
use crate::unpack::{Codec, MAX_BLOCK_BYTES};
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
const NANOSECONDS_REACH_MS: i64 = 9_223_372_036_854 - 86_400_000;

/// What a file says about itself.
#[derive(Debug)]
pub struct OrcFile {
    columns: SchemaRef,
    pub(crate) nodes: Vec<Node>,
    rows: u64,
    pub(crate) stripes: Vec<StripePlace>,
    pub(crate) packing: Packing,
}

/// Where a stripe is, and how many rows it has.
#[derive(Debug, Default, Clone)]
pub(crate) struct StripePlace {
    pub(crate) offset: u64,
    pub(crate) index_bytes: u64,
    pub(crate) data_bytes: u64,
    pub(crate) footer_bytes: u64,
    pub(crate) rows: u64,
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
        let footer = Footer::read(&footer)?;
        if footer.encrypted {
            return Err(Error::Unsupported("columns that are encrypted".to_owned()));
        }
        let root = types::tree(&footer.types, |id| footer.unit(id))?;
        let children = match root.kind {
            Kind::Struct(children) => children,
            _ => vec![("value".to_owned(), root)],
        };
        footer.check(start)?;
        let columns = Arc::new(Schema::new(types::fields(&children)));
        let nodes = children.into_iter().map(|(_, node)| node).collect();
        Ok(Self { columns, nodes, rows: footer.rows, stripes: footer.stripes, packing: script.packing })
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
        let (mut footer_bytes, mut codec, mut block, mut magic) = (0, None, DEFAULT_BLOCK_BYTES, false);
        for field in Fields(&bytes) {
            match field.map_err(|_| none())? {
                (1, value) => footer_bytes = value.number()?,
                (2, value) => codec = Codec::of(value.number()?)?,
                (3, value) => block = value.number()?,
                (8000, value) => magic = value.bytes()? == MAGIC,
                _ => {}
            }
        }
        // Those of the first writers have it at their beginning only.
        if !magic && source.size() >= 3 && source.read(0..3)? != MAGIC {
            return Err(none());
        }
        if codec.is_some() && block > MAX_BLOCK_BYTES {
            return Err(corrupt("its blocks are longer than blocks are"));
        }
        let block_bytes = usize::try_from(block).unwrap_or(usize::MAX);
        Ok((Self { footer_bytes, packing: Packing { codec, block_bytes } }, start))
    }
}

#[derive(Default)]
struct Footer {
    types: Vec<Written>,
    stripes: Vec<StripePlace>,
    rows: u64,
    encrypted: bool,
    /// Whether the points in time of each column may be outside what nanoseconds reach.
    wide: Vec<bool>,
}

impl Footer {
    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut footer = Self::default();
        for field in Fields(bytes) {
            match field? {
                (3, value) => footer.stripes.push(StripePlace::read(value.bytes()?)?),
                (4, value) => footer.types.push(Written::read(value.bytes()?)?),
                (6, value) => footer.rows = value.number()?,
                (7, value) => footer.wide.push(is_wide(value.bytes()?)?),
                (10, _) => footer.encrypted = true,
                _ => {}
            }
        }
        Ok(footer)
    }

    /// Nanoseconds, unless the file says that they do not reach.
    fn unit(&self, id: usize) -> TimeUnit {
        match self.wide.get(id) {
            Some(true) => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        }
    }

    fn check(&self, end: u64) -> Result<(), Error> {
        if !self.stripes.iter().all(|stripe| stripe.all().is_some_and(|range| range.end <= end)) {
            return Err(corrupt("a stripe of it is longer than the file"));
        }
        let rows = self.stripes.iter().try_fold(0_u64, |rows, stripe| rows.checked_add(stripe.rows));
        match rows == Some(self.rows) {
            true => Ok(()),
            false => Err(corrupt("its stripes have other numbers of rows than the file says")),
        }
    }
}

impl StripePlace {
    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut place = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => place.offset = value.number()?,
                (2, value) => place.index_bytes = value.number()?,
                (3, value) => place.data_bytes = value.number()?,
                (4, value) => place.footer_bytes = value.number()?,
                (5, value) => place.rows = value.number()?,
                _ => {}
            }
        }
        Ok(place)
    }

    /// Its bytes; none if there are no such numbers.
    fn all(&self) -> Option<Range<u64>> {
        let bytes = self.index_bytes.checked_add(self.data_bytes)?.checked_add(self.footer_bytes)?;
        Some(self.offset..self.offset.checked_add(bytes)?)
    }
}

/// Whether statistics of a column have points in time that nanoseconds do not reach.
fn is_wide(statistics: &[u8]) -> Result<bool, Error> {
    let mut wide = false;
    for field in Fields(statistics) {
        if let (9, value) = field? {
            for bound in Fields(value.bytes()?) {
                if let (1..=4, value) = bound? {
                    wide |= zigzag(value.number()?).unsigned_abs() > NANOSECONDS_REACH_MS.unsigned_abs();
                }
            }
        }
    }
    Ok(wide)
}
