//! Invariant: between engine and socket no data buffer is copied.

use crate::cases::{Shape, batch};
use crate::make::{Numbers, array};
use crate::wire::{encode, options};
use arrow::array::{Array, ArrayData, ArrayRef, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_api::Compression;
use bowshot_ipc::Message;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

fn ranges(data: &ArrayData, out: &mut Vec<Range<usize>>) {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        out.push(place(buffer));
    }
    data.child_data().iter().for_each(|child| ranges(child, out));
}

/// Bytes of the frames that do not lie in the batch's own buffers.
fn foreign(batch: &RecordBatch, frames: &[Bytes]) -> usize {
    elsewhere(batch, frames.iter().map(|frame| place(frame)))
}

/// Where some bytes lie.
pub(crate) fn place(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr() as usize;
    start..start + bytes.len()
}

/// Bytes of the places that are not part of the batch's own buffers.
pub(crate) fn elsewhere(batch: &RecordBatch, places: impl Iterator<Item = Range<usize>>) -> usize {
    let mut own = Vec::new();
    batch.columns().iter().for_each(|column| ranges(&column.to_data(), &mut own));
    let is_own =
        |place: &Range<usize>| own.iter().any(|own| own.start <= place.start && place.end <= own.end);
    places.filter(|place| !is_own(place)).map(|place| place.len()).sum()
}

pub(crate) fn plain_columns(rows: usize, nulls: bool) -> RecordBatch {
    let mut n = Numbers::new(3);
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    let types = [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Decimal128(20, 2), list];
    let fields: Vec<Field> = types.iter().map(|t| Field::new("c", t.clone(), true)).collect();
    let columns = types.iter().map(|t| array(t, rows, nulls, &mut n)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn frames_are_the_arrays_memory() {
    for nulls in [false, true] {
        let batch = plain_columns(16_384, nulls);
        let messages = encode(std::slice::from_ref(&batch), options(64 << 20, Compression::None));
        assert_eq!(messages.len(), 2);
        let header = messages[1].header.len();
        let frames = messages.into_iter().skip(1).flat_map(Message::into_frames).collect::<Vec<_>>();
        let copied = foreign(&batch, &frames) - header;
        assert!(copied < 400, "{copied} bytes beside the flatbuffer");
    }
}

#[test]
fn slices_share_too() {
    // Fixed-width columns, validity included, share all; what starts in the middle needs offsets of its own.
    let fixed = plain_columns(65_536, true).project(&[0, 1, 3]).unwrap();
    let messages = encode(std::slice::from_ref(&fixed), options(200_000, Compression::None));
    assert!(messages.len() > 9, "{}", messages.len());
    for message in messages.into_iter().skip(1) {
        let header = message.header.len();
        let copied = foreign(&fixed, &message.into_frames()) - header;
        // Bitmaps below a kilobyte are gathered instead of shared: at most one for each column.
        assert!(copied < 3 * 1024 + 200, "{copied} bytes beside the flatbuffer");
    }
}

#[test]
fn views_do_not_drag_pages_along() {
    let column = batch(&DataType::Utf8View, Shape { rows: 50_000, nulls: false, margin: 0 });
    let whole = encode(std::slice::from_ref(&column), options(64 << 20, Compression::None));
    let slice = column.slice(100, 10);
    let part = encode(std::slice::from_ref(&slice), options(64 << 20, Compression::None));
    assert!(part[1].body_len() < 2_000, "{} of {}", part[1].body_len(), whole[1].body_len());
    // What lies together is shared: only the views, which count from the start of their part, are new.
    let views = 16 * 20_000 / 64 * 64;
    let half = column.slice(10_000, 20_000);
    let half = encode(std::slice::from_ref(&half), options(64 << 20, Compression::None));
    let header = half[1].header.len();
    let copied =
        foreign(&column, &half.into_iter().skip(1).flat_map(Message::into_frames).collect::<Vec<_>>());
    assert!(copied < views + header + 400, "{copied} bytes beside the flatbuffer");
    // All strings are used, so nothing is gained by copying them.
    let frames = whole.into_iter().skip(1).flat_map(Message::into_frames).collect::<Vec<_>>();
    let views: &StringViewArray = column.column(0).as_any().downcast_ref().unwrap();
    assert!(views.data_buffers().iter().any(|buffer| frames.iter().any(|f| f.as_ptr() == buffer.as_ptr())));
}

#[test]
fn unions_and_list_views_do_not_drag_children_along() {
    let view = DataType::ListView(Arc::new(Field::new("item", DataType::Int64, true)));
    for (name, data_type) in crate::cases::types() {
        if name != "dense union" && data_type != view {
            continue;
        }
        let whole = batch(&data_type, Shape { rows: 50_000, nulls: false, margin: 0 });
        let total: usize = encode(std::slice::from_ref(&whole), options(50_000, Compression::None))
            .iter()
            .map(Message::body_len)
            .sum();
        let single = encode(std::slice::from_ref(&whole), options(64 << 20, Compression::None));
        assert!(
            total < single[1].body_len() * 11 / 10,
            "{name}: {total} split, {} whole",
            single[1].body_len()
        );
    }
}

#[test]
fn memory_is_freed_with_the_last_frame() {
    let column: ArrayRef = array(&DataType::Int64, 10_000, false, &mut Numbers::new(1));
    let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
    let buffer = batch.column(0).to_data().buffers()[0].clone();
    let messages = encode(std::slice::from_ref(&batch), options(64 << 20, Compression::None));
    drop(batch);
    let frames = messages.into_iter().flat_map(Message::into_frames).collect::<Vec<_>>();
    assert!(buffer.strong_count() > 1, "the frames hold the memory");
    drop(frames);
    assert_eq!(buffer.strong_count(), 1, "and let it go");
}
