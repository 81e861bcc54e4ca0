//! Values of a kept piece in less memory than Arrow gives them. Numbers are kept as their distance from the least one of the
//! piece, in as few whole bytes as the largest of those takes (frame of reference; Lemire and Boytsov 2015, section 2), and
//! texts of which the piece has few different ones by their number. Decimals of SQL take 16 bytes each in Arrow's memory,
//! and two or four here; what is saved so makes room for more columns. Taking out a few rows takes time for those alone.

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, StringArray, make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::filter;
use arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::common::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// Different texts of a piece up to which they are kept by number.
const MAX_TEXTS: usize = 256;
/// Bytes of a text that is copied together with what is behind it.
const SHORT: usize = 16;
/// How many times as much texts must take to be packed: restoring them takes longer than reading plain ones.
const TEXT_GAIN: usize = 6;

#[derive(Debug)]
pub(super) enum Piece {
    Whole(ArrayRef),
    Packed(Box<Packed>),
}

#[derive(Debug)]
pub(super) struct Packed {
    data_type: DataType,
    nulls: Option<NullBuffer>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Bits32(i32, Distances),
    Bits64(i64, Distances),
    Bits128(i128, Distances),
    Texts(StringArray, Box<[u8]>),
}

/// How far values are from the least one.
#[derive(Debug)]
enum Distances {
    Bits8(Box<[u8]>),
    Bits16(Box<[u16]>),
    Bits32(Box<[u32]>),
    Bits64(Box<[u64]>),
}

impl Piece {
    pub(super) fn new(values: &ArrayRef) -> Self {
        pack(values).map_or_else(|| Self::Whole(Arc::clone(values)), |packed| Self::Packed(Box::new(packed)))
    }

    pub(super) fn all(&self) -> Result<ArrayRef> {
        match self {
            Self::Whole(values) => Ok(Arc::clone(values)),
            Self::Packed(packed) => packed.all(),
        }
    }

    /// The values of the rows in a mask, which has no nulls.
    pub(super) fn filtered(&self, mask: &BooleanArray) -> Result<ArrayRef> {
        match self {
            Self::Whole(values) => Ok(filter(values, mask)?),
            Self::Packed(packed) => packed.filtered(mask),
        }
    }

    /// What is taken beside the piece before, which may have the same dictionary.
    pub(super) fn bytes(&self, before: Option<&Self>) -> u64 {
        let bytes = match (self, before) {
            (Self::Whole(values), Some(Self::Whole(before))) => {
                values.get_array_memory_size().saturating_sub(shared(before, values))
            }
            (Self::Whole(values), _) => values.get_array_memory_size(),
            (Self::Packed(packed), _) => packed.bytes(),
        };
        bytes as u64
    }
}

/// Bytes of a dictionary that both arrays have.
fn shared(before: &ArrayRef, values: &ArrayRef) -> usize {
    let dictionary = |array: &ArrayRef| array.as_any_dictionary_opt().map(|array| Arc::clone(array.values()));
    match (dictionary(before), dictionary(values)) {
        (Some(before), Some(now)) if Arc::ptr_eq(&before, &now) => now.get_array_memory_size(),
        _ => 0,
    }
}

/// The values with at most half of their bytes, if they have such a form.
fn pack(values: &ArrayRef) -> Option<Packed> {
    let data_type = values.data_type().clone();
    let packed = match &data_type {
        DataType::Utf8 => {
            let (texts, numbers) = pack_texts(values.as_string())?;
            Values::Texts(texts, numbers)
        }
        other if other.is_primitive() && !other.is_floating() && !matches!(other, DataType::Interval(_)) => {
            let bits = values.to_data();
            let buffer = bits.buffers().first()?.slice_with_length(0, bits.buffers().first()?.len());
            match other.primitive_width()? {
                4 => {
                    distances(&native::<i32>(buffer, &bits)).map(|(least, all)| Values::Bits32(least, all))?
                }
                8 => {
                    distances(&native::<i64>(buffer, &bits)).map(|(least, all)| Values::Bits64(least, all))?
                }
                16 => distances(&native::<i128>(buffer, &bits))
                    .map(|(least, all)| Values::Bits128(least, all))?,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Packed { data_type, nulls: values.nulls().cloned(), values: packed })
}

fn native<T: ArrowNativeType>(buffer: Buffer, bits: &ArrayData) -> ScalarBuffer<T> {
    ScalarBuffer::new(buffer, bits.offset(), bits.len())
}

/// Numbers that are kept by their distance from another one of their kind.
trait Number: ArrowNativeType + Ord {
    /// `self - least`, which is not negative; `None` if it takes more than 64 bits.
    fn beyond(self, least: Self) -> Option<u64>;
    fn at(least: Self, distance: u64) -> Self;
}

impl Number for i32 {
    fn beyond(self, least: Self) -> Option<u64> {
        // Two's complement: the distance of any two values fits into the unsigned type, here and below.
        Some(u64::from(self.wrapping_sub(least).cast_unsigned()))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a distance came from this type")]
    fn at(least: Self, distance: u64) -> Self {
        least.wrapping_add_unsigned(distance as u32)
    }
}

impl Number for i64 {
    fn beyond(self, least: Self) -> Option<u64> {
        Some(self.wrapping_sub(least).cast_unsigned())
    }

    fn at(least: Self, distance: u64) -> Self {
        least.wrapping_add_unsigned(distance)
    }
}

impl Number for i128 {
    fn beyond(self, least: Self) -> Option<u64> {
        u64::try_from(self.wrapping_sub(least).cast_unsigned()).ok()
    }

    fn at(least: Self, distance: u64) -> Self {
        least.wrapping_add_unsigned(u128::from(distance))
    }
}

/// The least value and the distances of all from it; `None` if those take more than half of the bytes.
fn distances<T: Number>(values: &[T]) -> Option<(T, Distances)> {
    let (first, rest) = values.split_first()?;
    let (least, most) =
        rest.iter().fold((*first, *first), |(least, most), value| (least.min(*value), most.max(*value)));
    let widest = most.beyond(least)?;
    let half = T::get_byte_width() / 2;
    let taken = |bytes: usize| bytes <= half;
    #[expect(clippy::cast_possible_truncation, reason = "the widest fits")]
    let all = if u8::try_from(widest).is_ok() && taken(1) {
        Distances::Bits8(each(values, least, |distance| distance as u8))
    } else if u16::try_from(widest).is_ok() && taken(2) {
        Distances::Bits16(each(values, least, |distance| distance as u16))
    } else if u32::try_from(widest).is_ok() && taken(4) {
        Distances::Bits32(each(values, least, |distance| distance as u32))
    } else if taken(8) {
        Distances::Bits64(each(values, least, |distance| distance))
    } else {
        return None;
    };
    Some((least, all))
}

fn each<T: Number, D>(values: &[T], least: T, narrow: impl Fn(u64) -> D) -> Box<[D]> {
    values.iter().map(|value| narrow(value.beyond(least).unwrap_or(0))).collect()
}

/// The different texts and the number of each row's; `None` if there are many, or if they are short.
fn pack_texts(values: &StringArray) -> Option<(StringArray, Box<[u8]>)> {
    let mut numbers_of: HashMap<&str, u8> = HashMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut numbers = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        // What is below a NULL counts like any other text.
        let text = values.value(row);
        let number = match numbers_of.get(text) {
            Some(number) => *number,
            None if texts.len() < MAX_TEXTS => {
                let number = u8::try_from(texts.len()).ok()?;
                numbers_of.insert(text, number);
                texts.push(text);
                number
            }
            None => return None,
        };
        numbers.push(number);
    }
    let texts = StringArray::from_iter_values(texts);
    let taken = texts.get_array_memory_size() + numbers.len();
    (taken * TEXT_GAIN <= values.get_array_memory_size()).then(|| (texts, numbers.into_boxed_slice()))
}

impl Packed {
    fn all(&self) -> Result<ArrayRef> {
        match &self.values {
            Values::Bits32(least, distances) => self.numbers(distances.values(*least), self.nulls.clone()),
            Values::Bits64(least, distances) => self.numbers(distances.values(*least), self.nulls.clone()),
            Values::Bits128(least, distances) => self.numbers(distances.values(*least), self.nulls.clone()),
            Values::Texts(texts, numbers) => {
                unpacked_texts(texts, numbers.iter(), numbers.len(), self.nulls.clone())
            }
        }
    }

    fn filtered(&self, mask: &BooleanArray) -> Result<ArrayRef> {
        let nulls = self.nulls.as_ref().map(|nulls| filtered_nulls(nulls, mask));
        match &self.values {
            Values::Bits32(least, distances) => self.numbers(distances.filtered(*least, mask), nulls),
            Values::Bits64(least, distances) => self.numbers(distances.filtered(*least, mask), nulls),
            Values::Bits128(least, distances) => self.numbers(distances.filtered(*least, mask), nulls),
            Values::Texts(texts, numbers) => {
                unpacked_texts(texts, rows_of(numbers, mask), mask.true_count(), nulls)
            }
        }
    }

    fn numbers<T: ArrowNativeType>(&self, values: Vec<T>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let data = ArrayData::builder(self.data_type.clone())
            .len(values.len())
            .nulls(nulls)
            .add_buffer(Buffer::from_vec(values));
        Ok(make_array(data.build()?))
    }

    fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Bits32(_, distances) | Values::Bits64(_, distances) | Values::Bits128(_, distances) => {
                distances.bytes()
            }
            Values::Texts(texts, numbers) => texts.get_array_memory_size() + numbers.len(),
        };
        let nulls = self.nulls.as_ref().map_or(0, |nulls| nulls.buffer().len());
        size_of::<Self>() + values + nulls
    }
}

impl Distances {
    fn values<T: Number>(&self, least: T) -> Vec<T> {
        match self {
            Self::Bits8(all) => all.iter().map(|distance| T::at(least, u64::from(*distance))).collect(),
            Self::Bits16(all) => all.iter().map(|distance| T::at(least, u64::from(*distance))).collect(),
            Self::Bits32(all) => all.iter().map(|distance| T::at(least, u64::from(*distance))).collect(),
            Self::Bits64(all) => all.iter().map(|distance| T::at(least, *distance)).collect(),
        }
    }

    fn filtered<T: Number>(&self, least: T, mask: &BooleanArray) -> Vec<T> {
        match self {
            Self::Bits8(all) => {
                rows_of(all, mask).map(|distance| T::at(least, u64::from(*distance))).collect()
            }
            Self::Bits16(all) => {
                rows_of(all, mask).map(|distance| T::at(least, u64::from(*distance))).collect()
            }
            Self::Bits32(all) => {
                rows_of(all, mask).map(|distance| T::at(least, u64::from(*distance))).collect()
            }
            Self::Bits64(all) => rows_of(all, mask).map(|distance| T::at(least, *distance)).collect(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Bits8(all) => size_of_val(&**all),
            Self::Bits16(all) => size_of_val(&**all),
            Self::Bits32(all) => size_of_val(&**all),
            Self::Bits64(all) => size_of_val(&**all),
        }
    }
}

/// What a slice has at the rows in a mask.
fn rows_of<'a, T>(all: &'a [T], mask: &'a BooleanArray) -> impl Iterator<Item = &'a T> {
    mask.values().set_indices().filter_map(|row| all.get(row))
}

fn filtered_nulls(nulls: &NullBuffer, mask: &BooleanArray) -> NullBuffer {
    let mut kept = BooleanBufferBuilder::new(mask.true_count());
    let rows = mask.values().set_indices().filter(|row| *row < nulls.len());
    rows.for_each(|row| kept.append(nulls.is_valid(row)));
    NullBuffer::new(kept.finish())
}

fn unpacked_texts<'a>(
    texts: &StringArray,
    numbers: impl Iterator<Item = &'a u8>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let each: Vec<&[u8]> = texts.iter().map(|text| text.unwrap_or_default().as_bytes()).collect();
    let longest = each.iter().map(|text| text.len()).max().unwrap_or(0);
    let (ends, bytes) =
        if longest <= SHORT { short_texts(&each, numbers, rows) } else { long_texts(&each, numbers, rows) };
    let ends = OffsetBuffer::new(ends.into());
    Ok(Arc::new(StringArray::try_new(ends, Buffer::from_vec(bytes), nulls)?))
}

/// The bytes of the texts with these numbers one after the other, and where each ends.
fn long_texts<'a>(each: &[&[u8]], numbers: impl Iterator<Item = &'a u8>, rows: usize) -> (Vec<i32>, Vec<u8>) {
    let (mut ends, mut bytes) = (Vec::with_capacity(rows + 1), Vec::new());
    ends.push(0);
    for number in numbers {
        bytes.extend_from_slice(each.get(usize::from(*number)).copied().unwrap_or_default());
        ends.push(end(bytes.len()));
    }
    (ends, bytes)
}

/// The same by copies of one length, which are a single instruction: each text overwrites what was too much of the one before.
fn short_texts<'a>(
    each: &[&[u8]],
    numbers: impl Iterator<Item = &'a u8>,
    rows: usize,
) -> (Vec<i32>, Vec<u8>) {
    let mut padded = [([0_u8; SHORT], 0); MAX_TEXTS];
    for (slot, text) in padded.iter_mut().zip(each) {
        let (start, _) = slot.0.split_at_mut(text.len());
        start.copy_from_slice(text);
        slot.1 = text.len();
    }
    let mut bytes = vec![0; rows * SHORT + SHORT];
    let (mut ends, mut at) = (Vec::with_capacity(rows + 1), 0);
    ends.push(0);
    for number in numbers {
        let Some((text, length)) = padded.get(usize::from(*number)) else { continue };
        let Some(room) = bytes.get_mut(at..at + SHORT) else { break };
        room.copy_from_slice(text);
        at += length;
        ends.push(end(at));
    }
    bytes.truncate(at);
    (ends, bytes)
}

/// At most as much as the piece that was packed had, whose places were of this type.
fn end(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, TimestampMicrosecondArray,
        UInt64Array,
    };

    fn columns() -> Vec<(ArrayRef, bool)> {
        let words = ["AIR", "SHIP", "", "ein längeres Wort als die anderen", "RAIL"];
        let short = ["1-URGENT", "2-HIGH", "exactly 16 bytes"];
        let sliced = Int64Array::from_iter((0..100).map(|row| (row % 3 > 0).then_some(row * 7)));
        vec![
            (Arc::new(Int64Array::from_iter_values((0..1000).map(|row| 5_000_000_000 + row % 200))), true),
            (Arc::new(Int64Array::from_iter((0..1000).map(|row| (row % 7 > 0).then_some(row * 60)))), true),
            (Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX, 0])), false),
            (Arc::new(Int64Array::from(vec![0, i64::from(u32::MAX)])), true),
            (Arc::new(Int64Array::from(vec![0, i64::from(u32::MAX) + 1])), false),
            (Arc::new(sliced.slice(13, 50)), true),
            (Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 3])), true),
            (Arc::new(Int32Array::from(vec![i32::MIN, i32::MAX])), false),
            (Arc::new(Int32Array::from(vec![-3, 60_000])), true),
            (Arc::new(Date32Array::from_iter_values((0..3000).map(|row| 8000 + row % 2500))), true),
            (Arc::new(TimestampMicrosecondArray::from(vec![1, 2]).with_timezone("+02:00")), true),
            (decimal(vec![Some(-1), None, Some(1_000_000)]), true),
            (decimal(vec![Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX))]), true),
            (decimal(vec![Some(-1), Some(1 << 64)]), false),
            (decimal(vec![Some(-10_i128.pow(37)), Some(10_i128.pow(37))]), false),
            (Arc::new(Float64Array::from(vec![1.0, -0.0, f64::NAN])), false),
            (Arc::new(StringArray::from_iter_values((0..5000).map(|row| words[row % 5]))), true),
            (
                Arc::new(StringArray::from_iter(
                    (0..5000).map(|row| (row % 4 > 0).then_some(words[row % 5])),
                )),
                true,
            ),
            (Arc::new(StringArray::from_iter_values((0..5000).map(|row| short[row % 3]))), true),
            (Arc::new(StringArray::from_iter_values((0..5000).map(|row| format!("number {row}")))), false),
            (Arc::new(Int64Array::from(Vec::<i64>::new())), false),
        ]
    }

    fn decimal(values: Vec<Option<i128>>) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 4).expect("type"))
    }

    #[test]
    fn what_is_taken_out_is_what_was_put_in() {
        for (values, packed) in columns() {
            let piece = Piece::new(&values);
            assert_eq!(matches!(piece, Piece::Packed(_)), packed, "{values:?}");
            assert_eq!(&piece.all().expect("values"), &values);
            for step in [1, 2, 5, 100_000] {
                let mask = BooleanArray::from_iter((0..values.len()).map(|row| Some(row % step == step - 1)));
                let expected = filter(&values, &mask).expect("filter");
                assert_eq!(&piece.filtered(&mask).expect("values"), &expected, "{step}");
            }
        }
    }

    #[test]
    fn packed_values_take_at_most_half() {
        for (values, packed) in columns() {
            if packed && values.len() >= 1000 {
                let (bytes, before) =
                    (Piece::new(&values).bytes(None), values.get_array_memory_size() as u64);
                assert!(2 * bytes <= before + 512, "{bytes} of {before} for {:?}", values.data_type());
            }
        }
    }
}
