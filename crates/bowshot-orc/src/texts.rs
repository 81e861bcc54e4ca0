//! Texts and bytes: one behind the other with their lengths, or the places of words in a list.

use crate::Error;
use crate::error::corrupt;
use crate::integer_rle::Integers;
use crate::stream::Stream;
use crate::stripe::{DATA, DICTIONARY, LENGTH, Stripe};
use arrow::array::{ArrayRef, BinaryArray, StringArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;
use std::sync::Arc;

/// Words of a list, and bytes of all of them.
const MAX_WORDS: u64 = 64 << 20;
const MAX_WORD_BYTES: usize = 1 << 30;

/// Bytes of the texts of a batch.
const MAX_TEXT_BYTES: usize = i32::MAX as usize;

pub(crate) enum Texts {
    Direct(Box<(Integers, Stream)>),
    Words(Box<(Integers, Words)>),
}

/// The words of a stripe.
pub(crate) struct Words {
    lengths: Integers,
    bytes: Stream,
    count: u64,
    /// Where each word ends, and the bytes of all; read when the first is needed.
    read: Option<(Vec<usize>, Vec<u8>)>,
}

/// Lengths of texts, and their bytes.
type Read = (Vec<i64>, Vec<u8>);

impl Texts {
    pub(crate) fn open(stripe: &Stripe, column: usize) -> Result<Self, Error> {
        let encoding = stripe.encoding(column)?;
        let lengths = stripe.integers(column, LENGTH, false)?;
        if !encoding.dictionary {
            return Ok(Self::Direct(Box::new((lengths, stripe.stream(column, DATA)))));
        }
        if encoding.words > MAX_WORDS {
            return Err(corrupt("a column has more words than there can be"));
        }
        let (bytes, count) = (stripe.stream(column, DICTIONARY), encoding.words);
        let places = stripe.integers(column, DATA, false)?;
        Ok(Self::Words(Box::new((places, Words { lengths, bytes, count, read: None }))))
    }

    /// The texts of the rows that have one.
    pub(crate) fn read(&mut self, count: usize) -> Result<Read, Error> {
        match self {
            Self::Direct(direct) => {
                let (lengths, bytes) = direct.as_mut();
                let lengths = lengths.read(count)?;
                let total = sum(&lengths, MAX_TEXT_BYTES)?;
                let mut text = Vec::new();
                bytes.read_into(total, &mut text)?;
                Ok((lengths, text))
            }
            Self::Words(words) => {
                let (places, words) = words.as_mut();
                words.look_up(&places.read(count)?)
            }
        }
    }
}

impl Words {
    fn look_up(&mut self, places: &[i64]) -> Result<Read, Error> {
        if self.read.is_none() {
            self.read = Some(self.words()?);
        }
        let (ends, bytes) = match &self.read {
            Some((ends, bytes)) => (ends.as_slice(), bytes.as_slice()),
            None => Default::default(),
        };
        let (mut lengths, mut text) = (Vec::with_capacity(places.len()), Vec::new());
        for place in places {
            let place = usize::try_from(*place).ok();
            let end = place.and_then(|place| ends.get(place).copied());
            let start =
                place.and_then(|place| if place == 0 { Some(0) } else { ends.get(place - 1).copied() });
            let word = start.zip(end).and_then(|(start, end)| bytes.get(start..end));
            let word = word.ok_or_else(|| corrupt("a value is a word that is not there"))?;
            text.extend_from_slice(word);
            lengths.push(i64::try_from(word.len()).unwrap_or(i64::MAX));
            if text.len() > MAX_TEXT_BYTES {
                return Err(too_long());
            }
        }
        Ok((lengths, text))
    }

    fn words(&mut self) -> Result<(Vec<usize>, Vec<u8>), Error> {
        let lengths = self.lengths.read(usize::try_from(self.count).unwrap_or(usize::MAX))?;
        let total = sum(&lengths, MAX_WORD_BYTES)?;
        let mut bytes = Vec::new();
        self.bytes.read_into(total, &mut bytes)?;
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += usize::try_from(*length).unwrap_or(0);
            end
        });
        Ok((ends.collect(), bytes))
    }
}

/// The sum of lengths, none of which is negative.
pub(crate) fn sum(lengths: &[i64], limit: usize) -> Result<usize, Error> {
    let mut total = 0_usize;
    for length in lengths {
        let length = usize::try_from(*length).map_err(|_| corrupt("a length is negative"))?;
        total = total.checked_add(length).filter(|total| *total <= limit).ok_or_else(too_long)?;
    }
    Ok(total)
}

fn too_long() -> Error {
    corrupt("the values of one batch have more bytes than there can be")
}

/// Where each value begins and ends; what is null has no length. All of them are at most 2 GiB.
pub(crate) fn offsets(lengths: &[i64], nulls: Option<&NullBuffer>) -> OffsetBuffer<i32> {
    let mut lengths = lengths.iter().map(|length| usize::try_from(*length).unwrap_or(0));
    match nulls {
        None => OffsetBuffer::from_lengths(lengths),
        Some(nulls) => {
            let of_row = |valid| if valid { lengths.next().unwrap_or(0) } else { 0 };
            OffsetBuffer::from_lengths(nulls.iter().map(of_row).collect::<Vec<_>>())
        }
    }
}

pub(crate) fn strings(read: Read, nulls: Option<NullBuffer>) -> Result<ArrayRef, Error> {
    let (lengths, bytes) = read;
    let offsets = offsets(&lengths, nulls.as_ref());
    let array = StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls);
    Ok(Arc::new(array.map_err(|_| corrupt("a text is not UTF-8"))?))
}

pub(crate) fn binaries(read: Read, nulls: Option<NullBuffer>) -> Result<ArrayRef, Error> {
    let (lengths, bytes) = read;
    let offsets = offsets(&lengths, nulls.as_ref());
    Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?))
}

/// Values at the rows that have one, and zeros between them.
pub(crate) fn spread<T: ArrowNativeType>(values: Vec<T>, nulls: Option<&NullBuffer>) -> ScalarBuffer<T> {
    let Some(nulls) = nulls else { return values.into() };
    let mut values = values.into_iter();
    let of_row = |valid| if valid { values.next().unwrap_or_default() } else { T::default() };
    nulls.iter().map(of_row).collect::<Vec<T>>().into()
}
