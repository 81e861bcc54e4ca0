//! Protocol buffers, field by field. Nothing is copied and nothing is kept, so a file of a hundred million empty messages
//! costs no memory.

use crate::error::{Error, Result};

/// A field's value as it is on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
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
            1 => Wire::Fixed64(self.array()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| not_onnx())?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(self.array()?),
            _ => return Err(not_onnx()),
        };
        Ok(Some((key >> 3, value)))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(not_onnx)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| not_onnx())
    }

    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(not_onnx())
    }
}

/// What is said of bytes that no format begins with.
pub(super) fn not_onnx() -> Error {
    Error::damaged("it is neither XGBoost's JSON or UBJSON, nor LightGBM's text, nor ONNX")
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(not_onnx()),
        }
    }

    pub(super) fn text(self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| not_onnx())
    }

    /// Appends whole numbers, packed or one.
    pub(super) fn integers(self, into: &mut Vec<i64>) -> Result<()> {
        match self {
            Wire::Varint(value) => into.push(value.cast_signed()),
            Wire::Bytes(bytes) => {
                let mut fields = Fields(bytes);
                while !fields.0.is_empty() {
                    into.push(fields.varint()?.cast_signed());
                }
            }
            _ => return Err(not_onnx()),
        }
        Ok(())
    }

    /// Appends floats, packed or one.
    pub(super) fn floats(self, into: &mut Vec<f64>) -> Result<()> {
        match self {
            Wire::Fixed32(bytes) => into.push(f64::from(f32::from_le_bytes(bytes))),
            Wire::Fixed64(bytes) => into.push(f64::from_le_bytes(bytes)),
            Wire::Bytes(bytes) => into.extend(singles(bytes)?),
            Wire::Varint(_) => return Err(not_onnx()),
        }
        Ok(())
    }
}

/// Floats of 32 bits, one after the other.
pub(super) fn singles(bytes: &[u8]) -> Result<Vec<f64>> {
    let (values, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(not_onnx());
    }
    Ok(values.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect())
}

/// Floats of 64 bits, one after the other.
pub(super) fn doubles(bytes: &[u8]) -> Result<Vec<f64>> {
    let (values, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(not_onnx());
    }
    Ok(values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}
