//! COPY … TO STDOUT: the rows of a running query in text, CSV or binary.

use super::value_format;
use crate::backend_messages;
use crate::connection::Connection;
use crate::encode::Rows;
use crate::result_writer::{ResultWriter, columns};
use crate::status::{Failure, Result};
use bowshot_rowwire::ProtocolError;
use bowshot_sql::postgres::{CopyForm, CopyOptions};
use bytes::{BufMut, BytesMut};

/// The header of the binary format (PostgreSQL manual, COPY, "Binary Format"): signature, flags, length of the extension.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
pub(super) const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

impl Connection {
    pub(super) async fn copy_out(&mut self, mut running: ResultWriter, options: &CopyOptions) -> Result<()> {
        let described = columns(running.schema(), &[value_format(options)])?;
        backend_messages::copy_response(self.wire.out(), b'H', value_format(options), described.len());
        if options.header && options.form != CopyForm::Binary {
            let names: Vec<&str> = described.iter().map(|column| column.name.as_str()).collect();
            header(self.wire.out(), &names, options);
        }
        // In one message with the first row, as PostgreSQL sends it: psycopg takes each message for a row.
        let mut head = HEAD;
        let mut count: u64 = 0;
        let mut scratch = BytesMut::new();
        while let Some(rows) = running.rows(&mut self.wire, &self.cancel).await? {
            for row in 0..rows.count() {
                put_row(&rows, row, (options, head), self.wire.out(), &mut scratch)?;
                head = &[];
                count += 1;
                self.wire.flush_if_full(&self.cancel).await?;
                if self.cancel.is_cancelled() {
                    return Err(Failure::cancelled().into());
                }
            }
        }
        if options.form == CopyForm::Binary {
            backend_messages::message(self.wire.out(), b'd', |out| {
                out.put_slice(head);
                out.put_i16(-1);
            });
        }
        backend_messages::bare(self.wire.out(), backend_messages::COPY_DONE);
        backend_messages::complete(self.wire.out(), &format!("COPY {count}"));
        Ok(())
    }
}

pub(super) fn header(out: &mut BytesMut, names: &[&str], options: &CopyOptions) {
    backend_messages::message(out, b'd', |out| {
        for (index, name) in names.iter().enumerate() {
            put_text(options, index, Some(name.as_bytes()), out);
        }
        out.put_u8(b'\n');
    });
}

pub(super) fn put_row(
    rows: &Rows,
    row: usize,
    (options, head): (&CopyOptions, &[u8]),
    out: &mut BytesMut,
    scratch: &mut BytesMut,
) -> std::result::Result<(), Failure> {
    match options.form {
        CopyForm::Binary => rows.copy_tuple(row, head, out),
        CopyForm::Text | CopyForm::Csv => {
            rows.copy_texts(row, out, scratch, |index, text, out| put_text(options, index, text, out))
        }
    }
}

/// One field with the delimiter before it.
fn put_text(options: &CopyOptions, index: usize, text: Option<&[u8]>, out: &mut BytesMut) {
    if index > 0 {
        out.put_u8(options.delimiter);
    }
    match (text, options.form) {
        (None, _) => out.put_slice(options.null.as_bytes()),
        (Some(text), CopyForm::Csv) => put_csv(options, text, out),
        (Some(text), CopyForm::Text | CopyForm::Binary) => put_escaped(options, text, out),
    }
}

fn put_escaped(options: &CopyOptions, text: &[u8], out: &mut BytesMut) {
    for byte in text {
        let letter = match byte {
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            11 => b'v',
            12 => b'f',
            byte if *byte == options.delimiter => *byte,
            byte => {
                out.put_u8(*byte);
                continue;
            }
        };
        out.put_slice(&[b'\\', letter]);
    }
}

fn put_csv(options: &CopyOptions, text: &[u8], out: &mut BytesMut) {
    let special =
        |byte: &u8| *byte == options.delimiter || *byte == options.quote || matches!(byte, b'\n' | b'\r');
    // A field that looks like null, or like the end of the data, gets quotes.
    if !text.iter().any(special) && text != options.null.as_bytes() && text != br"\." {
        out.put_slice(text);
        return;
    }
    out.put_u8(options.quote);
    for byte in text {
        if *byte == options.quote || *byte == options.escape {
            out.put_u8(options.escape);
        }
        out.put_u8(*byte);
    }
    out.put_u8(options.quote);
}
