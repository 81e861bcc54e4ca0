//! The messages of clients (PostgreSQL manual, "Message Formats"). They are untrusted: each count is checked against the
//! bytes that are there before memory is allocated for it.

use crate::status::Failure;
use bytes::{Buf, Bytes, BytesMut};

/// A message after the start-up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe(Target),
    Execute {
        portal: String,
        rows: usize,
    },
    Close(Target),
    Sync,
    Flush,
    Terminate,
    /// A password, or another answer to a request for authentication.
    Password(Bytes),
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    FunctionCall,
}

/// A prepared statement or a portal, by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// Values for the parameters of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    /// None: all are text; one: for all; else one for each.
    pub(crate) formats: Vec<Format>,
    pub(crate) values: Vec<Option<Bytes>>,
    /// As `formats`, for the columns of the result.
    pub(crate) results: Vec<Format>,
}

/// The format of one of `count` values; `None` when the numbers do not fit.
pub(crate) fn format_of(formats: &[Format], index: usize, count: usize) -> Option<Format> {
    match formats {
        [] => Some(Format::Text),
        [one] => Some(*one),
        many if many.len() == count => many.get(index).copied(),
        _ => None,
    }
}

type Parsed<T> = Result<T, Failure>;

/// The tag of [`Message::Sync`].
pub(crate) const SYNC: u8 = b'S';

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// For an unknown message, and for one whose length does not match its content.
    pub(crate) fn parse(tag: u8, body: BytesMut) -> Parsed<Self> {
        let mut body = Body(body.freeze());
        let message = match tag {
            b'Q' => Self::Query(body.text()?),
            b'P' => Self::Parse { name: body.text()?, sql: body.text()?, types: body.types()? },
            b'B' => Self::Bind(body.bind()?),
            b'D' => Self::Describe(body.target()?),
            b'C' => Self::Close(body.target()?),
            b'E' => {
                let portal = body.text()?;
                // Zero and, as in PostgreSQL, negative numbers mean all rows.
                Self::Execute { portal, rows: usize::try_from(body.i32()?).unwrap_or(0) }
            }
            SYNC => Self::Sync,
            b'H' => Self::Flush,
            b'X' => Self::Terminate,
            b'p' => Self::Password(body.rest()),
            b'd' => Self::CopyData(body.rest()),
            b'c' => Self::CopyDone,
            b'f' => Self::CopyFail(body.text()?),
            b'F' => {
                body.rest();
                Self::FunctionCall
            }
            other => {
                return Err(Failure::protocol(format!("invalid frontend message type {other}")));
            }
        };
        if body.0.has_remaining() {
            return Err(malformed());
        }
        Ok(message)
    }
}

fn malformed() -> Failure {
    Failure::protocol("protocol violation: the length of a message does not match its contents")
}

/// The rest of a message.
pub(crate) struct Body(pub(crate) Bytes);

impl Body {
    /// A text that ends with a zero byte.
    pub(crate) fn text(&mut self) -> Parsed<String> {
        let length = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = self.0.split_to(length);
        self.0.advance(1);
        String::from_utf8(text.to_vec()).map_err(|_| {
            Failure::new("22021", "a text is not UTF-8").with_hint("the client encoding is UTF8")
        })
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    fn i16(&mut self) -> Parsed<i16> {
        self.0.try_get_i16().map_err(|_| malformed())
    }

    fn i32(&mut self) -> Parsed<i32> {
        self.0.try_get_i32().map_err(|_| malformed())
    }

    /// The number of parts that follow, each of at least `least` bytes; the message must have room for them.
    fn count(&mut self, least: usize) -> Parsed<usize> {
        // An unsigned number, as PostgreSQL reads the number of parameters.
        let count = usize::from(self.i16()?.cast_unsigned());
        if count * least > self.0.len() {
            return Err(malformed());
        }
        Ok(count)
    }

    fn types(&mut self) -> Parsed<Vec<u32>> {
        let count = self.count(4)?;
        (0..count).map(|_| self.0.try_get_u32().map_err(|_| malformed())).collect()
    }

    fn formats(&mut self) -> Parsed<Vec<Format>> {
        let count = self.count(2)?;
        (0..count)
            .map(|_| match self.i16()? {
                0 => Ok(Format::Text),
                1 => Ok(Format::Binary),
                other => Err(Failure::protocol(format!("invalid format code {other}"))),
            })
            .collect()
    }

    fn value(&mut self) -> Parsed<Option<Bytes>> {
        match usize::try_from(self.i32()?) {
            Err(_) => Ok(None),
            Ok(length) if length <= self.0.len() => Ok(Some(self.0.split_to(length))),
            Ok(_) => Err(malformed()),
        }
    }

    fn bind(&mut self) -> Parsed<Bind> {
        let (portal, statement, formats) = (self.text()?, self.text()?, self.formats()?);
        let count = self.count(4)?;
        let values = (0..count).map(|_| self.value()).collect::<Parsed<_>>()?;
        Ok(Bind { portal, statement, formats, values, results: self.formats()? })
    }

    fn target(&mut self) -> Parsed<Target> {
        match self.0.try_get_u8() {
            Ok(b'S') => Ok(Target::Statement(self.text()?)),
            Ok(b'P') => Ok(Target::Portal(self.text()?)),
            _ => Err(Failure::protocol("neither a statement nor a portal is named")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tag: u8, body: &[u8]) -> Parsed<Message> {
        Message::parse(tag, BytesMut::from(body))
    }

    /// Messages of every kind with content.
    const WHOLE: &[(u8, &[u8])] = &[
        (b'Q', b"select 1\0"),
        (b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
        (b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01\0\x01"),
        (b'D', b"Sname\0"),
        (b'C', b"P\0"),
        (b'E', b"p\0\0\0\0\x05"),
        (b'f', b"why\0"),
    ];

    #[test]
    fn messages_are_read() {
        let bind = Bind {
            portal: "p".into(),
            statement: "s".into(),
            formats: vec![Format::Binary],
            values: vec![Some(Bytes::from_static(b"a")), None],
            results: vec![Format::Binary],
        };
        let expected = [
            Message::Query("select 1".into()),
            Message::Parse { name: "s".into(), sql: "select $1".into(), types: vec![23] },
            Message::Bind(bind),
            Message::Describe(Target::Statement("name".into())),
            Message::Close(Target::Portal(String::new())),
            Message::Execute { portal: "p".into(), rows: 5 },
            Message::CopyFail("why".into()),
        ];
        for ((tag, body), expected) in WHOLE.iter().zip(expected) {
            assert_eq!(parse(*tag, body).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_refused() {
        for (tag, body) in WHOLE {
            for length in 0..body.len() {
                assert!(parse(*tag, &body[..length]).is_err(), "{} cut to {length}", *tag as char);
            }
            let long: Vec<u8> = body.iter().copied().chain([0]).collect();
            assert!(parse(*tag, &long).is_err(), "{} and a byte", *tag as char);
        }
    }

    #[test]
    fn numbers_of_parts_are_checked_against_what_is_there() {
        for body in [
            b"\0\0\x7f\xff".as_ref(),
            b"\0\0\xff\xff\0\0",
            b"\0\0\0\0\xff\xff\0\0\0\0",
            b"\0\0\0\0\0\x01\x7f\xff\xff\xffabc",
        ] {
            assert_eq!(parse(b'B', body).unwrap_err().code, "08P01");
        }
        assert_eq!(parse(b'P', b"\0\0\xff\xff\0\0\0\x17").unwrap_err().code, "08P01");
    }

    #[test]
    fn unknown_messages_and_texts_that_are_none() {
        assert_eq!(parse(b'?', b"").unwrap_err().code, "08P01");
        assert_eq!(parse(b'Q', b"\xff\0").unwrap_err().code, "22021");
        assert_eq!(parse(b'D', b"Xa\0").unwrap_err().code, "08P01");
    }

    #[test]
    fn formats_count_for_all_or_for_each() {
        use Format::{Binary, Text};
        for (formats, expected) in [
            (&[][..], Some(Text)),
            (&[Binary], Some(Binary)),
            (&[Text, Binary], Some(Binary)),
            (&[Text; 3], None),
        ] {
            assert_eq!(format_of(formats, 1, 2), expected);
        }
    }
}
