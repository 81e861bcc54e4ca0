//! Bits of integers.

use crate::define::{Function, Gives, scalar};
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

pub(super) const FUNCTIONS: &[Function] = &[
    scalar("bit_count", "how many bits are set", &[&[Whole], &[Blob]], Gives::Int, count)
        .aliases(&["popcount"]),
    scalar("bitwise_not", "all bits the other way round", &[&[Whole]], Gives::Int, |a| {
        map1::<Int, Int64, _>(a, |number: i64| !number)
    }),
    scalar("bitwise_and", "the bits that are set in both", TWO, Gives::Int, |a| {
        map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one & other)
    }),
    scalar("bitwise_or", "the bits that are set in one of both", TWO, Gives::Int, |a| {
        map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one | other)
    }),
    scalar("bitwise_xor", "the bits that differ", TWO, Gives::Int, |a| {
        map2::<Int, Int, Int64, _>(a, |one: i64, other: i64| one ^ other)
    }),
    scalar("shiftleft", "the bits moved to the left", TWO, Gives::Int, |a| shift(a, i64::checked_shl))
        .aliases(&["bitwise_left_shift"]),
    scalar("shiftright", "the bits moved to the right, with the sign", TWO, Gives::Int, |a| {
        shift(a, i64::checked_shr)
    })
    .aliases(&["bitwise_right_shift"]),
    scalar("getbit", "the bit at a position, from the right", TWO, Gives::Int, |a| {
        map2::<Int, Int, Int64, _>(a, |number: i64, position: i64| {
            u32::try_from(position)
                .ok()
                .and_then(|position| number.checked_shr(position))
                .map(|bits| bits & 1)
        })
    })
    .aliases(&["bit_get"]),
];
