//! Streams the objects of a JSON array one after the other. It tracks strings and brackets only, and does not parse
//! the objects.

use bowshot_api::{Error, Result};
use bytes::Bytes;

/// Parser state outside of objects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    /// Only white space so far.
    #[default]
    Start,
    /// Objects without an array; passed unchanged.
    Bare,
    /// Expects an object or the end of the array.
    First,
    Object,
    /// Expects a comma or the end of the array.
    Comma,
    End,
}

#[derive(Debug, Default)]
pub(super) struct JsonArrayReader {
    state: ArrayState,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl JsonArrayReader {
    /// The next chunk without the brackets and commas of the array.
    pub(super) fn map(&mut self, piece: &Bytes) -> Result<Bytes> {
        if self.state == ArrayState::Bare {
            return Ok(piece.clone());
        }
        let mut out = Vec::with_capacity(piece.len());
        for (index, byte) in piece.iter().enumerate() {
            if let Some(byte) = self.step(*byte)? {
                out.push(byte);
            }
            if self.state == ArrayState::Bare {
                out.extend_from_slice(piece.get(index + 1..).unwrap_or_default());
                break;
            }
        }
        Ok(out.into())
    }

    /// Checks the state at the end of the body.
    pub(super) fn end(&self) -> Result<()> {
        match self.state {
            ArrayState::Start | ArrayState::Bare | ArrayState::End => Ok(()),
            ArrayState::First | ArrayState::Object | ArrayState::Comma => {
                Err(Error::invalid("the JSON array has no end").with_hint("send it to its end"))
            }
        }
    }

    fn step(&mut self, byte: u8) -> Result<Option<u8>> {
        if self.in_text {
            self.in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return Ok(Some(byte));
        }
        if self.depth > 0 {
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            return Ok(Some(byte));
        }
        self.state = match (self.state, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => return Ok(Some(byte)),
            (ArrayState::Start, b'[') => ArrayState::First,
            (ArrayState::Start | ArrayState::Bare, _) => {
                self.state = ArrayState::Bare;
                return Ok(Some(byte));
            }
            (ArrayState::First | ArrayState::Object, b'{') => {
                (self.state, self.depth) = (ArrayState::Comma, 1);
                return Ok(Some(byte));
            }
            (ArrayState::First | ArrayState::Comma, b']') => ArrayState::End,
            (ArrayState::Comma, b',') => ArrayState::Object,
            (ArrayState::End, _) => return Err(Error::invalid("something follows the JSON array")),
            (ArrayState::First | ArrayState::Object, _) => {
                return Err(Error::invalid("the JSON array has something else than objects"));
            }
            (ArrayState::Comma, _) => {
                return Err(Error::invalid("the JSON array has no comma between two objects"));
            }
        };
        // White space replaces the bracket or comma.
        Ok(Some(b'\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrap(text: &str, piece_bytes: usize) -> String {
        let mut array = JsonArrayReader::default();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece_bytes) {
            match array.map(&Bytes::copy_from_slice(piece)) {
                Ok(piece) => out.extend_from_slice(&piece),
                Err(error) => return error.message().to_owned(),
            }
        }
        match array.end() {
            Ok(()) => String::from_utf8(out).unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn arrays_become_their_objects() {
        for (text, expected) in [
            ("", ""),
            ("[]", ""),
            (r#" [ {"a":1} , {"b":[1,{}]} ] "#, r#"{"a":1} {"b":[1,{}]}"#),
            (r#"[{"a":"]}\"{,"},{"b":"\\"}]"#, r#"{"a":"]}\"{,"} {"b":"\\"}"#),
            (r#"{"a":[1]}{"b":2}"#, r#"{"a":[1]}{"b":2}"#),
            ("x", "x"),
            ("[1]", "the JSON array has something else than objects"),
            ("[{},]", "the JSON array has something else than objects"),
            ("[{}{}]", "the JSON array has no comma between two objects"),
            ("[{}", "the JSON array has no end"),
            ("[{}] x", "something follows the JSON array"),
        ] {
            for piece_bytes in [1, 3, 1_000] {
                assert_eq!(unwrap(text, piece_bytes), expected, "{text} by {piece_bytes}");
            }
        }
    }
}
