//! The elements of a column of lists.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::{DataType, FieldRef};
use std::ops::Range;
use std::sync::Arc;

/// Where the elements of each row are.
type Ranges = Box<dyn Fn(usize) -> Range<usize> + Send + Sync>;

/// The elements of a column of lists.
pub struct ListItems {
    ranges: Ranges,
    /// The elements of all rows.
    pub values: ArrayRef,
    /// Their type.
    pub field: FieldRef,
}

impl ListItems {
    /// Where the elements of a row are.
    #[inline]
    pub fn of_row(&self, row: usize) -> Range<usize> {
        (self.ranges)(row)
    }
}

bowshot_api::debug_fields!(ListItems { field });

/// The elements of a column of lists; `None` for a column of another type.
pub fn list_items(array: &ArrayRef) -> Option<ListItems> {
    let (ranges, values, field) = match array.data_type() {
        DataType::List(item) => (offsets::<i32>(array), array.as_list::<i32>().values(), item),
        DataType::LargeList(item) => (offsets::<i64>(array), array.as_list::<i64>().values(), item),
        DataType::FixedSizeList(item, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let ranges: Ranges = Box::new(move |row| row * size..(row + 1) * size);
            (ranges, array.as_fixed_size_list().values(), item)
        }
        _ => return None,
    };
    Some(ListItems { ranges, values: Arc::clone(values), field: Arc::clone(field) })
}

fn offsets<O: OffsetSizeTrait>(array: &ArrayRef) -> Ranges {
    let offsets = array.as_list::<O>().offsets().clone();
    Box::new(move |row| {
        let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
        at(row)..at(row + 1)
    })
}
