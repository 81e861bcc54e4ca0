//! Bits of integers.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Bytes as Blob, Int as Whole};
use crate::values::{Arguments, Bytes, Int, Int64, map1, map2};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::Result;

fn count(arguments: &Arguments) -> Result<ArrayRef> {
    if matches!(arguments.data_type(0)?, DataType::Binary) {
        return map1::<Bytes, Int64, _>(arguments, |bytes: &[u8]| {
            bytes.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>()
        });
    }
    map1::<Int, Int64, _>(arguments, |number: i64| i64::from(number.count_ones()))
}

fn shift(arguments: &Arguments, left: fn(i64, u32) -> Option<i64>) -> Result<ArrayRef> {
    map2::<Int, Int, Int64, _>(arguments, |number: i64, by: i64| {
        u32::try_from(by).ok().and_then(|by| left(number, by)).unwrap_or(0)
    })
}

const TWO: &[&[Kind]] = &[&[Whole, Whole]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "bit_count" "popcount": &[&[Whole], &[Blob]], Int, count => "how many bits are set";
    "bitwise_not": &[&[Whole]], Int, |a| map1::<Int, Int64, _>(a, |number: i64| !number) =>
        "all bits the other way round";
    "bitwise_and": TWO, Int, |a| map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one & other) =>
        "the bits that are set in both";
    "bitwise_or": TWO, Int, |a| map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one | other) =>
        "the bits that are set in one of both";
    "bitwise_xor": TWO, Int, |a| map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one ^ other) =>
        "the bits that differ";
    "shiftleft" "bitwise_left_shift": TWO, Int, |a| shift(a, i64::checked_shl) =>
        "the bits moved to the left";
    "shiftright" "bitwise_right_shift": TWO, Int, |a| shift(a, i64::checked_shr) =>
        "the bits moved to the right, with the sign";
    "getbit" "bit_get": TWO, Int, |a| {
        map2::<Int, Int, Int64, _>(a, |number: i64, position: i64| {
            u32::try_from(position)
                .ok()
                .and_then(|position| number.checked_shr(position))
                .map(|bits| bits & 1)
        })
    } => "the bit at a position, from the right";
};
