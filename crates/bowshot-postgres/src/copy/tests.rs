//! Rows of COPY, cut anywhere and malformed.

use super::binary_format::Tuples;
use super::input::RowParser;
use super::output::{HEAD, header, put_row};
use super::text_format::{Lines, Record};
use crate::encode::Rows;
use arrow::array::{Array, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use bowshot_sql::postgres::{CopyOptions, Statement, StatementKind};
use bytes::BytesMut;
use std::sync::Arc;

fn options(text: &str) -> CopyOptions {
    match Statement::parse(&format!("copy t from stdin {text}")).unwrap().kind {
        StatementKind::Copy(copy) => copy.options,
        other => panic!("{other:?}"),
    }
}

/// The fields of all records, however the bytes are cut.
fn records(text: &[u8], options: &CopyOptions) -> Vec<Vec<Option<String>>> {
    let read = |size: usize| {
        let mut lines = Lines::new(1_000);
        let mut found = Vec::new();
        let mut parts = text.chunks(size).peekable();
        while let Some(part) = parts.next() {
            lines.add(part).unwrap();
            let last = parts.peek().is_none();
            while let Record::Fields(fields) = lines.next(options, last).unwrap() {
                let texts =
                    fields.into_iter().map(|field| field.map(|field| String::from_utf8(field).unwrap()));
                found.push(texts.collect::<Vec<_>>());
            }
        }
        found
    };
    let whole = read(text.len().max(1));
    for size in 1..5 {
        assert_eq!(read(size), whole);
    }
    whole
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect()
}

#[test]
fn lines_in_text() {
    let found = records(b"a\t\\N\t\\\\N\r\n\\t\\101\\x41\\\n\t\\.\n\n1\\", &options(""));
    assert_eq!(found, [some(&["a", "NULL", "\\N"]), some(&["\tAA\n", "."]), some(&[""]), some(&["1\\"])]);
}

#[test]
fn lines_in_csv() {
    let found = records(b"a,,\"\"\n\"x\"\"y\n,\",b\r\n\"q\"r", &options("csv"));
    assert_eq!(found, [some(&["a", "NULL", ""]), some(&["x\"y\n,", "b"]), some(&["qr"])]);
    let found = records(br#""a\"b","\\""#, &options("csv escape '\\'"));
    assert_eq!(found, [some(&["a\"b", "\\"])]);
    let mut lines = Lines::new(10);
    lines.add(b"\"never").unwrap();
    assert_eq!(lines.next(&options("csv"), true).unwrap_err().code, "22P04");
    assert_eq!(lines.add(&[b'x'; 20]).unwrap_err().code, "54000");
}

#[test]
fn tuples_cut_anywhere_and_malformed_ones() {
    let whole = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\xff\xff";
    for size in 1..whole.len() {
        let mut tuples = Tuples::new(1_000);
        let mut found = Vec::new();
        for part in whole.chunks(size) {
            tuples.add(part).unwrap();
            loop {
                match tuples.next(false).unwrap() {
                    Record::Fields(fields) => found.push(fields),
                    Record::End => found.push(Vec::new()),
                    Record::Cut => break,
                }
            }
        }
        assert_eq!(found, [vec![Some(b"a".to_vec()), None], Vec::new()], "{size}");
    }
    for length in 1..whole.len() {
        let mut tuples = Tuples::new(1_000);
        tuples.add(&whole[..length]).unwrap();
        // At the end of a row nothing is missing but the trailer, which PostgreSQL does not insist on either.
        let mut last = tuples.next(true);
        if matches!(last, Ok(Record::Fields(_))) {
            last = tuples.next(true);
        }
        assert_eq!(last.is_err(), !matches!(length, 19 | 30), "{length}");
    }
    for bad in [
        b"PGCOPX".as_ref(),
        b"PGCOPY\n\xff\r\n\0\x80\0\0\0\0\0\0\0",
        b"PGCOPY\n\xff\r\n\0\0\0\0\0\xff\xff\xff\xff",
    ] {
        let mut tuples = Tuples::new(1_000);
        tuples.add(bad).unwrap();
        assert_eq!(tuples.next(false).unwrap_err().code, "22P04", "{bad:?}");
    }
}

fn table() -> RecordBatch {
    let schema =
        Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let texts =
        StringArray::from(vec![Some("x\ty\\\n"), None, Some(""), Some("\\."), Some("q\"q, ä"), Some("\\N")]);
    let numbers = Int64Array::from_iter_values(0..6);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(numbers), Arc::new(texts)]).unwrap()
}

#[test]
fn rows_there_and_back_in_all_forms() {
    let table = table();
    for text in [
        "",
        "csv",
        "csv header",
        "binary",
        "delimiter '|' null 'nil'",
        "csv quote '''' delimiter ';' null 'nil'",
    ] {
        let options = options(text);
        let mut out = BytesMut::new();
        if options.header {
            header(&mut out, &["a", "b"], &options);
        }
        let rows = Rows::new(&table, None).unwrap();
        for row in 0..table.num_rows() {
            let head = if row == 0 { HEAD } else { &[] };
            put_row(&rows, row, (&options, head), &mut out, &mut BytesMut::new()).unwrap();
        }
        let mut rows = RowParser::new(table.schema(), options, (1_000, None));
        let mut rest = out.as_ref();
        while let Some((head, after)) = rest.split_first_chunk::<5>() {
            let length = i32::from_be_bytes(head[1..].try_into().unwrap());
            let (body, after) = after.split_at(usize::try_from(length).unwrap() - 4);
            rows.add(body).unwrap();
            while rows.take(false).unwrap() {}
            rest = after;
        }
        while rows.take(true).unwrap() {}
        let back = rows.batch().unwrap();
        assert_eq!(back.column(1).as_string::<i32>(), table.column(1).as_string::<i32>(), "{text}");
        assert_eq!(back.column(0).len(), 6);
    }
}
