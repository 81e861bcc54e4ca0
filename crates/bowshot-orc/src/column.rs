//! The values of one column of a stripe, with those below it, as arrays of Arrow.
//!
//! A column has values only for the rows that have one, and what is below it only for those of its values.

use crate::Error;
use crate::byte_rle::{Bits, Runs};
use crate::error::corrupt;
use crate::integer_rle::Integers;
use crate::stream::Stream;
use crate::stripe::{DATA, LENGTH, SECONDARY, Stripe};
use crate::texts::{self, Texts, spread};
use crate::times::Times;
use crate::types::{Kind, Node};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, ListArray, MapArray, PrimitiveArray, StructArray,
    UInt32Array, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type,
};
use std::sync::Arc;

/// Values of a batch, of those below lists.
const MAX_VALUES: usize = 64 << 20;

pub(crate) struct Column {
    present: Option<Bits>,
    arrow: DataType,
    values: Values,
}

enum Values {
    Boolean(Bits),
    Byte(Runs),
    Integer(Integers),
    Float(Stream),
    Text(Texts),
    Time(Times),
    Decimal { digits: Stream, scales: Integers, precision: u8, scale: i8 },
    List { lengths: Integers, item: Box<Column> },
    Map { lengths: Integers, key: Box<Column>, value: Box<Column> },
    Struct(Vec<Column>),
}

impl Column {
    pub(crate) fn open(stripe: &Stripe, node: &Node) -> Result<Self, Error> {
        let id = node.id;
        let below = |node: &Node| Self::open(stripe, node).map(Box::new);
        let values = match &node.kind {
            Kind::Boolean => Values::Boolean(Bits::new(stripe.stream(id, DATA))),
            Kind::Byte => Values::Byte(Runs::new(stripe.stream(id, DATA))),
            Kind::Short | Kind::Int | Kind::Long | Kind::Date => {
                Values::Integer(stripe.integers(id, DATA, true)?)
            }
            Kind::Float | Kind::Double => Values::Float(stripe.stream(id, DATA)),
            Kind::Text | Kind::Binary => Values::Text(Texts::open(stripe, id)?),
            Kind::Time { unit, instant } => {
                let streams = (stripe.integers(id, DATA, true)?, stripe.integers(id, SECONDARY, false)?);
                Values::Time(Times::new(streams, *unit, stripe.zone.filter(|_| !instant)))
            }
            Kind::Decimal { precision, scale } => {
                let (digits, scales) = (stripe.stream(id, DATA), stripe.integers(id, SECONDARY, true)?);
                Values::Decimal { digits, scales, precision: *precision, scale: *scale }
            }
            Kind::List(item) => {
                Values::List { lengths: stripe.integers(id, LENGTH, false)?, item: below(item)? }
            }
            Kind::Map(key, value) => {
                let lengths = stripe.integers(id, LENGTH, false)?;
                Values::Map { lengths, key: below(key)?, value: below(value)? }
            }
            Kind::Struct(children) => {
                let children = children.iter().map(|(_, node)| Self::open(stripe, node));
                Values::Struct(children.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { present: stripe.present(id), arrow: node.arrow(), values })
    }

    /// The values of the next rows.
    pub(crate) fn read(&mut self, rows: usize) -> Result<ArrayRef, Error> {
        if rows > MAX_VALUES {
            return Err(corrupt("a batch has more values than there can be"));
        }
        let nulls = match &mut self.present {
            Some(bits) => Some(NullBuffer::from(bits.read(rows)?)).filter(|nulls| nulls.null_count() > 0),
            None => None,
        };
        let count = rows - nulls.as_ref().map_or(0, NullBuffer::null_count);
        match &mut self.values {
            Values::Boolean(bits) => {
                let values = bits.read(count)?;
                let values = match &nulls {
                    Some(nulls) => spread_bits(&values, nulls),
                    None => values,
                };
                Ok(Arc::new(BooleanArray::new(values.into(), nulls)))
            }
            Values::Byte(runs) => {
                let bytes = runs.read(count)?.into_iter().map(u8::cast_signed).collect();
                primitive::<Int8Type>(bytes, nulls, &self.arrow)
            }
            Values::Integer(integers) => integer(integers.read(count)?, nulls, &self.arrow),
            Values::Float(stream) => float(stream, count, (nulls, &self.arrow)),
            Values::Text(read) if self.arrow == DataType::Utf8 => texts::strings(read.read(count)?, nulls),
            Values::Text(read) => texts::binaries(read.read(count)?, nulls),
            Values::Time(times) => time(times.read(count)?, nulls, &self.arrow),
            Values::Decimal { digits, scales, precision, scale } => {
                let values = decimals(digits, &scales.read(count)?, (*precision, *scale))?;
                let array = Decimal128Array::new(spread(values, nulls.as_ref()), nulls);
                Ok(Arc::new(array.with_precision_and_scale(*precision, *scale)?))
            }
            Values::List { lengths, item } => list(&lengths.read(count)?, item, (nulls, &self.arrow)),
            Values::Map { lengths, key, value } => {
                map(&lengths.read(count)?, (key, value), (nulls, &self.arrow))
            }
            Values::Struct(children) => structure(children, rows, (nulls, &self.arrow)),
        }
    }
}

/// Which rows are null, and what the array's type is.
type Shape<'a> = (Option<NullBuffer>, &'a DataType);

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    arrow: &DataType,
) -> Result<ArrayRef, Error> {
    let array = PrimitiveArray::<T>::try_new(spread(values, nulls.as_ref()), nulls)?;
    Ok(Arc::new(array.with_data_type(arrow.clone())))
}

fn integer(values: Vec<i64>, nulls: Option<NullBuffer>, arrow: &DataType) -> Result<ArrayRef, Error> {
    match arrow {
        DataType::Int16 => primitive::<Int16Type>(narrow(&values)?, nulls, arrow),
        DataType::Int32 => primitive::<Int32Type>(narrow(&values)?, nulls, arrow),
        DataType::Date32 => primitive::<Date32Type>(narrow(&values)?, nulls, arrow),
        _ => primitive::<Int64Type>(values, nulls, arrow),
    }
}

fn narrow<T: TryFrom<i64>>(values: &[i64]) -> Result<Vec<T>, Error> {
    let narrow = values.iter().map(|value| T::try_from(*value).ok()).collect::<Option<Vec<T>>>();
    narrow.ok_or_else(|| corrupt("a number is larger than its type allows"))
}

fn float(stream: &mut Stream, count: usize, shape: Shape<'_>) -> Result<ArrayRef, Error> {
    let (nulls, arrow) = shape;
    let mut bytes = Vec::new();
    if *arrow == DataType::Float32 {
        stream.read_into(count * 4, &mut bytes)?;
        let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        return primitive::<Float32Type>(values, nulls, arrow);
    }
    stream.read_into(count * 8, &mut bytes)?;
    let values = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    primitive::<Float64Type>(values, nulls, arrow)
}

/// Points in time are numbers of 64 bits under another name.
fn time(values: Vec<i64>, nulls: Option<NullBuffer>, arrow: &DataType) -> Result<ArrayRef, Error> {
    let numbers = PrimitiveArray::<Int64Type>::try_new(spread(values, nulls.as_ref()), nulls)?;
    let data = numbers.into_data().into_builder().data_type(arrow.clone()).build()?;
    Ok(make_array(data))
}

fn spread_bits(values: &[bool], nulls: &NullBuffer) -> Vec<bool> {
    let mut values = values.iter().copied();
    nulls.iter().map(|valid| valid && values.next().unwrap_or(false)).collect()
}

/// Numbers of any length with a scale each, brought to the scale of the column.
fn decimals(digits: &mut Stream, scales: &[i64], decimal: (u8, i8)) -> Result<Vec<i128>, Error> {
    let (precision, scale) = decimal;
    let limit = 10_i128.pow(u32::from(precision));
    let mut values = Vec::with_capacity(scales.len());
    for own in scales {
        let value = long_number(digits)?;
        let value = rescaled(value, *own, i64::from(scale)).filter(|value| value.abs() < limit);
        values.push(value.ok_or_else(|| corrupt("a decimal has more digits than its type allows"))?);
    }
    Ok(values)
}

fn rescaled(value: i128, own: i64, scale: i64) -> Option<i128> {
    let factor = 10_i128.checked_pow(u32::try_from(own.abs_diff(scale)).ok()?)?;
    match own.cmp(&scale) {
        std::cmp::Ordering::Less => value.checked_mul(factor),
        std::cmp::Ordering::Equal => Some(value),
        std::cmp::Ordering::Greater => (value % factor == 0).then(|| value / factor),
    }
}

/// A number of seven bits a byte whose lowest bit is its sign.
fn long_number(digits: &mut Stream) -> Result<i128, Error> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let byte = digits.byte()?;
        value |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
        }
    }
    Err(corrupt("a decimal does not end"))
}

fn list(lengths: &[i64], item: &mut Column, shape: Shape<'_>) -> Result<ArrayRef, Error> {
    let (nulls, arrow) = shape;
    let DataType::List(field) = arrow else { return Err(corrupt("a list is none")) };
    let items = item.read(texts::sum(lengths, MAX_VALUES)?)?;
    let offsets = texts::offsets(lengths, nulls.as_ref());
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, items, nulls)?))
}

fn map(lengths: &[i64], pair: (&mut Column, &mut Column), shape: Shape<'_>) -> Result<ArrayRef, Error> {
    let (nulls, arrow) = shape;
    let DataType::Map(field, sorted) = arrow else { return Err(corrupt("a map is none")) };
    let DataType::Struct(fields) = field.data_type() else { return Err(corrupt("a map is none")) };
    let count = texts::sum(lengths, MAX_VALUES)?;
    let (keys, values) = (pair.0.read(count)?, pair.1.read(count)?);
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)
        .map_err(|_| corrupt("a key of a map is null"))?;
    let offsets = texts::offsets(lengths, nulls.as_ref());
    Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *sorted)?))
}

fn structure(children: &mut [Column], rows: usize, shape: Shape<'_>) -> Result<ArrayRef, Error> {
    let (nulls, arrow) = shape;
    let DataType::Struct(fields) = arrow else { return Err(corrupt("a struct is none")) };
    let count = rows - nulls.as_ref().map_or(0, NullBuffer::null_count);
    let places = nulls.as_ref().map(places);
    let mut arrays = Vec::with_capacity(children.len());
    for child in children {
        let array = child.read(count)?;
        arrays.push(match &places {
            Some(places) => take(&array, places, None)?,
            None => array,
        });
    }
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, rows)?))
}

/// Where the value of each row is among those that are there.
fn places(nulls: &NullBuffer) -> UInt32Array {
    let mut next = 0..;
    nulls.iter().map(|valid| if valid { next.next() } else { None }).collect()
}
