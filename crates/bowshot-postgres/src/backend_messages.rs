//! The messages of the server (PostgreSQL manual, "Message Formats"), written to the end of a buffer.

use crate::encode::PgType;
use crate::frontend_messages::Format;
use crate::status::Failure;
use bowshot_api::ColumnOrigin;
use bytes::{BufMut, BytesMut};

/// The state of the transaction in ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionState {
    Idle,
    Open,
    Failed,
}

/// The severity of an error or a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Fatal,
    Error,
    Warning,
    Notice,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Fatal => "FATAL",
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }
}

/// A column of a result in RowDescription.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: PgType,
    pub(crate) format: Format,
    /// The column of a table that it comes from, so that clients can update it.
    pub(crate) origin: Option<ColumnOrigin>,
}

/// Writes a message whose content `body` writes.
pub(crate) fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let at = out.len();
    out.put_i32(0);
    body(out);
    // Only DataRow and CopyData can come near the limit, and they are checked where they are written.
    let length = i32::try_from(out.len() - at).unwrap_or(i32::MAX);
    put_length(out, at, length);
}

/// Writes a length into the room that was left for it.
pub(crate) fn put_length(out: &mut BytesMut, at: usize, length: i32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// A text and a zero byte; zero bytes within it become blanks.
fn put_text(out: &mut BytesMut, text: &str) {
    match text.contains('\0') {
        false => out.put_slice(text.as_bytes()),
        true => out.put_slice(text.replace('\0', " ").as_bytes()),
    }
    out.put_u8(0);
}

/// A message without content.
pub(crate) fn bare(out: &mut BytesMut, tag: u8) {
    message(out, tag, |_| ());
}

pub(crate) const PARSE_COMPLETE: u8 = b'1';
pub(crate) const BIND_COMPLETE: u8 = b'2';
pub(crate) const CLOSE_COMPLETE: u8 = b'3';
pub(crate) const NO_DATA: u8 = b'n';
pub(crate) const PORTAL_SUSPENDED: u8 = b's';
pub(crate) const EMPTY_QUERY: u8 = b'I';
pub(crate) const COPY_DONE: u8 = b'c';

/// AuthenticationOk and its variants, with what follows the code.
pub(crate) fn authentication(out: &mut BytesMut, code: i32, rest: &[u8]) {
    message(out, b'R', |out| {
        out.put_i32(code);
        out.put_slice(rest);
    });
}

pub(crate) fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    message(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

pub(crate) fn backend_key_data(out: &mut BytesMut, process: i32, secret: i32) {
    message(out, b'K', |out| {
        out.put_i32(process);
        out.put_i32(secret);
    });
}

/// NegotiateProtocolVersion: version 3.0, and the unknown protocol options.
pub(crate) fn negotiate_version(out: &mut BytesMut, unknown: &[String]) {
    message(out, b'v', |out| {
        out.put_i32(0);
        out.put_i32(i32::try_from(unknown.len()).unwrap_or(0));
        unknown.iter().for_each(|name| put_text(out, name));
    });
}

pub(crate) fn ready(out: &mut BytesMut, state: TransactionState) {
    message(out, b'Z', |out| {
        out.put_u8(match state {
            TransactionState::Idle => b'I',
            TransactionState::Open => b'T',
            TransactionState::Failed => b'E',
        });
    });
}

pub(crate) fn complete(out: &mut BytesMut, tag: &str) {
    message(out, b'C', |out| put_text(out, tag));
}

/// ErrorResponse or NoticeResponse ("Error and Notice Message Fields").
pub(crate) fn report(out: &mut BytesMut, severity: Severity, failure: &Failure) {
    let tag = if matches!(severity, Severity::Warning | Severity::Notice) { b'N' } else { b'E' };
    message(out, tag, |out| {
        let mut field = |name: u8, text: &str| {
            out.put_u8(name);
            put_text(out, text);
        };
        field(b'S', severity.name());
        field(b'V', severity.name());
        field(b'C', failure.code);
        field(b'M', &failure.message);
        if let Some(hint) = &failure.hint {
            field(b'H', hint);
        }
        if let Some(position) = failure.position {
            field(b'P', &position.to_string());
        }
        out.put_u8(0);
    });
}

pub(crate) fn parameter_description(out: &mut BytesMut, types: &[u32]) {
    message(out, b't', |out| {
        put_count(out, types.len());
        types.iter().for_each(|oid| out.put_u32(*oid));
    });
}

pub(crate) fn row_description(out: &mut BytesMut, columns: &[Column]) {
    message(out, b'T', |out| {
        put_count(out, columns.len());
        for column in columns {
            put_text(out, &column.name);
            out.put_u32(column.origin.map_or(0, |origin| origin.table));
            out.put_u16(column.origin.map_or(0, |origin| origin.place));
            out.put_u32(column.kind.oid());
            out.put_i16(column.kind.length());
            out.put_i32(column.kind.modifier());
            put_format(out, column.format);
        }
    });
}

/// CopyInResponse (`G`) or CopyOutResponse (`H`).
pub(crate) fn copy_response(out: &mut BytesMut, tag: u8, format: Format, columns: usize) {
    message(out, tag, |out| {
        out.put_u8(u8::from(format == Format::Binary));
        put_count(out, columns);
        (0..columns).for_each(|_| put_format(out, format));
    });
}

fn put_format(out: &mut BytesMut, format: Format) {
    out.put_i16(i16::from(format == Format::Binary));
}

/// A 16-bit number of columns or parameters; more have been refused before.
pub(crate) fn put_count(out: &mut BytesMut, count: usize) {
    out.put_u16(u16::try_from(count).unwrap_or(u16::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_fields() {
        let mut out = BytesMut::new();
        let failure = Failure { position: Some(8), ..Failure::new("42601", "a\0b").with_hint("h") };
        report(&mut out, Severity::Error, &failure);
        assert_eq!(&out[5..], b"SERROR\0VERROR\0C42601\0Ma b\0Hh\0P8\0\0");
        assert_eq!(&out[..5], [b'E', 0, 0, 0, u8::try_from(out.len() - 1).unwrap()]);
    }

    #[test]
    fn short_messages() {
        let mut out = BytesMut::new();
        ready(&mut out, TransactionState::Failed);
        bare(&mut out, NO_DATA);
        complete(&mut out, "SELECT 1");
        assert_eq!(out.as_ref(), b"Z\0\0\0\x05En\0\0\0\x04C\0\0\0\x0dSELECT 1\0");
    }
}
