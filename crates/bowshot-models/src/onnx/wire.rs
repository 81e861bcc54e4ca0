//! Protocol buffers, field by field. Nothing is copied and nothing is kept, so a file of a hundred million empty messages
//! costs no memory.

use crate::error::{Error, Result};

/// A field's value as it is on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    /// Of four or eight bytes.
    Fixed,
    Bytes(&'a [u8]),
}

/// The fields of a message, in their order.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field: number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| not_onnx())?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            _ => return Err(not_onnx()),
        };
        Ok(Some((key >> 3, value)))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(not_onnx)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { return Err(not_onnx()) };
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(not_onnx())
    }
}

/// What is said of bytes that no format begins with.
pub(super) fn not_onnx() -> Error {
    Error::damaged("unknown format: expected XGBoost's JSON or UBJSON, LightGBM's text or ONNX")
}

impl<'a> Wire<'a> {
    pub(super) fn text(self) -> Result<&'a str> {
        match self {
            Wire::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|_| not_onnx()),
            _ => Err(not_onnx()),
        }
    }
}
