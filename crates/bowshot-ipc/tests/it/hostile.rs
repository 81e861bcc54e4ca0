//! Bytes that no honest writer makes: every one of them must give an error or harmless rows, never a panic.

use crate::cases::{Shape, batch, types};
use crate::make::Numbers;
use crate::wire::{FlightData, encode, options, parse};
use arrow::array::Array;
use bowshot_api::Compression;
use bowshot_ipc::{Decoded, Decoder, Error, Message, read_schema_bytes, schema_bytes};
use bytes::Bytes;

/// Decodes and walks over what comes out. The panic fence must have nothing to catch.
fn survive(messages: &[FlightData], context: &str) -> bool {
    let mut decoder = Decoder::new().with_max_bytes(64 << 20);
    for message in messages {
        match decoder.decode(&message.data_header, message.data_body.clone()) {
            Ok(Decoded::Batch(batch)) => {
                assert!(
                    batch.columns().iter().all(|column| column.to_data().validate_full().is_ok()),
                    "{context}"
                );
            }
            Ok(_) => {}
            Err(Error::Panicked) => panic!("{context}: a panic inside Arrow"),
            Err(_) => return false,
        }
    }
    true
}

fn messages(name: &str, data_type: &arrow::datatypes::DataType, compression: Compression) -> Vec<FlightData> {
    let batch = batch(data_type, Shape { rows: 24, nulls: true, margin: 1 });
    let messages = encode(std::slice::from_ref(&batch), options(2 << 20, compression));
    let frames: Vec<Bytes> = messages.into_iter().flat_map(Message::into_frames).collect();
    let messages = parse(frames.concat().into());
    assert!(survive(&messages, name));
    messages
}

fn with(bytes: &Bytes, change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut changed = bytes.to_vec();
    change(&mut changed);
    changed.into()
}

/// A small change at a random place: a bit, a byte, or a word that is often a size or an offset.
fn disturb(bytes: &mut [u8], n: &mut Numbers) {
    if bytes.is_empty() {
        return;
    }
    let at = n.below(bytes.len());
    match n.below(4) {
        0 => bytes[at] ^= 1 << n.below(8),
        1 => bytes[at] = n.next() as u8,
        2 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][n.below(5)],
        _ => {
            let word = [0, 1, -1, i32::MAX as i64, i64::MAX, i64::MIN, 1 << 40, n.next() as i64][n.below(8)];
            let at = at / 8 * 8;
            let len = bytes.len().min(at + 8) - at;
            bytes[at..at + len].copy_from_slice(&word.to_le_bytes()[..len]);
        }
    }
}

#[test]
fn disturbed_headers_and_bodies() {
    let mut refused = 0;
    let mut n = Numbers::new(1);
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for (name, data_type) in types() {
            let whole = messages(&name, &data_type, compression);
            let rounds = if compression == Compression::None { 60 } else { 15 };
            for round in 0..rounds {
                let mut changed = whole.clone();
                let which = n.below(changed.len());
                let message = &mut changed[which];
                let times = 1 + n.below(3);
                if round % 3 == 0 && !message.data_body.is_empty() {
                    message.data_body =
                        with(&message.data_body, |body| (0..times).for_each(|_| disturb(body, &mut n)));
                } else {
                    message.data_header =
                        with(&message.data_header, |head| (0..times).for_each(|_| disturb(head, &mut n)));
                }
                refused += usize::from(!survive(&changed, &format!("{name} {compression:?} round {round}")));
            }
        }
    }
    assert!(refused > 1_000, "only {refused} were refused: the disturbance is too weak to test anything");
}

#[test]
fn truncated_headers_and_bodies() {
    for (name, data_type) in types().into_iter().step_by(3) {
        for compression in [Compression::None, Compression::Lz4] {
            let whole = messages(&name, &data_type, compression);
            for which in 0..whole.len() {
                for len in (0..whole[which].data_header.len()).step_by(7) {
                    let mut cut = whole.clone();
                    cut[which].data_header.truncate(len);
                    survive(&cut, &name);
                }
                for len in (0..whole[which].data_body.len()).step_by(13) {
                    let mut cut = whole.clone();
                    cut[which].data_body.truncate(len);
                    survive(&cut, &name);
                }
            }
        }
    }
}

#[test]
fn disturbed_schemas() {
    let mut n = Numbers::new(2);
    for (name, data_type) in types() {
        let bytes = schema_bytes(&batch(&data_type, Shape { rows: 0, nulls: false, margin: 0 }).schema());
        for _ in 0..60 {
            let changed = with(&bytes, |bytes| disturb(bytes, &mut n));
            assert!(!matches!(read_schema_bytes(&changed), Err(Error::Panicked)), "{name}");
        }
        for len in 0..bytes.len() {
            assert!(!matches!(read_schema_bytes(&bytes[..len]), Err(Error::Panicked)), "{name}");
        }
    }
}

#[test]
fn messages_in_the_wrong_order() {
    let text = types().into_iter().find(|(name, _)| name == "dictionary of ints").unwrap();
    let [schema, dictionary, rows] = messages(&text.0, &text.1, Compression::None).try_into().unwrap();
    let error = |messages: &[&FlightData]| {
        let mut decoder = Decoder::new();
        let mut decode = |m: &&FlightData| decoder.decode(&m.data_header, m.data_body.clone());
        messages.iter().map(&mut decode).find_map(Result::err).unwrap().to_string()
    };
    assert_eq!(error(&[&rows]), "unexpected Arrow message: a record batch before the schema");
    assert_eq!(error(&[&dictionary]), "unexpected Arrow message: a dictionary before the schema");
    assert_eq!(error(&[&schema, &schema]), "unexpected Arrow message: a second schema");
    let keys_without_values = error(&[&schema, &rows]);
    assert!(keys_without_values.starts_with("malformed Arrow data"), "{keys_without_values}");
}

#[test]
fn a_bomb_does_not_go_off() {
    // Two megabytes of zeros shrink to a few kilobytes; a reader with less room must refuse them by their size.
    let zeros = arrow::array::Int64Array::from(vec![0; 1 << 18]);
    let batch =
        arrow::record_batch::RecordBatch::try_from_iter([("z", std::sync::Arc::new(zeros) as _)]).unwrap();
    for compression in [Compression::Lz4, Compression::Zstd] {
        let messages = encode(std::slice::from_ref(&batch), options(64 << 20, compression));
        assert!(messages[1].body_len() < 20_000);
        let mut decoder = Decoder::new().with_max_bytes(1 << 20);
        decoder.decode(&messages[0].header, Bytes::new()).unwrap();
        let error = decoder.decode(&messages[1].header, messages[1].body.concat().into()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Arrow data too large: bytes of a decompressed message is 2097152, the limit is 1048576"
        );
        // A claim that is too small does not help the sender either: the frame must hold exactly what it says.
        let mut body = messages[1].body.concat();
        body[..8].copy_from_slice(&4_096_i64.to_le_bytes());
        let error = decoder.decode(&messages[1].header, body.into()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed Arrow data: a compressed buffer that does not hold 4096 bytes"
        );
    }
}

#[test]
fn dictionaries_have_a_limit() {
    let text = types().into_iter().find(|(name, _)| name == "dictionary of ints").unwrap();
    let [schema, dictionary, _] = messages(&text.0, &text.1, Compression::None).try_into().unwrap();
    let mut decoder = Decoder::new().with_max_bytes(64);
    decoder.decode(&schema.data_header, Bytes::new()).unwrap();
    let error = decoder.decode(&dictionary.data_header, dictionary.data_body).unwrap_err();
    assert_eq!(error.to_string(), "Arrow data too large: bytes of dictionaries is 72, the limit is 64");
}
