//! MurmurHash3 of 32 bits: Spark's `hash` of any values, and Doris' of texts.

use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions};
use bowshot_kernels::murmur::{self, hash_word, hash_words, spark_hash};
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int32Array};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

const SPARK_SEED: u32 = 42;
const DORIS_SEED: u32 = 104_729;
/// Digits of a decimal that Spark keeps in 64 bits.
const DIGITS_OF_64_BITS: u8 = 18;

pub(super) const FUNCTIONS: &[Function] = scalar_functions! {
    "hash": takes_values, gives_hash, spark => "Spark's 32-bit hash of the arguments";
    "murmur_hash3_32" "murmur3": takes_texts, gives_hash, doris =>
        "Doris' 32-bit hash of the arguments as texts";
};

fn takes_values(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given.iter().map(hashed_as).collect::<Option<Vec<_>>>() {
        Some(types) if !types.is_empty() => Ok(types),
        _ => no_overload(name, given),
    }
}

/// The type whose values are hashed; `None` where Spark's are none of ours.
fn hashed_as(of: &DataType) -> Option<DataType> {
    Some(match of {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16 => DataType::Int32,
        DataType::Int64 | DataType::UInt32 => DataType::Int64,
        DataType::Float16 | DataType::Float32 => DataType::Float32,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        of if of.is_binary() => DataType::Binary,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Float64 | DataType::Date32 => of.clone(),
        DataType::Decimal128(digits, _) if *digits <= DIGITS_OF_64_BITS => of.clone(),
        _ => return None,
    })
}

fn takes_texts(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    if given.is_empty() || given.iter().any(DataType::is_nested) {
        return no_overload(name, given);
    }
    Ok(vec![DataType::Utf8; given.len()])
}

fn gives_hash(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Int32, true))
}

/// NULL counts for nothing.
fn spark(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut hashes = vec![SPARK_SEED; given.number_rows];
    for value in &given.args {
        add(&value.to_array(given.number_rows)?, &mut hashes)?;
    }
    let hashes = Int32Array::from_iter_values(hashes.into_iter().map(|hash| hash as i32));
    Ok(ColumnarValue::Array(Arc::new(hashes)))
}

fn add(array: &ArrayRef, hashes: &mut [u32]) -> Result<()> {
    match array.data_type() {
        DataType::Int32 => numbers::<Int32Type>(array, hashes, |value, seed| hash_word(value as u32, seed)),
        DataType::Date32 => numbers::<Date32Type>(array, hashes, |value, seed| hash_word(value as u32, seed)),
        DataType::Int64 => numbers::<Int64Type>(array, hashes, |value, seed| hash_words(value as u64, seed)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers::<TimestampMicrosecondType>(array, hashes, |value, seed| hash_words(value as u64, seed));
        }
        DataType::Decimal128(..) => {
            numbers::<Decimal128Type>(array, hashes, |value, seed| hash_words(value as u64, seed));
        }
        DataType::Float32 => numbers::<Float32Type>(array, hashes, |value, seed| {
            let value = if value.is_nan() { f32::NAN } else { value + 0.0 };
            hash_word(value.to_bits(), seed)
        }),
        DataType::Float64 => numbers::<Float64Type>(array, hashes, |value, seed| {
            let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
            hash_words(value.to_bits(), seed)
        }),
        DataType::Utf8 => bytes(array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes)), hashes),
        DataType::Binary => bytes(array.as_binary::<i32>().iter(), hashes),
        other => return internal_err!("{other} is not hashed"),
    }
    Ok(())
}

fn numbers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    hashes: &mut [u32],
    hash: impl Fn(T::Native, u32) -> u32,
) {
    for (value, seed) in array.as_primitive::<T>().iter().zip(hashes) {
        if let Some(value) = value {
            *seed = hash(value, *seed);
        }
    }
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, hashes: &mut [u32]) {
    for (value, seed) in values.zip(hashes) {
        if let Some(value) = value {
            *seed = spark_hash(value, *seed);
        }
    }
}

/// NULL where one of the texts is.
fn doris(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut hashes = vec![Some(DORIS_SEED); given.number_rows];
    for value in &given.args {
        let texts = value.to_array(given.number_rows)?;
        for (hash, text) in hashes.iter_mut().zip(texts.as_string::<i32>().iter()) {
            *hash = hash.zip(text).map(|(seed, text)| murmur::hash(text.as_bytes(), seed));
        }
    }
    let hashes: Int32Array = hashes.into_iter().map(|hash| hash.map(|hash| hash as i32)).collect();
    Ok(ColumnarValue::Array(Arc::new(hashes)))
}
