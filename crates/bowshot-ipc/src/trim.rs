//! Rebuilds slices of types that would send more than their rows: views (whole data buffers), dense unions and list views (whole children),
//! dictionaries larger than a message; and of two types that Arrow's encoder gets wrong: unions in a list that does not start at its first
//! value, and runs without rows. Other columns are not touched.

use crate::dictionary::shrink;
use crate::error::{Error, Result};
use crate::slice_size::{Measure, ViewData, list_span, list_view_span, run_span, union_spans};
use arrow::array::types::{
    BinaryViewType, ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType, StringViewType,
};
use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, ByteView, FixedSizeListArray, GenericByteViewArray,
    GenericListArray, GenericListViewArray, MAX_INLINE_VIEW_LEN, MapArray, OffsetSizeTrait, PrimitiveArray,
    RecordBatchOptions, RunArray, StructArray, UnionArray, make_array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// The batch without what its arrays drag along; columns that drag nothing are shared.
pub(crate) fn trim_batch(batch: &RecordBatch, measure: Measure) -> Result<RecordBatch> {
    if !batch.columns().iter().any(|column| drags(column.data_type())) {
        return Ok(batch.clone());
    }
    let trim = Trim(measure);
    let columns = batch.columns().iter().map(|column| trim.array(column)).collect::<Result<Vec<_>, _>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(batch.schema(), columns, &options))
        .map_err(Error::Encode)
}

/// Whether slices of this type may drag more along than they show.
pub(crate) fn drags(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Dictionary(_, _)
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

struct Trim(Measure);

impl Trim {
    fn array(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        if !drags(array.data_type()) {
            return Ok(Arc::clone(array));
        }
        match array.data_type() {
            DataType::Utf8View => Ok(views::<StringViewType>(array, array.as_string_view())),
            DataType::BinaryView => Ok(views::<BinaryViewType>(array, array.as_binary_view())),
            DataType::List(item) => self.list(array.as_list::<i32>(), item),
            DataType::LargeList(item) => self.list(array.as_list::<i64>(), item),
            DataType::Map(entries, sorted) => self.map(array.as_map(), entries, *sorted),
            DataType::ListView(item) => self.list_view(array.as_list_view::<i32>(), item),
            DataType::LargeListView(item) => self.list_view(array.as_list_view::<i64>(), item),
            DataType::FixedSizeList(item, size) => self.fixed_list(array.as_fixed_size_list(), item, *size),
            DataType::Struct(_) => self.structure(array.as_struct()),
            DataType::Union(_, _) => self.union(array.as_union()),
            DataType::Dictionary(_, _) if self.0.is_oversize(array.as_any_dictionary().values()) => {
                shrink(array)
            }
            DataType::RunEndEncoded(ends, _) => match ends.data_type() {
                DataType::Int16 => self.run(array.as_run::<Int16Type>()),
                DataType::Int32 => self.run(array.as_run::<Int32Type>()),
                _ => self.run(array.as_run::<Int64Type>()),
            },
            _ => Ok(Arc::clone(array)),
        }
    }

    fn part(&self, values: &ArrayRef, span: &Range<usize>) -> Result<ArrayRef, ArrowError> {
        self.array(&values.slice(span.start, span.len()))
    }

    fn list<O: OffsetSizeTrait>(
        &self,
        list: &GenericListArray<O>,
        item: &FieldRef,
    ) -> Result<ArrayRef, ArrowError> {
        let values = self.part(list.values(), &list_span(list.offsets()))?;
        let (item, nulls) = (FieldRef::clone(item), list.nulls().cloned());
        Ok(Arc::new(GenericListArray::try_new(item, rebase(list.offsets()), values, nulls)?))
    }

    fn fixed_list(
        &self,
        list: &FixedSizeListArray,
        item: &FieldRef,
        size: i32,
    ) -> Result<ArrayRef, ArrowError> {
        let (item, values, nulls) =
            (FieldRef::clone(item), self.array(list.values())?, list.nulls().cloned());
        Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, size, values, nulls, list.len())?))
    }

    fn map(&self, map: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef, ArrowError> {
        let span = list_span(map.offsets());
        let values = self.structure(&map.entries().slice(span.start, span.len()))?;
        let (entries, nulls) = (FieldRef::clone(entries), map.nulls().cloned());
        let values = values.as_struct().clone();
        Ok(Arc::new(MapArray::try_new(entries, rebase(map.offsets()), values, nulls, sorted)?))
    }

    fn list_view<O: OffsetSizeTrait>(
        &self,
        list: &GenericListViewArray<O>,
        item: &FieldRef,
    ) -> Result<ArrayRef, ArrowError> {
        let span = list_view_span(list);
        let values = self.part(list.values(), &span)?;
        let (item, nulls) = (FieldRef::clone(item), list.nulls().cloned());
        if span == (0..list.values().len()) {
            let (offsets, sizes) = (list.offsets().clone(), list.sizes().clone());
            return Ok(Arc::new(GenericListViewArray::try_new(item, offsets, sizes, values, nulls)?));
        }
        let shown = |row: usize| list.is_valid(row) && list.value_size(row) > O::zero();
        let start = O::usize_as(span.start);
        let rows = 0..list.len();
        let offsets =
            rows.clone().map(|row| if shown(row) { list.value_offset(row) - start } else { O::zero() });
        let sizes = rows.map(|row| if shown(row) { list.value_size(row) } else { O::zero() });
        let (offsets, sizes) = (offsets.collect(), sizes.collect());
        Ok(Arc::new(GenericListViewArray::try_new(item, offsets, sizes, values, nulls)?))
    }

    fn structure(&self, array: &StructArray) -> Result<ArrayRef, ArrowError> {
        let columns =
            array.columns().iter().map(|column| self.array(column)).collect::<Result<Vec<_>, _>>()?;
        let (fields, nulls) = (array.fields().clone(), array.nulls().cloned());
        Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, array.len())?))
    }

    fn union(&self, array: &UnionArray) -> Result<ArrayRef, ArrowError> {
        let fields = array.fields().clone();
        let ids = array.type_ids().clone();
        let Some(offsets) = array.offsets() else {
            let children = fields.iter().map(|(id, _)| self.array(array.child(id)));
            let children = children.collect::<Result<Vec<_>, _>>()?;
            return Ok(Arc::new(UnionArray::try_new(fields, ids, None, children)?));
        };
        let spans = union_spans(array, offsets);
        let children = fields.iter().map(|(id, _)| self.part(array.child(id), &spans[id.as_usize()]));
        let children = children.collect::<Result<Vec<_>, _>>()?;
        // Offsets are 32 bits, so the start of a span is too.
        let offsets =
            ids.iter().zip(offsets.iter()).map(|(id, offset)| offset - spans[id.as_usize()].start as i32);
        let offsets = Some(offsets.collect());
        Ok(Arc::new(UnionArray::try_new(fields, ids, offsets, children)?))
    }

    fn run<R: RunEndIndexType>(&self, array: &RunArray<R>) -> Result<ArrayRef, ArrowError> {
        let span = run_span(array);
        let values = self.part(array.values(), &span)?;
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
}

fn views<T: ByteViewType>(array: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    match ViewData::new(views) {
        ViewData::Whole { .. } => Arc::clone(array),
        ViewData::Parts { parts, .. } => Arc::new(view_parts(views, &parts)),
        ViewData::Copy { .. } => Arc::new(views.gc()),
    }
}

/// The same views over parts of their buffers.
#[expect(unsafe_code, reason = "the checked way would look at every byte of the data again")]
fn view_parts<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    parts: &[Range<usize>],
) -> GenericByteViewArray<T> {
    // Views count their buffers, so parts without bytes are left out and the others move up.
    let mut places = Vec::with_capacity(parts.len());
    let mut buffers = Vec::new();
    for (buffer, part) in array.data_buffers().iter().zip(parts) {
        places.push(buffers.len() as u32);
        if !part.is_empty() {
            buffers.push(buffer.slice_with_length(part.start, part.len()));
        }
    }
    let move_view = |raw: u128| {
        let view = ByteView::from(raw);
        if view.length <= MAX_INLINE_VIEW_LEN {
            return raw;
        }
        let old = view.buffer_index as usize;
        view.with_buffer_index(places[old]).with_offset(view.offset - parts[old].start as u32).as_u128()
    };
    let moved: ScalarBuffer<u128> = match array.nulls() {
        None => array.views().iter().map(|raw| move_view(*raw)).collect(),
        Some(nulls) => {
            let rows = array.views().iter().zip(nulls.iter());
            rows.map(|(raw, valid)| if valid { move_view(*raw) } else { 0 }).collect()
        }
    };
    // SAFETY: views that are null or inline need no buffer. Each other view points to the same bytes as in `array`, which
    // is valid: its part holds all bytes that a view which is not null points to (`ViewData::new`), so the offset from
    // the start of the part is not negative and the bytes end within the part; length and prefix are unchanged.
    unsafe { GenericByteViewArray::new_unchecked(moved, buffers, array.nulls().cloned()) }
}

fn rebase<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> OffsetBuffer<O> {
    match offsets.first() {
        Some(first) if *first != O::zero() => {
            let rebased: ScalarBuffer<O> = offsets.iter().map(|offset| *offset - *first).collect();
            OffsetBuffer::new(rebased)
        }
        _ => offsets.clone(),
    }
}
