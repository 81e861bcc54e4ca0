//! The packets of the server ("Generic Response Packets", "Text Resultset", "COM_STMT_PREPARE Response").

use crate::rows::ColumnType;
use crate::status::Failure;
use bytes::{BufMut, BytesMut};

/// The character set that texts are told to have: utf8mb4_general_ci, which every client knows.
pub(crate) const UTF8MB4: u16 = 45;
/// The one of bytes, and of what is no text.
pub(crate) const BINARY: u16 = 63;
/// Longest message of an error.
const LONGEST_MESSAGE: usize = 16 << 10;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
}

/// What is said of the session with each answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) flags: u16,
    /// How many conditions the statement has left for `SHOW WARNINGS`.
    pub(crate) warnings: u16,
}

/// A number in one, three, four or nine bytes ("Length-Encoded Integers").
pub(crate) fn put_number(out: &mut BytesMut, number: u64) {
    let [a, b, c, ..] = number.to_le_bytes();
    match number {
        0..=0xfa => out.put_u8(a),
        0xfb..=0xffff => out.put_slice(&[0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.put_slice(&[0xfd, a, b, c]),
        _ => {
            out.put_u8(0xfe);
            out.put_u64_le(number);
        }
    }
}

/// Bytes with their length before them.
pub(crate) fn put_counted(out: &mut BytesMut, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// A statement has run that gives no rows. `number` is what the server has given to its first row, or 0.
pub(crate) fn ok(out: &mut BytesMut, (rows, number): (u64, u64), status: Status) {
    out.put_u8(0);
    put_number(out, rows);
    put_number(out, number);
    end_of_ok(out, status);
}

/// The end of rows, as an OK packet.
pub(crate) fn ok_for_eof(out: &mut BytesMut, status: Status) {
    out.put_slice(&[0xfe, 0, 0]);
    end_of_ok(out, status);
}

/// The state of the session.
fn end_of_ok(out: &mut BytesMut, status: Status) {
    out.put_u16_le(status.flags);
    out.put_u16_le(status.warnings);
}

/// The end of columns or rows.
pub(crate) fn eof(out: &mut BytesMut, status: Status) {
    out.put_u8(0xfe);
    out.put_u16_le(status.warnings);
    out.put_u16_le(status.flags);
}

pub(crate) fn error(out: &mut BytesMut, failure: &Failure) {
    let (number, state) = failure.code;
    out.put_u8(0xff);
    out.put_u16_le(number);
    out.put_u8(b'#');
    out.put_slice(state.as_bytes());
    let text = failure.text();
    let end = (0..=LONGEST_MESSAGE.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    out.put_slice(text.get(..end.unwrap_or(0)).unwrap_or_default().as_bytes());
}

/// How many columns a result has.
pub(crate) fn column_count(out: &mut BytesMut, count: usize) {
    put_number(out, count as u64);
}

/// "Column Definition". Where a column comes from is not told.
pub(crate) fn column(out: &mut BytesMut, column: &Column) {
    put_counted(out, b"def");
    for _ in ["schema", "table", "original table"] {
        put_counted(out, b"");
    }
    put_counted(out, column.name.as_bytes());
    put_counted(out, column.name.as_bytes());
    let kind = column.kind;
    out.put_u8(0x0c);
    out.put_u16_le(kind.character_set());
    out.put_u32_le(kind.length());
    out.put_u8(kind.code());
    out.put_u16_le(kind.flags());
    out.put_u8(kind.decimals());
    out.put_u16_le(0);
}

/// A statement has been prepared.
pub(crate) fn prepared(out: &mut BytesMut, statement: u32, columns: u16, parameters: u16) {
    out.put_u8(0);
    out.put_u32_le(statement);
    out.put_u16_le(columns);
    out.put_u16_le(parameters);
    out.put_slice(&[0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for number in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = BytesMut::new();
            put_number(&mut out, number);
            assert_eq!(Body::new(out).number().unwrap(), number);
        }
    }

    #[test]
    fn long_messages_are_cut_between_letters() {
        let mut out = BytesMut::new();
        error(&mut out, &Failure::syntax("€".repeat(LONGEST_MESSAGE)));
        assert!(out.len() <= LONGEST_MESSAGE + 9);
        assert!(std::str::from_utf8(&out[9..]).is_ok());
    }
}
