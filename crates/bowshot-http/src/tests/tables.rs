//! Tables: what there is, and rows on their way in.

use super::Running;
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

const STREAM: (&str, &str) = ("content-type", "application/vnd.apache.arrow.stream");
const CSV: (&str, &str) = ("content-type", "text/csv");
const JSON: (&str, &str) = ("content-type", "application/json");
const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

pub(super) fn batch(rows: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|n| format!("text {n}"))));
    RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
}

pub(super) fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

pub(super) fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

/// What was written since the last look: columns with their types, and the rows as JSON.
fn written(running: &Running) -> String {
    let batches = std::mem::take(&mut *running.server.written.lock());
    let Some(first) = batches.first() else { return "nothing".to_owned() };
    let columns: Vec<String> = first
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let rows = String::from_utf8(writer.into_inner()).unwrap();
    format!("{}: {}", columns.join(", "), rows.lines().collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn texts_go_in() {
    let running = Running::start().await;
    for (method, form, body, expected) in [
        (
            "PUT",
            CSV,
            "n,s,d\n1,a,2024-02-29\n2,\"b,\n\"\"c\",\n",
            "n Int64, s Utf8, d Date32: {\"n\":1,\"s\":\"a\",\"d\":\"2024-02-29\"} {\"n\":2,\"s\":\"b,\\n\\\"c\"}",
        ),
        ("PUT", CSV, "a,b\n,\n", "a Utf8, b Utf8: {}"),
        ("POST", CSV, "s,n\n007,7", "s Utf8, n Int64: {\"s\":\"007\",\"n\":7}"),
        (
            "PUT",
            LINES,
            "{\"a\":1,\"b\":[1.5]}\n{\"b\":null,\"c\":{\"d\":true}}",
            "a Int64, b List(Float64), c Struct(\"d\": Boolean): {\"a\":1,\"b\":[1.5]} {\"c\":{\"d\":true}}",
        ),
        ("PUT", JSON, " [ {\"a\":\"]\"} , {\"a\":null} ] ", "a Utf8: {\"a\":\"]\"} {}"),
        ("PUT", JSON, "{\"a\":1}{\"a\":2}", "a Int64: {\"a\":1} {\"a\":2}"),
        ("POST", LINES, "{\"s\":7,\"n\":\"1\"}", "s Utf8, n Int64: {\"s\":\"7\",\"n\":1}"),
    ] {
        let reply = running.ask(method, "/v1/tables/t", &[form], body.as_bytes()).await;
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
        assert_eq!(written(&running), expected, "{body}");
    }
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_not_written() {
    let running = Running::start().await;
    let whole = stream(&[batch(1_000)]);
    let (half, huge) = (whole[..whole.len() / 2].to_vec(), [&whole[..8], &[255, 255, 255, 127]].concat());
    let bad_row = format!("n\n{}x\n", "123456789012345678\n".repeat(80_000));
    let new_column = format!("{}{{\"b\":1}}", "{\"a\":1}\n".repeat(200_000));
    for (form, body, expected) in [
        (STREAM, b"".to_vec(), "400 invalid: the body has no Arrow schema"),
        (STREAM, b"n,s\n1,a\n".to_vec(), "429 limit_reached: an Arrow message of"),
        (STREAM, half, "400 invalid: the Arrow stream ends in the middle of a message"),
        (STREAM, huge[8..].to_vec(), "429 limit_reached: an Arrow message of 2147483647 bytes"),
        (
            STREAM,
            vec![255, 255, 255, 255, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
            "400 invalid: the metadata of an Arrow message is malformed",
        ),
        (CSV, b" \n".to_vec(), "400 invalid: the body is empty"),
        (CSV, b"a,b\n1\n".to_vec(), "400 invalid: the CSV cannot be read"),
        (CSV, b"a,a\n1,2\n".to_vec(), "400 invalid: the column `a` is there twice"),
        (CSV, ",".repeat(5_000).into_bytes(), "429 limit_reached: the rows have 5001 columns"),
        (CSV, "x".repeat(2 << 20).into_bytes(), "429 limit_reached: the first"),
        (CSV, bad_row.into_bytes(), "400 invalid: row 80001: `x` in column `n` is not a value of type Int64"),
        (JSON, b"[1]".to_vec(), "400 invalid: the JSON array has something else than objects"),
        (JSON, b"[{\"a\":1}".to_vec(), "400 invalid: the JSON array has no end"),
        (LINES, b"{\"a\":1".to_vec(), "400 invalid: the JSON cannot be read"),
        (LINES, b"".to_vec(), "400 invalid: cannot infer columns: the body has no rows"),
        (LINES, format!("{{\"a\":{}", "[".repeat(200)).into_bytes(), "400 invalid: the JSON cannot be read"),
        (LINES, new_column.into_bytes(), "400 invalid: the JSON cannot be read"),
        (
            ("content-type", "application/vnd.apache.parquet"),
            b"PAR1".to_vec(),
            "400 unsupported: this server reads no Parquet files",
        ),
        (("content-type", "text/plain"), b"1".to_vec(), "415 unsupported: unsupported content type"),
    ] {
        let reply = running.ask("PUT", "/v1/tables/new", &[form], &body).await;
        let error = reply.error();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
    let reply = running.ask("POST", "/v1/tables/missing", &[CSV], b"n\n1\n").await;
    assert_eq!(reply.error(), "404 not_found: table `missing` not found");
    assert_eq!((written(&running), running.server.effects()), ("nothing".to_owned(), Vec::<String>::new()));
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}
