//! The wire format of protocol buffers, as far as ORC uses it: fields of numbers and of bytes, one after the other.

use crate::Error;
use crate::error::corrupt;

/// The value of one field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> Result<u64, Error> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(corrupt("a number of its metadata is none")),
        }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(corrupt("a part of its metadata is a number")),
        }
    }

    pub(crate) fn text(self) -> Result<String, Error> {
        let text = std::str::from_utf8(self.bytes()?);
        Ok(text.map_err(|_| corrupt("a name in its metadata is not UTF-8"))?.to_owned())
    }

    /// Adds a number, or those that are packed.
    pub(crate) fn add_to(self, numbers: &mut Vec<u64>) -> Result<(), Error> {
        match self {
            Self::Number(number) => numbers.push(number),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    numbers.push(varint(&mut packed)?);
                }
            }
        }
        Ok(())
    }
}

/// The fields of a message in their order.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), Error> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = varint(&mut self.0)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return Err(corrupt("its metadata cannot be decoded")),
        };
        Ok((key >> 3, value))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or_else(|| corrupt("its metadata ends within a part"))?;
        self.0 = rest;
        Ok(taken)
    }
}

/// A number of seven bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(|| corrupt("its metadata ends within a number"))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(corrupt("a number of its metadata does not end"))
}

/// A number whose lowest bit is its sign.
pub(crate) fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}
