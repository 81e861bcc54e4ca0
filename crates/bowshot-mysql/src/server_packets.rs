//! The packets of the server ("Generic Response Packets", "Text Resultset", "COM_STMT_PREPARE Response").

use crate::encode::ColumnType;
use crate::status::Failure;
use bytes::{BufMut, BytesMut};

/// The collation of texts: utf8mb4_general_ci, which every client knows.
pub(crate) const UTF8MB4: u16 = 45;
/// The collation of bytes and everything else.
pub(crate) const BINARY: u16 = 63;
/// Longest message of an error.
const LONGEST_MESSAGE: usize = 16 << 10;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
}

/// The state of the session in an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) flags: u16,
    /// The number of conditions for `SHOW WARNINGS`.
    pub(crate) warnings: u16,
}

/// A number in one, three, four or nine bytes ("Length-Encoded Integers").
pub(crate) fn put_number(out: &mut impl BufMut, number: u64) {
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

/// Bytes after their length.
pub(crate) fn put_counted(out: &mut BytesMut, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// The bytes that `write` appends, with their length before them. Up to 250 bytes, as most values have, stay where they are.
pub(crate) fn put_counted_by<E>(
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
) -> Result<(), E> {
    let at = out.len();
    out.put_u8(0);
    write(out)?;
    let length = out.len() - at - 1;
    let mut head = [0; 9];
    let mut rest: &mut [u8] = &mut head;
    put_number(&mut rest, length as u64);
    let unused = rest.len();
    let head = head.get(..head.len() - unused).unwrap_or_default();
    if head.len() > 1 {
        out.put_bytes(0, head.len() - 1);
        out.copy_within(at + 1..at + 1 + length, at + head.len());
    }
    if let Some(place) = out.get_mut(at..at + head.len()) {
        place.copy_from_slice(head);
    }
    Ok(())
}

/// A statement without rows has run. `number` is the number generated for its first row, or 0.
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

/// "Column Definition", without the table of the column.
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
    use crate::payload::Payload;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for number in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = BytesMut::new();
            put_number(&mut out, number);
            assert_eq!(Payload::new(out).number().unwrap(), number);
        }
    }

    #[test]
    fn values_have_their_lengths_before_them() {
        for length in [0, 250, 251, 0xffff, 0x1_0000, 0x100_0000] {
            let value = vec![b'x'; length];
            let (mut expected, mut out) = (BytesMut::from("a"), BytesMut::from("a"));
            put_counted(&mut expected, &value);
            put_counted_by(&mut out, |out| {
                out.put_slice(&value);
                Ok::<_, ()>(())
            })
            .unwrap();
            assert!(out == expected, "{length}");
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
