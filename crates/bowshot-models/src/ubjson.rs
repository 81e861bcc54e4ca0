//! UBJSON, the binary form of JSON that XGBoost writes: the same values with their types and lengths before them, big end
//! first. Levels are counted, and lengths held against the bytes that are left before memory is asked for.

use crate::error::{Error, Result};
use crate::limits::{DOCUMENT_DEPTH, DOCUMENT_VALUES, within};
use crate::value_tree::{Growing, Value};

pub(crate) fn from_ubjson(bytes: &[u8]) -> Result<Value> {
    let mut reader = Reader { bytes, values: 0 };
    let marker = reader.marker()?;
    reader.value(marker, 0)
}

struct Reader<'a> {
    bytes: &'a [u8],
    values: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or_else(|| Error::damaged("it ends in the middle of a value"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Error::damaged("it ends in the middle of a value"))
    }

    /// The next byte that is not "nothing".
    fn marker(&mut self) -> Result<u8> {
        loop {
            let [marker] = self.array()?;
            if marker != b'N' {
                return Ok(marker);
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    fn value(&mut self, marker: u8, depth: usize) -> Result<Value> {
        within("levels in the file", depth, DOCUMENT_DEPTH)?;
        Ok(match marker {
            b'Z' => Value::Null,
            b'T' => Value::Number(1.0),
            b'F' => Value::Number(0.0),
            b'S' => Value::Text(self.text()?),
            b'[' => self.list(depth)?,
            b'{' => self.object(depth)?,
            _ => Value::Number(self.number(marker)?),
        })
    }

    fn count_value(&mut self) -> Result<()> {
        self.values += 1;
        within("values in the file", self.values, DOCUMENT_VALUES)
    }

    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    fn number(&mut self, marker: u8) -> Result<f64> {
        Ok(match marker {
            b'i' => f64::from(i8::from_be_bytes(self.array()?)),
            b'U' => f64::from(u8::from_be_bytes(self.array()?)),
            b'I' => f64::from(i16::from_be_bytes(self.array()?)),
            b'l' => f64::from(i32::from_be_bytes(self.array()?)),
            b'L' => i64::from_be_bytes(self.array()?) as f64,
            b'd' => f64::from(f32::from_be_bytes(self.array()?)),
            b'D' => f64::from_be_bytes(self.array()?),
            _ => return Err(Error::damaged(format!("invalid UBJSON type marker {marker}"))),
        })
    }

    fn length(&mut self) -> Result<usize> {
        let marker = self.marker()?;
        crate::value_tree::place(self.number(marker)?).ok_or_else(|| Error::damaged("invalid length"))
    }

    fn text(&mut self) -> Result<String> {
        self.count_value()?;
        let length = self.length()?;
        let text =
            std::str::from_utf8(self.take(length)?).map_err(|_| Error::damaged("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// The type of all values of a list, and how many they are, where they stand before it.
    fn header(&mut self) -> Result<(Option<u8>, Option<usize>)> {
        let mut kind = None;
        if self.peek() == Some(b'$') {
            let [_, marker] = self.array()?;
            kind = Some(marker);
        }
        if self.peek() != Some(b'#') {
            return if kind.is_some() {
                Err(Error::damaged("a typed list without a length"))
            } else {
                Ok((None, None))
            };
        }
        self.take(1)?;
        Ok((kind, Some(self.length()?)))
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.count_value()?;
        let (kind, count) = self.header()?;
        let mut list = Growing::Numbers(Vec::new());
        let mut read = 0;
        loop {
            if count == Some(read) {
                return Ok(list.finish());
            }
            read += 1;
            let marker = match kind {
                // These have no bytes of their own, so that no file would be too short for any number of them.
                Some(b'Z' | b'T' | b'F' | b'N') => {
                    return Err(Error::damaged("a list of a type without values"));
                }
                Some(kind) => kind,
                None => self.marker()?,
            };
            if count.is_none() && marker == b']' {
                return Ok(list.finish());
            }
            let value = self.value(marker, depth + 1)?;
            if !list.push(value) {
                return Err(Error::damaged("a list of numbers and other values"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        self.count_value()?;
        let (kind, count) = self.header()?;
        if kind.is_some() {
            return Err(Error::damaged("an object with one type for all"));
        }
        let mut object = Vec::new();
        loop {
            if count == Some(object.len()) {
                break;
            }
            if count.is_none() && self.peek() == Some(b'}') {
                self.take(1)?;
                break;
            }
            let key = self.text()?;
            let marker = self.marker()?;
            object.push((key, self.value(marker, depth + 1)?));
        }
        Ok(Value::Object(object))
    }
}
