//! Writes Arrow streams of the data plane for another implementation. `emit_stream FOLDER` writes every round-trip case into `FOLDER/rust`:
//! `N.whole.arrow` by Arrow's writer, `N.ours.arrows` with a slice of it by our encoder; `index.tsv` lists the slices. `emit_stream --again IN OUT`
//! decodes and encodes a stream. `tests/clients/ipc_roundtrip.py` compares both with pyarrow.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a tool of the tests, not of users"
)]

#[path = "../tests/it/cases.rs"]
mod cases;
#[path = "../tests/it/make.rs"]
mod make;

use arrow::record_batch::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use bowshot_api::Compression;
use bowshot_ipc::{Decoded, Decoder, EncodeOptions, Encoder, Message};
use bytes::{Buf, Bytes};
use cases::{SHAPES, Shape};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--again", input, output] => again(Path::new(input), Path::new(output)),
        [folder] => emit(Path::new(folder)),
        _ => panic!("usage: emit_stream FOLDER | emit_stream --again IN OUT"),
    }
}

/// One case: the slice of the shape without its margins, and how it is sent.
struct Case {
    name: String,
    whole: RecordBatch,
    shape: Shape,
    options: EncodeOptions,
}

fn options(message_bytes: usize, compression: Compression) -> EncodeOptions {
    EncodeOptions { compression, message_bytes, keep_dictionaries: true, ..EncodeOptions::default() }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, data_type) in cases::types() {
        let mut add = |shape: Shape, how: &str, options: EncodeOptions| {
            let held = Shape { rows: shape.rows + 2 * shape.margin, margin: 0, ..shape };
            let whole = cases::batch(&data_type, held);
            let name = format!("{name}, {} rows from {}, {how}", shape.rows, shape.margin);
            cases.push(Case { name, whole, shape, options });
        };
        SHAPES.iter().for_each(|shape| add(*shape, "in one message", options(2 << 20, Compression::None)));
        let odd = Shape { rows: 700, nulls: true, margin: 5 };
        add(odd, "in small messages", options(1_500, Compression::None));
        add(odd, "in small messages with LZ4", options(5_000, Compression::Lz4));
        add(odd, "in one message with Zstandard", options(2 << 20, Compression::Zstd));
    }
    let shape = Shape { rows: 12_345, nulls: false, margin: 0 };
    let options = options(2 << 20, Compression::None);
    cases.push(Case {
        name: "rows without columns".to_owned(),
        whole: cases::columnless(12_345),
        shape,
        options,
    });
    cases
}

fn emit(folder: &Path) {
    let rust = folder.join("rust");
    fs::create_dir_all(&rust).unwrap();
    let mut index = String::new();
    let cases = cases();
    for (number, case) in cases.iter().enumerate() {
        let file = File::create(rust.join(format!("{number}.whole.arrow"))).unwrap();
        let mut writer =
            FileWriter::try_new_with_options(file, &case.whole.schema(), IpcWriteOptions::default()).unwrap();
        writer.write(&case.whole).unwrap();
        writer.finish().unwrap();

        let slice = case.whole.slice(case.shape.margin, case.shape.rows);
        let ours = rust.join(format!("{number}.ours.arrows"));
        write(&ours, case.whole.schema(), &[slice], case.options.clone());
        index.push_str(&format!("{number}\t{}\t{}\t{}\n", case.shape.margin, case.shape.rows, case.name));
    }
    fs::write(rust.join("index.tsv"), index).unwrap();
    // So that the other side can ask this program to read its streams.
    fs::write(rust.join("program"), std::env::current_exe().unwrap().to_str().unwrap()).unwrap();
    println!("{} cases in {}", cases.len(), rust.display());
}

fn write(path: &Path, schema: arrow::datatypes::SchemaRef, batches: &[RecordBatch], options: EncodeOptions) {
    let mut encoder = Encoder::new(schema, options).unwrap();
    let mut messages = vec![encoder.schema_message().unwrap()];
    batches.iter().for_each(|batch| messages.append(&mut encoder.encode(batch).unwrap()));
    let mut file = File::create(path).unwrap();
    for piece in messages.into_iter().flat_map(Message::into_stream_pieces) {
        file.write_all(&piece).unwrap();
    }
    file.write_all(&[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]).unwrap();
}

/// Reads a stream and writes it again. Exit code 1 and the error on stderr if our decoder refuses it.
fn again(input: &Path, output: &Path) {
    let mut stream = Bytes::from(fs::read(input).unwrap());
    let mut decoder = Decoder::new();
    let mut batches = Vec::new();
    while let Some((header, body)) = next(&mut stream) {
        if let Decoded::Batch(batch) = decoder.decode(&header, body).unwrap() {
            batches.push(batch);
        }
    }
    let schema = std::sync::Arc::clone(decoder.schema().unwrap());
    write(output, schema, &batches, options(2 << 20, Compression::None));
}

/// The next message of an Arrow stream.
fn next(stream: &mut Bytes) -> Option<(Bytes, Bytes)> {
    if stream.is_empty() {
        return None;
    }
    let mut len = stream.get_u32_le();
    if len == u32::MAX {
        len = stream.get_u32_le();
    }
    if len == 0 {
        return None;
    }
    let header = stream.split_to(len as usize);
    let body_len = arrow_ipc::root_as_message(&header).unwrap().bodyLength();
    let body = stream.split_to(body_len as usize);
    Some((header, body))
}
