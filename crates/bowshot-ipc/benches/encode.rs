//! What encoding costs, in time per gigabyte of Arrow memory: `cargo bench -p bowshot-ipc`.
//!
//! Each line is the best of several runs: rows and bytes of the batch, messages, and the time from batch to frames.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops when its material is wrong"
)]

#[path = "../tests/it/make.rs"]
mod make;

use arrow::array::{ArrayRef, StringArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use arrow_ipc::writer::FileWriter;
use bowshot_ipc::{Compression, Decoder, EncodeOptions, Encoder, MappedFile, Message};
use make::{Numbers, array};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn batch(data_type: &DataType, columns: usize, rows: usize, nulls: bool) -> RecordBatch {
    let mut numbers = Numbers::new(1);
    let fields: Vec<Field> =
        (0..columns).map(|n| Field::new(format!("c{n}"), data_type.clone(), true)).collect();
    let mut column = |data_type: &DataType| -> ArrayRef {
        match data_type {
            // English, as most text is; the generator of the tests mixes in more.
            DataType::Utf8 => Arc::new(StringArray::from_iter_values((0..rows).map(|_| words(&mut numbers)))),
            DataType::Utf8View => {
                Arc::new(StringViewArray::from_iter_values((0..rows).map(|_| words(&mut numbers))))
            }
            other => array(other, rows, nulls, &mut numbers),
        }
    };
    let arrays = fields.iter().map(|field| column(field.data_type())).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn words(numbers: &mut Numbers) -> String {
    let words = ["furiously", "even", "deposits", "sleep", "above", "the", "bold"];
    (0..1 + numbers.below(6)).map(|_| words[numbers.below(words.len())]).collect::<Vec<_>>().join(" ")
}

fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(time).min().unwrap_or_default()
}

fn encode(batch: &RecordBatch, options: &EncodeOptions) -> Vec<Message> {
    Encoder::new(batch.schema(), options.clone()).unwrap().encode(batch).unwrap()
}

fn report(name: &str, bytes: usize, messages: usize, time: Duration) {
    let rate = bytes as f64 / time.as_secs_f64() / 1e9;
    println!(
        "{name:<44} {:>9.1} MB {messages:>5} messages {time:>12.1?} {rate:>9.1} GB/s",
        bytes as f64 / 1e6
    );
}

fn main() {
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    let plain = EncodeOptions { keep_dictionaries: true, ..EncodeOptions::default() };
    for (name, data_type, columns, rows, nulls) in [
        ("20 × int64, 8,192 rows", DataType::Int64, 20, 8_192, false),
        ("20 × int64 with nulls, 8,192 rows", DataType::Int64, 20, 8_192, true),
        ("20 × int64, 65,536 rows", DataType::Int64, 20, 65_536, false),
        ("20 × text, 65,536 rows", DataType::Utf8, 20, 65_536, false),
        ("20 × text view, 65,536 rows", DataType::Utf8View, 20, 65_536, false),
        ("5 × list of int64, 65,536 rows", list, 5, 65_536, true),
        ("20 × text in many scripts, 65,536 rows", DataType::LargeUtf8, 20, 65_536, false),
        ("200 × int64, 1 row", DataType::Int64, 200, 1, false),
    ] {
        let batch = batch(&data_type, columns, rows, nulls);
        let bytes: usize = encode(&batch, &plain).iter().map(Message::body_len).sum();
        for (how, compression) in
            [("", Compression::None), (", LZ4", Compression::Lz4), (", Zstandard", Compression::Zstd)]
        {
            let options = EncodeOptions { compression, ..plain.clone() };
            let messages = encode(&batch, &options).len();
            let time = best(20, || {
                let messages = encode(&batch, &options);
                black_box(messages.into_iter().flat_map(Message::into_frames).count());
            });
            report(&format!("encode {name}{how}"), bytes, messages, time);
        }
        decode(name, &batch, &plain, bytes);
    }
    mapped();
}

fn decode(name: &str, batch: &RecordBatch, options: &EncodeOptions, bytes: usize) {
    let parts: Vec<_> = encode(batch, options)
        .into_iter()
        .map(|message| (message.header, bytes::Bytes::from(message.body.concat())))
        .collect();
    let schema = Encoder::new(batch.schema(), options.clone()).unwrap().schema_message().unwrap();
    let time = best(20, || {
        let mut decoder = Decoder::new();
        decoder.decode(&schema.header, bytes::Bytes::new()).unwrap();
        for (header, body) in &parts {
            black_box(decoder.decode(header, body.clone()).unwrap());
        }
    });
    report(&format!("decode {name}"), bytes, parts.len(), time);
}

fn mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.arrow");
    for (name, data_type) in [("int64", DataType::Int64), ("text", DataType::Utf8)] {
        let batch = batch(&data_type, 10, 65_536, false);
        let mut writer = FileWriter::try_new(std::fs::File::create(&path).unwrap(), &batch.schema()).unwrap();
        (0..10).for_each(|_| writer.write(&batch).unwrap());
        writer.finish().unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len() as usize;
        let time = best(5, || {
            let file = MappedFile::open(&path).unwrap();
            (0..file.len()).for_each(|index| drop(black_box(file.batch(index).unwrap())));
        });
        report(&format!("open and read 10 × {name} from a file"), bytes, 10, time);
    }
}
