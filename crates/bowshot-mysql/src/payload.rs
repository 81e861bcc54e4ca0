//! The payload of a received packet. It is untrusted: missing bytes are an error.

use crate::status::Failure;
use bytes::{Buf, Bytes, BytesMut};

/// The unread rest of one packet.
#[derive(Debug, Clone)]
pub(crate) struct Payload(Bytes);

fn malformed() -> Failure {
    Failure::new(1835, "HY000", "malformed communication packet")
}

impl Payload {
    pub(crate) fn new(bytes: BytesMut) -> Self {
        Self(bytes.freeze())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Failure> {
        self.0.try_get_u8().map_err(|_| malformed())
    }

    pub(crate) fn short(&mut self) -> Result<u16, Failure> {
        self.0.try_get_u16_le().map_err(|_| malformed())
    }

    pub(crate) fn int(&mut self) -> Result<u32, Failure> {
        self.0.try_get_u32_le().map_err(|_| malformed())
    }

    pub(crate) fn long(&mut self) -> Result<u64, Failure> {
        self.0.try_get_u64_le().map_err(|_| malformed())
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<Bytes, Failure> {
        if self.0.len() < length {
            return Err(malformed());
        }
        Ok(self.0.split_to(length))
    }

    /// The rest, which stays.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes the rest.
    pub(crate) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    /// Takes the rest as text.
    pub(crate) fn rest_text(&mut self) -> Result<String, Failure> {
        text(&self.rest())
    }

    /// Bytes up to a zero byte.
    pub(crate) fn zero_ended(&mut self) -> Result<Bytes, Failure> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let found = self.0.split_to(end);
        self.0.advance(1);
        Ok(found)
    }

    /// A text that ends with a zero byte.
    pub(crate) fn zero_ended_text(&mut self) -> Result<String, Failure> {
        text(&self.zero_ended()?)
    }

    /// A number in one, three, four or nine bytes ("Length-Encoded Integers").
    pub(crate) fn number(&mut self) -> Result<u64, Failure> {
        Ok(match self.byte()? {
            0xfc => u64::from(self.short()?),
            0xfd => u64::from(self.short()?) | u64::from(self.byte()?) << 16,
            0xfe => self.long()?,
            0xfb | 0xff => return Err(malformed()),
            small => u64::from(small),
        })
    }

    /// Bytes after their length.
    pub(crate) fn counted(&mut self) -> Result<Bytes, Failure> {
        let length = usize::try_from(self.number()?).map_err(|_| malformed())?;
        self.bytes(length)
    }
}

pub(crate) fn text(bytes: &[u8]) -> Result<String, Failure> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Failure::new(1300, "HY000", "invalid utf8mb4 character string")
            .with_hint("texts are UTF-8, whatever the client's character set")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(bytes: &[u8]) -> Payload {
        Payload::new(BytesMut::from(bytes))
    }

    #[test]
    fn numbers_have_four_lengths() {
        for (bytes, expected) in [
            (b"\0".as_ref(), Some(0)),
            (b"\xfa", Some(250)),
            (b"\xfc\xfb\0", Some(251)),
            (b"\xfd\x01\x02\x03", Some(0x03_0201)),
            (b"\xfe\xff\0\0\0\0\0\0\0", Some(255)),
            (b"\xfb", None),
            (b"\xff", None),
            (b"\xfc\x01", None),
            (b"", None),
        ] {
            assert_eq!(body(bytes).number().ok(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lengths_that_are_not_there_are_refused() {
        assert!(body(b"\x05abc").counted().is_err());
        assert!(body(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffa").counted().is_err());
        assert!(body(b"abc").zero_ended().is_err());
        assert_eq!(body(b"abc\0d").zero_ended_text().unwrap(), "abc");
        assert!(text(b"\xff").is_err());
    }
}
