//! Which part of its children a slice of an array needs, and its bytes on the wire.

use crate::dictionary::used_values;
use arrow::array::types::{ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow::array::{
    Array, AsArray, ByteView, GenericByteViewArray, GenericListViewArray, MAX_INLINE_VIEW_LEN,
    OffsetSizeTrait, RunArray, UnionArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use std::ops::Range;

/// Counts the bytes that rows take in message bodies, without padding.
///
/// The values of a dictionary travel once per stream and not once per slice, so they do not count, unless they take more
/// than the limit: then each slice brings those values along that it uses, and they count with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    pub(crate) dictionary_limit: usize,
}

impl Measure {
    pub(crate) fn bytes(self, array: &dyn Array) -> usize {
        let rows = array.len();
        let validity = if array.null_count() > 0 { rows.div_ceil(8) } else { 0 };
        validity + self.value_bytes(array, rows)
    }

    /// Whether the values of a dictionary are too large to be sent as a whole.
    pub(crate) fn is_oversize(self, values: &dyn Array) -> bool {
        self.bytes(values) > self.dictionary_limit
    }

    fn value_bytes(self, array: &dyn Array, rows: usize) -> usize {
        match array.data_type() {
            DataType::Null => 0,
            DataType::Boolean => rows.div_ceil(8),
            DataType::Utf8 => text_bytes(array.as_string::<i32>().offsets()),
            DataType::LargeUtf8 => text_bytes(array.as_string::<i64>().offsets()),
            DataType::Binary => text_bytes(array.as_binary::<i32>().offsets()),
            DataType::LargeBinary => text_bytes(array.as_binary::<i64>().offsets()),
            DataType::Utf8View => view_bytes(array.as_string_view()),
            DataType::BinaryView => view_bytes(array.as_binary_view()),
            DataType::FixedSizeBinary(width) => rows * width.as_usize(),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.list_bytes(list.offsets(), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                self.list_bytes(list.offsets(), list.values())
            }
            DataType::Map(_, _) => self.list_bytes(array.as_map().offsets(), array.as_map().entries()),
            DataType::ListView(_) => self.list_view_bytes(array.as_list_view::<i32>()),
            DataType::LargeListView(_) => self.list_view_bytes(array.as_list_view::<i64>()),
            DataType::FixedSizeList(_, _) => self.bytes(array.as_fixed_size_list().values()),
            DataType::Struct(_) => array.as_struct().columns().iter().map(|column| self.bytes(column)).sum(),
            DataType::Union(_, _) => self.union_bytes(array.as_union()),
            DataType::Dictionary(key, _) => {
                let values = array.as_any_dictionary().values();
                let extra = if self.is_oversize(values) { self.bytes(&used_values(array)) } else { 0 };
                rows * key.primitive_width().unwrap_or(8) + extra
            }
            DataType::RunEndEncoded(ends, _) => match ends.data_type() {
                DataType::Int16 => self.run_bytes(array.as_run::<Int16Type>()),
                DataType::Int32 => self.run_bytes(array.as_run::<Int32Type>()),
                _ => self.run_bytes(array.as_run::<Int64Type>()),
            },
            fixed => rows * fixed.primitive_width().unwrap_or(16),
        }
    }

    fn part_bytes(self, values: &dyn Array, span: Range<usize>) -> usize {
        self.bytes(&values.slice(span.start, span.len()))
    }

    fn list_bytes<O: OffsetSizeTrait>(self, offsets: &OffsetBuffer<O>, values: &dyn Array) -> usize {
        size_of_val(&offsets[..]) + self.part_bytes(values, list_span(offsets))
    }

    fn list_view_bytes<O: OffsetSizeTrait>(self, array: &GenericListViewArray<O>) -> usize {
        2 * array.len() * size_of::<O>() + self.part_bytes(array.values(), list_view_span(array))
    }

    fn union_bytes(self, array: &UnionArray) -> usize {
        let ids = array.len();
        let Some(offsets) = array.offsets() else {
            return ids + array.fields().iter().map(|(id, _)| self.bytes(array.child(id))).sum::<usize>();
        };
        let spans = union_spans(array, offsets);
        let children = array
            .fields()
            .iter()
            .map(|(id, _)| self.part_bytes(array.child(id), spans[id.as_usize()].clone()));
        5 * ids + children.sum::<usize>()
    }

    fn run_bytes<R: RunEndIndexType>(self, array: &RunArray<R>) -> usize {
        let span = run_span(array);
        span.len() * size_of::<R::Native>() + self.part_bytes(array.values(), span)
    }
}

fn text_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> usize {
    size_of_val(&offsets[..]) + list_span(offsets).len()
}

/// Which bytes of its data buffers a view array needs, and the cheapest way to send no others.
#[derive(Debug)]
pub(crate) enum ViewData {
    /// All buffers as they are.
    Whole { bytes: usize },
    /// A part of each buffer: views that follow each other usually point to bytes that do.
    Parts {
        bytes: usize,
        /// For each buffer the part of it.
        parts: Vec<Range<usize>>,
    },
    /// Only what the views point to, copied together.
    Copy { bytes: usize },
}

impl ViewData {
    pub(crate) fn new<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Self {
        let buffers = array.data_buffers();
        let mut parts = vec![BufferRange { start: usize::MAX, end: 0 }; buffers.len()];
        let mut used = 0;
        let mut count = |raw: &u128| {
            let view = ByteView::from(*raw);
            if view.length > MAX_INLINE_VIEW_LEN
                && let Some(part) = parts.get_mut(view.buffer_index as usize)
            {
                let (start, len) = (view.offset as usize, view.length as usize);
                used += len;
                part.start = part.start.min(start);
                part.end = part.end.max(start + len);
            }
        };
        // A loop for each case: this is the inner loop of sending strings.
        match array.nulls() {
            None => array.views().iter().for_each(count),
            Some(nulls) => nulls.valid_indices().for_each(|row| count(&array.views()[row])),
        }
        let parts: Vec<_> = parts.into_iter().map(BufferRange::range).collect();
        let held = buffers.iter().map(|buffer| buffer.len()).sum();
        let spanned = parts.iter().map(|part| part.len()).sum();
        // A fifth too much costs less than a pass over the data. Views may share bytes: then more is used than is held.
        let fits = |bytes: usize| used >= bytes - bytes / 5;
        match () {
            () if fits(held) => Self::Whole { bytes: held },
            () if fits(spanned) => Self::Parts { bytes: spanned, parts },
            () => Self::Copy { bytes: used },
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Whole { bytes } | Self::Parts { bytes, .. } | Self::Copy { bytes } => *bytes,
        }
    }
}

/// A part of a buffer while it grows; the end is below the start as long as it is empty.
#[derive(Clone, Copy)]
struct BufferRange {
    start: usize,
    end: usize,
}

impl BufferRange {
    fn range(self) -> Range<usize> {
        if self.start < self.end { self.start..self.end } else { 0..0 }
    }
}

fn view_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>) -> usize {
    16 * array.len() + ViewData::new(array).bytes()
}

/// What the offsets cover of the values.
pub(crate) fn list_span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> Range<usize> {
    let (first, last) = (offsets.first(), offsets.last());
    first.map_or(0, |first| first.as_usize())..last.map_or(0, |last| last.as_usize())
}

/// The smallest range of the values that holds all lists which are neither null nor empty.
pub(crate) fn list_view_span<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> Range<usize> {
    let mut span = None;
    for (row, (offset, size)) in array.value_offsets().iter().zip(array.value_sizes()).enumerate() {
        if size.as_usize() > 0 && array.is_valid(row) {
            widen(&mut span, offset.as_usize(), size.as_usize());
        }
    }
    span.unwrap_or(0..0)
}

/// For each type id the range of its child that the rows of a dense union point into.
pub(crate) fn union_spans(array: &UnionArray, offsets: &ScalarBuffer<i32>) -> [Range<usize>; 128] {
    let mut spans = [const { None }; 128];
    for (id, offset) in array.type_ids().iter().zip(offsets.iter()) {
        widen(&mut spans[id.as_usize()], offset.as_usize(), 1);
    }
    spans.map(|span| span.unwrap_or(0..0))
}

/// Makes the span hold `len` more values at `start`.
fn widen(span: &mut Option<Range<usize>>, start: usize, len: usize) {
    let span = span.get_or_insert(start..start);
    span.start = span.start.min(start);
    span.end = span.end.max(start + len);
}

/// The runs that the rows lie in.
pub(crate) fn run_span<R: RunEndIndexType>(array: &RunArray<R>) -> Range<usize> {
    if array.is_empty() {
        return 0..0;
    }
    array.get_start_physical_index()..array.get_end_physical_index() + 1
}
