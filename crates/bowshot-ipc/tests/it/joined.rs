//! The one large message of a long stream: batches that go out as one, and whose memory is still their own.

use crate::cases::{SHAPES, Shape, batch, types};
use crate::sharing::{elsewhere, place, plain_columns};
use crate::wire::{assert_same, decode, options, parse};
use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_api::Compression;
use bowshot_ipc::{EncodeOptions, Encoder, Error, FlightBody, LargeMessage, Primed};
use bytes::{Buf, Bytes};
use futures::stream;
use http_body_util::BodyExt;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

/// Rows of the parts of a batch, in turn: bitmaps of most of them begin and end within a byte.
const PARTS: [usize; 5] = [37, 64, 0, 1, 26];

/// What goes out at once, and where its pieces lie.
struct Sent {
    bytes: Bytes,
    places: Vec<Range<usize>>,
}

fn large_message(bytes: usize) -> LargeMessage {
    LargeMessage { bytes, primed: Primed::default() }
}

/// What a stream of batches sends, of which one message may have about so many bytes.
async fn sent(batches: Vec<RecordBatch>, large: usize, compression: Compression) -> Vec<Sent> {
    let options = EncodeOptions { large_message: Some(large_message(large)), ..options(64, compression) };
    let encoder = Encoder::new(batches[0].schema(), options).unwrap();
    let batches = stream::iter(batches.into_iter().map(Ok::<_, Error>));
    let mut body = FlightBody::new(batches, encoder, |error| (13, error.to_string()));
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.unwrap().into_data() {
            Ok(mut data) => {
                let mut pieces = [IoSlice::new(&[]); 64];
                let count = data.chunks_vectored(&mut pieces);
                let places = pieces[..count].iter().map(|piece| place(piece)).collect();
                all.push(Sent { places, bytes: data.copy_to_bytes(data.remaining()) });
            }
            Err(frame) => assert_eq!(frame.into_trailers().unwrap()["grpc-status"], "0"),
        }
    }
    all
}

fn received(sent: &[Sent]) -> Vec<RecordBatch> {
    let bytes = sent.iter().map(|sent| sent.bytes.as_ref()).collect::<Vec<_>>();
    decode(parse(bytes.concat().into()))
}

/// Rows of the message that has most.
fn most_rows(sent: &[Sent]) -> usize {
    received(sent).iter().map(RecordBatch::num_rows).max().unwrap_or_default()
}

/// The batch in parts of [`PARTS`] rows.
fn parts(whole: &RecordBatch) -> Vec<RecordBatch> {
    let mut parts = Vec::new();
    let mut row = 0;
    while row < whole.num_rows() {
        let rows = PARTS[parts.len() % PARTS.len()].min(whole.num_rows() - row);
        parts.push(whole.slice(row, rows));
        row += rows;
    }
    parts
}

#[tokio::test]
async fn every_type_arrives_as_it_was() {
    let mut joined = 0;
    for (name, data_type) in types() {
        for shape in [SHAPES[5], SHAPES[6], Shape { nulls: false, ..SHAPES[6] }] {
            let whole = batch(&data_type, shape);
            let bytes = whole.get_array_memory_size() / 8;
            let sent = sent(parts(&whole), bytes, Compression::None).await;
            joined += usize::from(most_rows(&sent) > PARTS[1]);
            assert_same(&whole, &received(&sent), &name);
        }
    }
    // Numbers, times, decimals, truth values, texts and bytes of a fixed size; of all three shapes but the smallest ones.
    assert!(joined > 80, "{joined} streams had a message of several batches");
}

#[tokio::test]
async fn what_goes_out_is_the_memory_of_the_batches() {
    for nulls in [false, true] {
        let whole = plain_columns(65_536, nulls).project(&[0, 1, 2, 3]).unwrap();
        let batches: Vec<_> = (0..8).map(|part| whole.slice(part * 8_192, 8_192)).collect();
        let bytes = whole.get_array_memory_size();
        let sent = sent(batches, bytes / 3, Compression::None).await;
        let large = sent.iter().max_by_key(|sent| sent.bytes.len()).unwrap();
        let len = large.bytes.len();
        assert!(len > bytes / 4, "{len} of {bytes} bytes are the large message");
        assert_eq!(large.places.iter().map(Range::len).sum::<usize>(), len);
        // Offsets of the texts, bitmaps of four columns, and the flatbuffer are its own.
        let rows = most_rows(&sent);
        let own = rows * 4 + if nulls { rows / 2 } else { 0 } + 2_048;
        let copied = elsewhere(&whole, large.places.iter().cloned());
        assert!(copied < own, "{copied} of {len} bytes were copied");
    }
}

#[tokio::test]
async fn a_batch_that_does_not_fit_the_others_ends_the_stream() {
    let (numbers, texts) = (batch(&DataType::Int32, SHAPES[6]), batch(&DataType::Utf8, SHAPES[6]));
    let options =
        EncodeOptions { large_message: Some(large_message(13_000)), ..options(64, Compression::None) };
    let encoder = Encoder::new(numbers.schema(), options).unwrap();
    // The first goes out alone, and the other three together are as large as the large message.
    let batches = [&numbers, &numbers.slice(0, 1_500), &texts.slice(0, 10), &numbers].map(Clone::clone);
    let batches = stream::iter(batches.into_iter().map(Ok::<_, Error>));
    let body = FlightBody::new(batches, encoder, |error| (13, error.to_string()));
    let end = body.collect().await.unwrap().trailers().unwrap().clone();
    assert_eq!(end["grpc-status"], "13");
    assert!(end["grpc-message"].to_str().unwrap().contains("announced"));
}

#[tokio::test]
async fn bitmaps_that_come_with_joining_count() {
    // Truth values. An eighth of the columns of each batch has a null: joined, all rows of all columns have a bitmap.
    let batches: Vec<_> = (0..64).map(|at| truth_values(64, at)).collect();
    let bytes = 64 * 1_024 * 64 / 8;
    let large = bytes / 4;
    let sent = sent(batches, large, Compression::None).await;
    let longest = sent.iter().map(|sent| sent.bytes.len()).max().unwrap();
    let around = 64 * 200;
    assert!(longest > large, "{longest} bytes are the large message");
    assert!(
        longest <= large + large / 2 + around,
        "{longest} bytes are more than half as much again as {large}"
    );
    assert_eq!(received(&sent).iter().map(RecordBatch::num_rows).sum::<usize>(), 64 * 1_024);
}

/// 1,024 rows of truth values; every eighth column has a null, others in the next batch.
fn truth_values(columns: usize, batch: usize) -> RecordBatch {
    let column = |at: usize| {
        let values = (0..1_024).map(|row| (at % 8 != batch % 8 || row != 5).then_some(row % 3 == 0));
        Arc::new(BooleanArray::from_iter(values)) as ArrayRef
    };
    let fields: Vec<_> =
        (0..columns).map(|at| Field::new(format!("c{at}"), DataType::Boolean, true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), (0..columns).map(column).collect()).unwrap()
}

#[tokio::test]
async fn what_is_compressed_has_no_large_message() {
    let whole = batch(&DataType::Int64, SHAPES[6]);
    for compression in [Compression::Lz4, Compression::Zstd] {
        let sent = sent(parts(&whole), 8_000, compression).await;
        assert!(most_rows(&sent) <= PARTS[1]);
    }
}
