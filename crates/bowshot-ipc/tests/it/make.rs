//! Arrays of any type, the same ones on every run: the material of the round trips.

use arrow::array::types::*;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use std::sync::Arc;

/// A small generator of numbers (SplitMix64), so that a failing case fails again.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// An array of `rows` rows; `nulls` says whether it and its children have null slots.
pub(crate) fn array(data_type: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    match data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => Arc::new(BooleanArray::new(
            (0..rows).map(|_| n.below(2) == 0).collect(),
            validity(rows, nulls, n),
        )),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts(data_type, rows, nulls, n),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            binaries(data_type, rows, nulls, n)
        }
        DataType::FixedSizeBinary(width) => {
            let bytes: Vec<u8> = (0..rows * *width as usize).map(|_| n.next() as u8).collect();
            let nulls = validity(rows, nulls, n);
            Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, bytes.into(), nulls, rows).unwrap())
        }
        DataType::List(item) => list::<i32>(item, rows, nulls, n),
        DataType::LargeList(item) => list::<i64>(item, rows, nulls, n),
        DataType::ListView(item) => list_view::<i32>(item, rows, nulls, n),
        DataType::LargeListView(item) => list_view::<i64>(item, rows, nulls, n),
        DataType::FixedSizeList(item, size) => {
            let values = array(item.data_type(), rows * *size as usize, nulls && item.is_nullable(), n);
            let nulls = validity(rows, nulls, n);
            Arc::new(
                FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, nulls, rows)
                    .unwrap(),
            )
        }
        DataType::Struct(fields) => {
            let columns =
                fields.iter().map(|f| array(f.data_type(), rows, nulls && f.is_nullable(), n)).collect();
            let nulls = validity(rows, nulls, n);
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows).unwrap())
        }
        DataType::Map(entries, sorted) => map(entries, *sorted, rows, nulls, n),
        DataType::Union(fields, mode) => union(fields, *mode, rows, nulls, n),
        DataType::Dictionary(key, value) => dictionary(key, value, rows, nulls, n),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(data_type, rows, nulls, n),
            DataType::Int32 => runs::<Int32Type>(data_type, rows, nulls, n),
            _ => runs::<Int64Type>(data_type, rows, nulls, n),
        },
        fixed => primitive(fixed, rows, nulls, n),
    }
}

fn validity(rows: usize, nulls: bool, n: &mut Numbers) -> Option<NullBuffer> {
    nulls.then(|| (0..rows).map(|_| n.below(4) != 0).collect())
}

/// Values that the type allows: times within a day, decimals within nine digits.
fn primitive(data_type: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    macro_rules! make {
        ($($t:ident => $value:expr,)*) => {
            match data_type {
                $(t if PrimitiveArray::<$t>::is_compatible(t) => {
                    let values = (0..rows).map(|_| $value).collect();
                    let array = PrimitiveArray::<$t>::new(values, validity(rows, nulls, n));
                    Arc::new(array.with_data_type(data_type.clone()))
                })*
                other => panic!("no generator for {other}"),
            }
        };
    }
    make!(
        Int8Type => n.next() as i8,
        Int16Type => n.next() as i16,
        Int32Type => n.next() as i32,
        Int64Type => n.next() as i64,
        UInt8Type => n.next() as u8,
        UInt16Type => n.next() as u16,
        UInt32Type => n.next() as u32,
        UInt64Type => n.next(),
        Float16Type => <Float16Type as ArrowPrimitiveType>::Native::from_f32(n.below(2000) as f32 / 8.0),
        Float32Type => n.below(1 << 20) as f32 / 64.0,
        Float64Type => n.next() as f64 / 1024.0,
        Date32Type => n.below(40_000) as i32 - 20_000,
        Date64Type => (n.below(40_000) as i64 - 20_000) * 86_400_000,
        Time32SecondType => n.below(86_400) as i32,
        Time32MillisecondType => n.below(86_400_000) as i32,
        Time64MicrosecondType => n.below(86_400_000_000) as i64,
        Time64NanosecondType => n.below(86_400_000_000_000) as i64,
        TimestampSecondType => n.below(1 << 32) as i64,
        TimestampMillisecondType => n.below(1 << 41) as i64,
        TimestampMicrosecondType => n.below(1 << 51) as i64,
        TimestampNanosecondType => n.below(1 << 61) as i64,
        DurationSecondType => n.below(1 << 40) as i64 - (1 << 39),
        DurationMillisecondType => n.below(1 << 40) as i64 - (1 << 39),
        DurationMicrosecondType => n.below(1 << 40) as i64 - (1 << 39),
        DurationNanosecondType => n.below(1 << 40) as i64 - (1 << 39),
        IntervalYearMonthType => n.below(2400) as i32 - 1200,
        IntervalDayTimeType => IntervalDayTime::new(n.below(60) as i32 - 30, n.below(86_400_000) as i32),
        IntervalMonthDayNanoType => IntervalMonthDayNano::new(n.below(99) as i32, -(n.below(31) as i32), n.next() as i64 >> 8),
        Decimal32Type => n.below(1_000_000_000) as i32,
        Decimal64Type => -(n.below(1_000_000_000) as i64),
        Decimal128Type => n.below(1_000_000_000) as i128 * 1_000_000_007,
        Decimal256Type => arrow::datatypes::i256::from_i128(-(n.below(1_000_000_000) as i128) * 1_000_000_007),
    )
}

fn text(n: &mut Numbers) -> String {
    // Longer and shorter than the 12 bytes that a view holds inline; more than ASCII.
    let mut text = String::new();
    for _ in 0..n.below(12) {
        text.push_str(["a", "Bo", "wshot", "é", "→", "0"][n.below(6)]);
    }
    text
}

fn texts(data_type: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let values: Vec<Option<String>> =
        (0..rows).map(|_| (!nulls || n.below(4) != 0).then(|| text(n))).collect();
    match data_type {
        DataType::Utf8 => Arc::new(StringArray::from_iter(values)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(values)),
        _ => Arc::new(StringViewArray::from_iter(values)),
    }
}

fn binaries(data_type: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let mut bytes = || -> Vec<u8> { (0..n.below(20)).map(|_| n.next() as u8).collect() };
    let values: Vec<Option<Vec<u8>>> =
        (0..rows).map(|row| (!nulls || row % 3 != 1).then(&mut bytes)).collect();
    match data_type {
        DataType::Binary => Arc::new(BinaryArray::from_iter(values)),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(values)),
        _ => Arc::new(BinaryViewArray::from_iter(values)),
    }
}

/// Lengths of lists; null slots have a length too, which the format allows.
fn lengths(rows: usize, n: &mut Numbers) -> Vec<usize> {
    (0..rows).map(|_| n.below(4)).collect()
}

fn list<O: OffsetSizeTrait>(item: &FieldRef, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let lengths = lengths(rows, n);
    let values = array(item.data_type(), lengths.iter().sum(), nulls && item.is_nullable(), n);
    let offsets = OffsetBuffer::<O>::from_lengths(lengths);
    Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, validity(rows, nulls, n)).unwrap())
}

/// List views whose lists lie in any order, overlap, and leave gaps.
fn list_view<O: OffsetSizeTrait>(item: &FieldRef, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let held = rows + 5;
    let values = array(item.data_type(), held, nulls && item.is_nullable(), n);
    let mut sizes = Vec::with_capacity(rows);
    let mut offsets = Vec::with_capacity(rows);
    for size in lengths(rows, n) {
        sizes.push(O::usize_as(size));
        offsets.push(O::usize_as(n.below(held - size)));
    }
    let nulls = validity(rows, nulls, n);
    Arc::new(
        GenericListViewArray::<O>::try_new(Arc::clone(item), offsets.into(), sizes.into(), values, nulls)
            .unwrap(),
    )
}

fn map(entries: &FieldRef, sorted: bool, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let DataType::Struct(fields) = entries.data_type() else { panic!("a map of {entries}") };
    let lengths = lengths(rows, n);
    let held = lengths.iter().sum();
    let columns = fields.iter().map(|f| array(f.data_type(), held, nulls && f.is_nullable(), n)).collect();
    let values = StructArray::new(fields.clone(), columns, None);
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = validity(rows, nulls, n);
    Arc::new(MapArray::try_new(Arc::clone(entries), offsets, values, nulls, sorted).unwrap())
}

fn union(fields: &UnionFields, mode: UnionMode, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let chosen: ScalarBuffer<i8> = (0..rows).map(|_| ids[n.below(ids.len())]).collect();
    let held = |id: i8| match mode {
        UnionMode::Sparse => rows,
        UnionMode::Dense => chosen.iter().filter(|chosen| **chosen == id).count(),
    };
    let children =
        fields.iter().map(|(id, f)| array(f.data_type(), held(id), nulls && f.is_nullable(), n)).collect();
    let mut next = [0; 128];
    let offsets = (mode == UnionMode::Dense).then(|| {
        chosen
            .iter()
            .map(|id| {
                next[*id as usize] += 1;
                next[*id as usize] - 1
            })
            .collect()
    });
    Arc::new(UnionArray::try_new(fields.clone(), chosen, offsets, children).unwrap())
}

fn dictionary(key: &DataType, value: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let values = array(value, 9, false, n);
    macro_rules! make {
        ($($variant:ident => $t:ty),*) => {
            match key {
                $(DataType::$variant => {
                    let keys = (0..rows).map(|_| n.below(9) as _).collect();
                    let keys = PrimitiveArray::<$t>::new(keys, validity(rows, nulls, n));
                    Arc::new(DictionaryArray::try_new(keys, values).unwrap())
                })*
                other => panic!("no dictionary keys of type {other}"),
            }
        };
    }
    make!(Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type)
}

fn runs<R: RunEndIndexType>(data_type: &DataType, rows: usize, nulls: bool, n: &mut Numbers) -> ArrayRef {
    let DataType::RunEndEncoded(_, values) = data_type else { panic!("runs of {data_type}") };
    let mut ends = Vec::new();
    let mut end = 0;
    while end < rows {
        end = (end + 1 + n.below(5)).min(rows);
        ends.push(R::Native::from_usize(end).unwrap());
    }
    let values = array(values.data_type(), ends.len(), nulls && values.is_nullable(), n);
    let ends = PrimitiveArray::<R>::from_iter_values(ends);
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .add_child_data(ends.into_data())
        .add_child_data(values.to_data())
        .build()
        .unwrap();
    make_array(data)
}
