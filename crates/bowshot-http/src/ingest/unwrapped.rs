//! An array of objects as objects one after the other, while it comes. What is in the objects is not looked at: only where
//! their texts and brackets begin and end.

use bowshot_api::{Error, Result};
use bytes::Bytes;

/// What may come next outside of the objects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing has come but blanks.
    #[default]
    Start,
    /// Objects without an array around them: they pass as they are.
    Bare,
    /// In an array, an object or its end.
    First,
    /// In an array, an object.
    Object,
    /// In an array, a comma or its end.
    Comma,
    /// After the array, blanks.
    End,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unwrapped {
    place: Place,
    /// Brackets that are open within the array.
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Unwrapped {
    /// The next piece without what belongs to the array.
    pub(super) fn map(&mut self, piece: &Bytes) -> Result<Bytes> {
        if self.place == Place::Bare {
            return Ok(piece.clone());
        }
        let mut out = Vec::with_capacity(piece.len());
        for (index, byte) in piece.iter().enumerate() {
            if let Some(byte) = self.step(*byte)? {
                out.push(byte);
            }
            if self.place == Place::Bare {
                out.extend_from_slice(piece.get(index + 1..).unwrap_or_default());
                break;
            }
        }
        Ok(out.into())
    }

    /// To be called when all pieces have come.
    pub(super) fn end(&self) -> Result<()> {
        match self.place {
            Place::Start | Place::Bare | Place::End => Ok(()),
            Place::First | Place::Object | Place::Comma => {
                Err(Error::invalid("the JSON array has no end").with_hint("send it to its end"))
            }
        }
    }

    /// What becomes of a byte.
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
        self.place = match (self.place, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => return Ok(Some(byte)),
            (Place::Start, b'[') => Place::First,
            (Place::Start | Place::Bare, _) => {
                self.place = Place::Bare;
                return Ok(Some(byte));
            }
            (Place::First | Place::Object, b'{') => {
                (self.place, self.depth) = (Place::Comma, 1);
                return Ok(Some(byte));
            }
            (Place::First | Place::Comma, b']') => Place::End,
            (Place::Comma, b',') => Place::Object,
            (Place::End, _) => return Err(Error::invalid("something follows the JSON array")),
            (Place::First | Place::Object, _) => {
                return Err(Error::invalid("the JSON array has something else than objects"));
            }
            (Place::Comma, _) => {
                return Err(Error::invalid("the JSON array has no comma between two objects"));
            }
        };
        // A blank in place of the bracket or the comma.
        Ok(Some(b'\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrap(text: &str, piece_bytes: usize) -> String {
        let mut unwrapped = Unwrapped::default();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece_bytes) {
            match unwrapped.map(&Bytes::copy_from_slice(piece)) {
                Ok(piece) => out.extend_from_slice(&piece),
                Err(error) => return error.message().to_owned(),
            }
        }
        match unwrapped.end() {
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
