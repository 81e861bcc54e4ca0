//! Copies rows that come from outside. Their arrays may lie in a mapped file, whose bytes change or vanish with the
//! file, in a network message, or be a few rows of a large batch; rows of a table may not depend on any of these.

use super::Error;
use super::segment::{fitted, live_texts};
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, MutableArrayData, RecordBatch, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// The same rows in allocations that nobody else has and that hold nothing else.
pub(super) fn owned(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    let columns = rows.columns().iter().map(owned_values).collect::<Result<_, _>>()?;
    Ok(fitted(rows.schema_ref(), columns, rows.num_rows())?)
}

fn owned_values(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let copy = copied(values)?;
    // What Arrow copies only by reference: texts of views, values of dictionaries.
    match copy.data_type() {
        DataType::Utf8View | DataType::BinaryView => Ok(live_texts(&copy)),
        DataType::Dictionary(_, _) => match copy.as_any_dictionary_opt() {
            Some(dictionary) => Ok(dictionary.with_values(owned_values(dictionary.values())?)),
            None => Ok(copy),
        },
        nested if keeps_references(nested) => Ok(make_array(owned_parts(&copy.to_data())?)),
        _ => Ok(copy),
    }
}

fn copied(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let source = values.to_data();
    let mut copy = MutableArrayData::new(vec![&source], false, source.len());
    copy.try_extend(0, 0, source.len())?;
    Ok(make_array(copy.freeze()))
}

/// Whether a copy of such values may share allocations with its source.
fn keeps_references(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => keeps_references(field.data_type()),
        DataType::RunEndEncoded(ends, values) => {
            keeps_references(ends.data_type()) || keeps_references(values.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| keeps_references(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| keeps_references(field.data_type())),
        _ => false,
    }
}

/// Copies all buffers. Validates the values again, which is why only the nested types above go this way.
fn owned_parts(values: &ArrayData) -> Result<ArrayData, ArrowError> {
    let copied = |buffer: &Buffer| Buffer::from_slice_ref(buffer.as_slice());
    let nulls = values.nulls().map(|nulls| {
        NullBuffer::new(BooleanBuffer::new(copied(nulls.buffer()), nulls.offset(), nulls.len()))
    });
    let children = values.child_data().iter().map(owned_parts).collect::<Result<_, _>>()?;
    let buffers = values.buffers().iter().map(copied).collect();
    values.clone().into_builder().nulls(nulls).buffers(buffers).child_data(children).build()
}
