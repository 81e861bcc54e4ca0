//! What a slice of an array really shows: how many bytes that takes on the wire, and the array without the rest.
//!
//! A slice of most types shares its buffers and sends only its own part of them. Some drag more along: views (whole
//! data buffers), dense unions and list views (whole children). And two Arrow's encoder gets wrong: unions in a list
//! that does not start at its first value, and runs of no rows. [`trim_batch`] rebuilds only columns of these types;
//! all others pass through untouched.

use crate::error::{Error, Result};
use arrow::array::ArrayData;
use arrow::array::types::{
    BinaryViewType, ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType, StringViewType,
};
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericByteViewArray, GenericListArray,
    GenericListViewArray, MapArray, OffsetSizeTrait, PrimitiveArray, RecordBatchOptions, RunArray,
    StructArray, UnionArray, make_array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, UnionMode};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the array's rows in a message body, without padding.
///
/// Dictionaries count with their keys only, since their values travel once per stream and not once per slice.
pub(crate) fn wire_bytes(array: &dyn Array) -> usize {
    let rows = array.len();
    let validity = if array.null_count() > 0 { rows.div_ceil(8) } else { 0 };
    validity + value_bytes(array, rows)
}

/// The batch without what its arrays drag along; columns that drag nothing are shared.
pub(crate) fn trim_batch(batch: &RecordBatch) -> Result<RecordBatch> {
    if !batch.columns().iter().any(|column| drags(column.data_type())) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(trim).collect::<Result<Vec<_>, _>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(batch.schema(), columns, &options))
        .map_err(Error::Encode)
}

/// Whether slices of this type may drag more along than they show.
fn drags(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::RunEndEncoded(_, _)
        | DataType::Union(_, _) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => drags(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| drags(field.data_type())),
        _ => false,
    }
}

fn value_bytes(array: &dyn Array, rows: usize) -> usize {
    match array.data_type() {
        DataType::Null => 0,
        DataType::Boolean => rows.div_ceil(8),
        DataType::Utf8 => bytes_bytes(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => bytes_bytes(array.as_string::<i64>().offsets()),
        DataType::Binary => bytes_bytes(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => bytes_bytes(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => view_bytes(array.as_string_view()),
        DataType::BinaryView => view_bytes(array.as_binary_view()),
        DataType::FixedSizeBinary(width) => rows * width.as_usize(),
        DataType::List(_) => list_bytes(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => {
            list_bytes(array.as_list::<i64>().offsets(), array.as_list::<i64>().values())
        }
        DataType::Map(_, _) => list_bytes(array.as_map().offsets(), array.as_map().entries()),
        DataType::ListView(_) => list_view_bytes(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => list_view_bytes(array.as_list_view::<i64>()),
        DataType::FixedSizeList(_, _) => wire_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| wire_bytes(column)).sum(),
        DataType::Union(_, _) => union_bytes(array.as_union()),
        DataType::Dictionary(key, _) => rows * key.primitive_width().unwrap_or(8),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run_bytes(array.as_run::<Int16Type>()),
            DataType::Int32 => run_bytes(array.as_run::<Int32Type>()),
            _ => run_bytes(array.as_run::<Int64Type>()),
        },
        fixed => rows * fixed.primitive_width().unwrap_or(16),
    }
}

fn bytes_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> usize {
    size_of_val(&offsets[..]) + span(offsets).len()
}

fn list_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &dyn Array) -> usize {
    let span = span(offsets);
    size_of_val(&offsets[..]) + wire_bytes(&values.slice(span.start, span.len()))
}

/// What the offsets cover of the values.
fn span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Range<usize> {
    let (first, last) = (offsets.first(), offsets.last());
    first.map_or(0, |first| first.as_usize())..last.map_or(0, |last| last.as_usize())
}

fn view_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>) -> usize {
    let (held, used) = (held_bytes(array), array.total_buffer_bytes_used());
    16 * array.len() + if wastes(held, used) { used } else { held }
}

fn held_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>) -> usize {
    array.data_buffers().iter().map(|buffer| buffer.len()).sum()
}

/// Whether more than a fifth of the held bytes is not used; then copying the used ones is the cheaper way.
///
/// Views may share bytes, so that more can be used than is held.
fn wastes(held: usize, used: usize) -> bool {
    used < held - held / 5
}

fn list_view_bytes<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> usize {
    let span = list_view_span(array);
    2 * array.len() * size_of::<O>() + wire_bytes(&array.values().slice(span.start, span.len()))
}

/// The smallest range of the values that holds all lists which are neither null nor empty.
fn list_view_span<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> Range<usize> {
    let mut span = None;
    for (row, (offset, size)) in array.value_offsets().iter().zip(array.value_sizes()).enumerate() {
        if size.as_usize() > 0 && array.is_valid(row) {
            widen(&mut span, offset.as_usize(), size.as_usize());
        }
    }
    span.unwrap_or(0..0)
}

/// Makes the span hold `len` more values at `start`.
fn widen(span: &mut Option<Range<usize>>, start: usize, len: usize) {
    let span = span.get_or_insert(start..start);
    span.start = span.start.min(start);
    span.end = span.end.max(start + len);
}

fn union_bytes(array: &UnionArray) -> usize {
    let ids = array.len();
    let Some(offsets) = array.offsets() else {
        return ids + array.fields().iter().map(|(id, _)| wire_bytes(array.child(id))).sum::<usize>();
    };
    let spans = union_spans(array, offsets);
    let children = array.fields().iter().map(|(id, _)| {
        let span = spans[id.as_usize()].clone();
        wire_bytes(&array.child(id).slice(span.start, span.len()))
    });
    ids + 4 * ids + children.sum::<usize>()
}

/// For each type id the range of its child that the rows point into.
fn union_spans(array: &UnionArray, offsets: &ScalarBuffer<i32>) -> [Range<usize>; 128] {
    let mut spans = [const { None }; 128];
    for (id, offset) in array.type_ids().iter().zip(offsets.iter()) {
        widen(&mut spans[id.as_usize()], offset.as_usize(), 1);
    }
    spans.map(|span| span.unwrap_or(0..0))
}

fn run_bytes<R: RunEndIndexType>(array: &RunArray<R>) -> usize {
    let span = run_span(array);
    span.len() * size_of::<R::Native>() + wire_bytes(&array.values().slice(span.start, span.len()))
}

/// The runs that the rows lie in.
fn run_span<R: RunEndIndexType>(array: &RunArray<R>) -> Range<usize> {
    if array.is_empty() {
        return 0..0;
    }
    array.get_start_physical_index()..array.get_end_physical_index() + 1
}

fn trim(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !drags(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Utf8View => trim_views::<StringViewType>(array, array.as_string_view()),
        DataType::BinaryView => trim_views::<BinaryViewType>(array, array.as_binary_view()),
        DataType::List(item) => trim_list(array.as_list::<i32>(), item)?,
        DataType::LargeList(item) => trim_list(array.as_list::<i64>(), item)?,
        DataType::Map(entries, sorted) => trim_map(array.as_map(), entries, *sorted)?,
        DataType::ListView(item) => trim_list_view(array.as_list_view::<i32>(), item)?,
        DataType::LargeListView(item) => trim_list_view(array.as_list_view::<i64>(), item)?,
        DataType::FixedSizeList(item, size) => {
            let list = array.as_fixed_size_list();
            let (values, nulls) = (trim(list.values())?, list.nulls().cloned());
            Arc::new(FixedSizeListArray::try_new_with_length(
                FieldRef::clone(item),
                *size,
                values,
                nulls,
                list.len(),
            )?)
        }
        DataType::Struct(_) => trim_struct(array.as_struct())?,
        DataType::Union(_, mode) => trim_union(array.as_union(), *mode)?,
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => trim_run(array.as_run::<Int16Type>())?,
            DataType::Int32 => trim_run(array.as_run::<Int32Type>())?,
            _ => trim_run(array.as_run::<Int64Type>())?,
        },
        _ => Arc::clone(array),
    })
}

fn trim_views<T: ByteViewType>(array: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    if wastes(held_bytes(views), views.total_buffer_bytes_used()) {
        Arc::new(views.gc())
    } else {
        Arc::clone(array)
    }
}

/// Offsets that start at zero.
fn rebase<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> OffsetBuffer<O> {
    match offsets.first() {
        Some(first) if *first != O::zero() => {
            let rebased: ScalarBuffer<O> = offsets.iter().map(|offset| *offset - *first).collect();
            OffsetBuffer::new(rebased)
        }
        _ => offsets.clone(),
    }
}

fn trim_list<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    item: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let span = span(list.offsets());
    let values = trim(&list.values().slice(span.start, span.len()))?;
    let (item, nulls) = (FieldRef::clone(item), list.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(item, rebase(list.offsets()), values, nulls)?))
}

fn trim_map(map: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef, ArrowError> {
    let span = span(map.offsets());
    let values = trim_struct(&map.entries().slice(span.start, span.len()))?;
    let (entries, nulls) = (FieldRef::clone(entries), map.nulls().cloned());
    let values = values.as_struct().clone();
    Ok(Arc::new(MapArray::try_new(entries, rebase(map.offsets()), values, nulls, sorted)?))
}

fn trim_list_view<O: OffsetSizeTrait>(
    list: &GenericListViewArray<O>,
    item: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let span = list_view_span(list);
    let values = trim(&list.values().slice(span.start, span.len()))?;
    let (item, nulls) = (FieldRef::clone(item), list.nulls().cloned());
    if span == (0..list.values().len()) {
        let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
        return Ok(Arc::new(GenericListViewArray::try_new(item, offsets, sizes, values, nulls)?));
    }
    let shown = |row: usize| list.is_valid(row) && list.value_size(row) > O::zero();
    let start = O::usize_as(span.start);
    let rows = 0..list.len();
    let offsets = rows.clone().map(|row| if shown(row) { list.value_offset(row) - start } else { O::zero() });
    let sizes = rows.map(|row| if shown(row) { list.value_size(row) } else { O::zero() });
    let (offsets, sizes) = (offsets.collect(), sizes.collect());
    Ok(Arc::new(GenericListViewArray::try_new(item, offsets, sizes, values, nulls)?))
}

fn trim_struct(array: &StructArray) -> Result<ArrayRef, ArrowError> {
    let columns = array.columns().iter().map(trim).collect::<Result<Vec<_>, _>>()?;
    let (fields, nulls) = (array.fields().clone(), array.nulls().cloned());
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, array.len())?))
}

fn trim_union(array: &UnionArray, mode: UnionMode) -> Result<ArrayRef, ArrowError> {
    let fields = array.fields().clone();
    let ids = array.type_ids().clone();
    let (UnionMode::Dense, Some(offsets)) = (mode, array.offsets()) else {
        let children = fields.iter().map(|(id, _)| trim(array.child(id))).collect::<Result<Vec<_>, _>>()?;
        return Ok(Arc::new(UnionArray::try_new(fields, ids, None, children)?));
    };
    let spans = union_spans(array, offsets);
    let children = fields.iter().map(|(id, _)| {
        let span = &spans[id.as_usize()];
        trim(&array.child(id).slice(span.start, span.len()))
    });
    let children = children.collect::<Result<Vec<_>, _>>()?;
    let offsets = ids.iter().zip(offsets.iter()).map(|(id, offset)| {
        // Offsets are 32 bits, so the start of a span is too.
        offset - spans[id.as_usize()].start as i32
    });
    let offsets = Some(offsets.collect());
    Ok(Arc::new(UnionArray::try_new(fields, ids, offsets, children)?))
}

fn trim_run<R: RunEndIndexType>(array: &RunArray<R>) -> Result<ArrayRef, ArrowError> {
    let span = run_span(array);
    let values = trim(&array.values().slice(span.start, span.len()))?;
    // The last run ends with the rows, not with the array that they are a slice of.
    let ends: PrimitiveArray<R> =
        PrimitiveArray::from_iter_values(array.run_ends().sliced_values().take(span.len()));
    // Not `RunArray::try_new`: it names the children itself, and the schema has the right to other names.
    let data = ArrayData::builder(array.data_type().clone())
        .len(array.len())
        .add_child_data(ends.into_data())
        .add_child_data(values.to_data())
        .build()?;
    Ok(make_array(data))
}
