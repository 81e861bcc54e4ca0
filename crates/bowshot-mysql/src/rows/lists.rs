//! Where the elements of lists are.

use crate::status::Failure;
use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::{DataType, Field};
use std::ops::Range;
use std::sync::Arc;

/// Where the elements of each row lie.
type Place = Box<dyn Fn(usize) -> Range<usize> + Send + Sync>;

/// Where the elements are, the elements, and what they are.
pub(super) fn parts(array: &ArrayRef) -> Result<(Place, ArrayRef, Field), Failure> {
    Ok(match array.data_type() {
        DataType::List(item) => {
            (offsets::<i32>(array), Arc::clone(array.as_list::<i32>().values()), item.as_ref().clone())
        }
        DataType::LargeList(item) => {
            (offsets::<i64>(array), Arc::clone(array.as_list::<i64>().values()), item.as_ref().clone())
        }
        DataType::FixedSizeList(item, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let place: Place = Box::new(move |row| row * size..(row + 1) * size);
            (place, Arc::clone(array.as_fixed_size_list().values()), item.as_ref().clone())
        }
        other => return Err(Failure::new(1105, "HY000", format!("{other} is no list"))),
    })
}

fn offsets<O: OffsetSizeTrait>(array: &ArrayRef) -> Place {
    let offsets = array.as_list::<O>().offsets().clone();
    Box::new(move |row| {
        let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
        at(row)..at(row + 1)
    })
}
