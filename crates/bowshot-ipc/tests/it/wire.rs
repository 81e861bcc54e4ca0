//! Reads the frames as a Flight client does: gRPC prefix, protobuf, Arrow.

use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::StreamReader;
use bowshot_api::Compression;
use bowshot_ipc::{Decoded, Decoder, EncodeOptions, Encoder, Message};
use bytes::Bytes;
use prost::Message as _;

/// `arrow.flight.protocol.FlightData` without its descriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FlightData {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) data_header: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) app_metadata: Bytes,
    #[prost(bytes = "bytes", tag = "1000")]
    pub(crate) data_body: Bytes,
}

pub(crate) fn options(message_bytes: usize, compression: Compression) -> EncodeOptions {
    EncodeOptions { compression, message_bytes, keep_dictionaries: true, ..EncodeOptions::default() }
}

/// Schema message and all messages of the batches.
pub(crate) fn encode(batches: &[RecordBatch], options: EncodeOptions) -> Vec<Message> {
    let mut encoder = Encoder::new(batches[0].schema(), options).unwrap();
    let mut messages = vec![encoder.schema_message().unwrap()];
    for batch in batches {
        messages.append(&mut encoder.encode(batch).unwrap());
    }
    messages
}

/// Concatenated frames to the messages in them.
pub(crate) fn parse(mut bytes: Bytes) -> Vec<FlightData> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let prefix = bytes.split_to(5);
        assert_eq!(prefix[0], 0, "compressed flag of gRPC");
        let len = u32::from_be_bytes(prefix[1..5].try_into().unwrap());
        messages.push(FlightData::decode(bytes.split_to(len as usize)).unwrap());
    }
    messages
}

/// Messages to frames, to protobuf, to batches.
pub(crate) fn through_flight(messages: Vec<Message>) -> Vec<RecordBatch> {
    let frames: Vec<Bytes> = messages.into_iter().flat_map(Message::into_frames).collect();
    assert!(frames.iter().all(|frame| !frame.is_empty()));
    decode(parse(frames.concat().into()))
}

pub(crate) fn decode(messages: Vec<FlightData>) -> Vec<RecordBatch> {
    let mut decoder = Decoder::new();
    let mut batches = Vec::new();
    for message in messages {
        match decoder.decode(&message.data_header, message.data_body).unwrap() {
            Decoded::Batch(batch) => batches.push(batch),
            Decoded::Schema(_) | Decoded::Dictionary => {}
            Decoded::Empty => panic!("the encoder sends no empty messages"),
        }
    }
    batches
}

/// Messages to an Arrow stream, read by the Arrow library.
pub(crate) fn through_stream(messages: Vec<Message>) -> Vec<RecordBatch> {
    let mut stream: Vec<u8> = messages.into_iter().flat_map(Message::into_stream_pieces).flatten().collect();
    stream.extend([0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);
    StreamReader::try_new(stream.as_slice(), None).unwrap().map(|batch| batch.unwrap()).collect()
}

/// Asserts that the parts, one after the other, are the whole.
pub(crate) fn assert_same(whole: &RecordBatch, parts: &[RecordBatch], context: &str) {
    let mut row = 0;
    for part in parts {
        assert_eq!(part.schema(), whole.schema(), "{context}");
        assert!(row + part.num_rows() <= whole.num_rows(), "{context}: too many rows");
        for column in part.columns() {
            column.to_data().validate_full().unwrap();
        }
        assert_eq!(part, &whole.slice(row, part.num_rows()), "{context}: rows from {row}");
        row += part.num_rows();
    }
    assert_eq!(row, whole.num_rows(), "{context}: rows");
    assert!(!parts.is_empty(), "{context}: a batch without rows must arrive too");
}
