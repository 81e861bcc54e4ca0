//! The HTTP body: schema at once, frames, trailers, and the end of the query when it is dropped.

use crate::cases::{SHAPES, batch, types};
use crate::wire::{assert_same, decode, options, parse};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use bowshot_api::Compression;
use bowshot_ipc::{Decoder, Encoder, Error, FlightBody};
use bytes::{Buf, Bytes};
use futures::channel::mpsc;
use futures::{FutureExt, StreamExt, stream};
use http_body_util::BodyExt;

#[derive(Debug)]
struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

fn status(failure: Failure) -> (u32, String) {
    (13, failure.0)
}

fn encoder(batch: &RecordBatch, compression: Compression) -> Encoder {
    Encoder::new(batch.schema(), options(2_000, compression)).unwrap()
}

async fn collect(body: FlightBody) -> (Bytes, String, Option<String>) {
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().unwrap().clone();
    let message = trailers.get("grpc-message").map(|message| message.to_str().unwrap().to_owned());
    let status = trailers["grpc-status"].to_str().unwrap().to_owned();
    (collected.to_bytes(), status, message)
}

#[tokio::test]
async fn batches_arrive_with_status_zero() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for (name, data_type) in types() {
            let batch = batch(&data_type, SHAPES[5]);
            let batches = stream::iter([Ok::<_, Failure>(batch.clone())]);
            let body = FlightBody::new(batches, encoder(&batch, compression), status);
            let (bytes, code, message) = collect(body).await;
            assert_eq!((code.as_str(), message), ("0", None));
            assert_same(&batch, &decode(parse(bytes)), &name);
        }
    }
}

#[tokio::test]
async fn the_schema_does_not_wait_for_the_first_batch() {
    let batch = batch(&DataType::Int32, SHAPES[0]);
    let batches = stream::pending::<Result<RecordBatch, Failure>>();
    let mut body = FlightBody::new(batches, encoder(&batch, Compression::None), status);
    let mut first = body.frame().now_or_never().unwrap().unwrap().unwrap().into_data().unwrap();
    let messages = parse(first.copy_to_bytes(first.remaining()));
    let mut decoder = Decoder::new();
    decoder.decode(&messages[0].data_header, Bytes::new()).unwrap();
    assert_eq!(decoder.schema(), Some(&batch.schema()));
    assert!(body.frame().now_or_never().is_none(), "nothing more until a batch comes");
}

#[tokio::test]
async fn an_error_in_the_middle_ends_the_stream_with_its_message() {
    let batch = batch(&DataType::Int32, SHAPES[0]);
    let failure = Failure("50% of `é`\nlost".to_owned());
    let batches = stream::iter([Ok(batch.clone()), Err(failure), Ok(batch.clone())]);
    let body = FlightBody::new(batches, encoder(&batch, Compression::None), status);
    let (bytes, code, message) = collect(body).await;
    assert_eq!(code, "13");
    assert_eq!(message.unwrap(), "50%25 of `%C3%A9`%0Alost");
    assert_same(&batch, &decode(parse(bytes)), "the batch before the error");
}

#[tokio::test]
async fn a_message_too_long_for_a_header_is_cut() {
    let batch = batch(&DataType::Int32, SHAPES[0]);
    let batches = stream::iter([Err(Failure("ärger".repeat(10_000)))]);
    let body = FlightBody::new(batches, encoder(&batch, Compression::None), status);
    let (_, _, message) = collect(body).await;
    let message = message.unwrap();
    assert!(message.starts_with("%C3%A4rger%C3%A4rger") && message.ends_with("..."), "{message}");
    assert!(message.len() < 4_200, "{}", message.len());
}

#[tokio::test]
async fn a_batch_that_does_not_fit_becomes_an_error() {
    for compression in [Compression::None, Compression::Lz4] {
        let (announced, other) = (batch(&DataType::Int32, SHAPES[0]), batch(&DataType::Utf8, SHAPES[0]));
        let batches = stream::iter([Ok::<_, Failure>(other)]);
        let body = FlightBody::new(batches, encoder(&announced, compression), status);
        let (_, code, message) = collect(body).await;
        assert_eq!(code, "13");
        assert!(message.unwrap().contains("announced"));
    }
}

#[tokio::test]
async fn dropping_the_body_drops_the_stream() {
    let batch = batch(&DataType::Int32, SHAPES[0]);
    let (mut sender, receiver) = mpsc::channel::<Result<RecordBatch, Failure>>(0);
    let mut body = FlightBody::new(receiver, encoder(&batch, Compression::None), status);
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert!(sender.try_send(Ok(batch)).unwrap_err().is_disconnected());
}

#[tokio::test]
async fn an_error_drops_the_stream_before_the_client_has_read_all() {
    let batch = batch(&DataType::Int32, SHAPES[0]);
    let (sender, receiver) = mpsc::unbounded();
    sender.unbounded_send(Err(Failure("stop".to_owned()))).unwrap();
    let mut body = FlightBody::new(receiver.boxed(), encoder(&batch, Compression::None), status);
    body.frame().await.unwrap().unwrap();
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "13");
    assert!(sender.unbounded_send(Ok(batch)).is_err());
    assert!(body.frame().await.is_none());
}
