//! Lists as arrays of one dimension: `{1,NULL,"a b"}` in text; in binary number of dimensions, whether there are nulls, type
//! of the elements, length, first index, elements (`array_send` in PostgreSQL's `arrayfuncs.c`).

use super::{Column, PgType, Written, put_value, scalars};
use crate::frontend_messages::Format;
use crate::status::Failure;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Field;
use bowshot_rowwire::encode::{ColumnEncoder, ListItems, list_items};
use bytes::{BufMut, BytesMut};

struct List {
    array: ArrayRef,
    items: ListItems,
    elements: Column,
    element: u32,
    /// Whether its text is `1 2` instead of `{1,2}`.
    is_vector: bool,
}

/// The encoder of a column of lists whose elements are no lists.
pub(super) fn list_encoder(array: &ArrayRef, field: &Field) -> Result<Column, Failure> {
    let kind = PgType::from_field(field);
    let (element, is_vector) = (kind.element_oid(), kind.is_vector);
    let items = list_items(array)
        .ok_or_else(|| Failure::new("XX000", format!("{} is no list", array.data_type())))?;
    Ok(Box::new(List {
        array: ArrayRef::clone(array),
        elements: scalars::column_encoder(&items.values, &items.field)?,
        items,
        element,
        is_vector,
    }))
}

impl ColumnEncoder<Failure> for List {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn text(&self, row: usize, out: &mut BytesMut) -> Written {
        if self.is_vector {
            for (index, item) in self.items.of_row(row).enumerate() {
                if index > 0 {
                    out.put_u8(b' ');
                }
                self.elements.text(item, out)?;
            }
            return Ok(());
        }
        let mut scratch = BytesMut::new();
        out.put_u8(b'{');
        for (index, item) in self.items.of_row(row).enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            if self.elements.is_null(item) {
                out.put_slice(b"NULL");
                continue;
            }
            scratch.clear();
            self.elements.text(item, &mut scratch)?;
            put_element(&scratch, out);
        }
        out.put_u8(b'}');
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut BytesMut) -> Written {
        let items = self.items.of_row(row);
        let has_nulls = items.clone().any(|item| self.elements.is_null(item));
        out.put_i32(i32::from(!items.is_empty()));
        out.put_i32(i32::from(has_nulls));
        out.put_u32(self.element);
        if items.is_empty() {
            return Ok(());
        }
        out.put_i32(i32::try_from(items.len()).map_err(|_| super::too_large("list"))?);
        out.put_i32(1);
        for item in items {
            put_value(self.elements.as_ref(), Format::Binary, item, out)?;
        }
        Ok(())
    }
}

/// An element, in quotes where it needs them.
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
