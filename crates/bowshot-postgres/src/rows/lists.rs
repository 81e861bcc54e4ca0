//! Lists as arrays of one dimension: `{1,NULL,"a b"}` in text; in binary number of dimensions, whether there are nulls, type
//! of the elements, length, first index, elements (`array_send` in PostgreSQL's `arrayfuncs.c`).

use super::{Cell, Done, PgType, cells, put_value};
use crate::message::Format;
use crate::status::Failure;
use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::{DataType, Field};
use bytes::{BufMut, BytesMut};
use std::ops::Range;
use std::sync::Arc;

/// Where the elements of each row lie.
type Place = Box<dyn Fn(usize) -> Range<usize> + Send + Sync>;

struct List {
    array: ArrayRef,
    place: Place,
    items: Box<dyn Cell>,
    element: u32,
    /// Whether its text is `1 2` instead of `{1,2}`.
    is_vector: bool,
}

/// The cell of a column of lists whose elements are no lists.
pub(super) fn cell(array: &ArrayRef, field: &Field) -> Result<Box<dyn Cell>, Failure> {
    let kind = PgType::of(field);
    let (element, is_vector) = (kind.element_oid(), kind.is_vector);
    let (place, values, item) = parts(array)?;
    Ok(Box::new(List {
        array: ArrayRef::clone(array),
        place,
        items: cells::cell(&values, &item)?,
        element,
        is_vector,
    }))
}

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
        other => return Err(Failure::new("XX000", format!("{other} is no list"))),
    })
}

fn offsets<O: OffsetSizeTrait>(array: &ArrayRef) -> Place {
    let offsets = array.as_list::<O>().offsets().clone();
    Box::new(move |row| {
        let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
        at(row)..at(row + 1)
    })
}

impl Cell for List {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Done {
        if self.is_vector {
            for (index, item) in (self.place)(row).enumerate() {
                if index > 0 {
                    out.put_u8(b' ');
                }
                self.items.text(item, out)?;
            }
            return Ok(());
        }
        let mut scratch = BytesMut::new();
        out.put_u8(b'{');
        for (index, item) in (self.place)(row).enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            if self.items.is_null(item) {
                out.put_slice(b"NULL");
                continue;
            }
            scratch.clear();
            self.items.text(item, &mut scratch)?;
            put_element(&scratch, out);
        }
        out.put_u8(b'}');
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut BytesMut) -> Done {
        let items = (self.place)(row);
        let has_nulls = items.clone().any(|item| self.items.is_null(item));
        out.put_i32(i32::from(!items.is_empty()));
        out.put_i32(i32::from(has_nulls));
        out.put_u32(self.element);
        if items.is_empty() {
            return Ok(());
        }
        out.put_i32(i32::try_from(items.len()).map_err(|_| super::too_large("list"))?);
        out.put_i32(1);
        for item in items {
            put_value(self.items.as_ref(), Format::Binary, item, out)?;
        }
        Ok(())
    }
}

/// An element in quotes where it would be read otherwise without them.
fn put_element(text: &[u8], out: &mut BytesMut) {
    let special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\' | b' ' | b'\t'..=b'\r');
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        out.put_slice(text);
        return;
    }
    out.put_u8(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}
