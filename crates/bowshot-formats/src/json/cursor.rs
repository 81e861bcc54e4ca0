//! Tokens of JSON, one after the other, in bytes that may end within a value. Everything that is passed over is checked to
//! be JSON, whether somebody wants its value or not.

use std::borrow::Cow;

/// Deeper values are refused: nobody writes them, and each level takes some of the stack.
const MAX_DEPTH: usize = 128;

#[derive(Debug)]
pub(super) enum Trouble {
    End,
    /// It is no JSON.
    Syntax(&'static str),
    /// It is none of its column's.
    Unfit(Box<Unfit>),
    /// A key that no column has.
    Unknown(String),
}

#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) column: String,
    pub(super) value: String,
    pub(super) data_type: String,
    /// Whether that type was asked for.
    pub(super) asked: bool,
}

/// A text between quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoted<'a> {
    /// Without the quotes.
    pub(super) raw: &'a [u8],
    escaped: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The bytes from a place to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// The first byte of what comes, behind blanks.
    pub(super) fn peek(&mut self) -> Result<u8, Trouble> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(Trouble::End),
            }
        }
    }

    /// Goes behind the byte that [`Self::peek`] has shown.
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }

    /// Goes into a list or an object; false if there is nothing in it.
    pub(super) fn enter(&mut self, close: u8) -> Result<bool, Trouble> {
        self.pass();
        let filled = self.peek()? != close;
        if !filled {
            self.pass();
        }
        Ok(filled)
    }

    /// Goes to the next member; false behind the last.
    pub(super) fn more(&mut self, close: u8) -> Result<bool, Trouble> {
        match self.peek()? {
            b',' => {
                self.pass();
                Ok(true)
            }
            byte if byte == close => {
                self.pass();
                Ok(false)
            }
            _ => Err(Trouble::Syntax("expected a comma or the end of a list or object")),
        }
    }

    pub(super) fn key(&mut self) -> Result<Quoted<'a>, Trouble> {
        if self.peek()? != b'"' {
            return Err(Trouble::Syntax("expected a key in quotes"));
        }
        let key = self.text()?;
        if self.peek()? != b':' {
            return Err(Trouble::Syntax("expected a colon after a key"));
        }
        self.pass();
        Ok(key)
    }

    pub(super) fn text(&mut self) -> Result<Quoted<'a>, Trouble> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let found = at + memchr::memchr2(b'"', b'\\', rest).ok_or(Trouble::End)?;
            if self.bytes[found] == b'"' {
                let raw = self.bytes.get(start..found).unwrap_or_default();
                self.at = found + 1;
                return Ok(Quoted { raw, escaped });
            }
            (at, escaped) = (found + 2, true);
        }
    }

    pub(super) fn number(&mut self) -> Result<&'a [u8], Trouble> {
        let start = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let first = self.at;
        self.digits()?;
        if self.bytes.get(first) == Some(&b'0') && self.at > first + 1 {
            return Err(Trouble::Syntax("a number has a leading zero"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.since(start))
    }

    fn digits(&mut self) -> Result<(), Trouble> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            // More of them may come.
            None => Err(Trouble::End),
            Some(_) if self.at == start => Err(Trouble::Syntax("invalid JSON value")),
            Some(_) => Ok(()),
        }
    }

    /// Goes behind a word that begins as it should.
    pub(super) fn word(&mut self, word: &'static [u8]) -> Result<(), Trouble> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.get(..word.len()) {
            Some(found) if found == word => {
                self.at += word.len();
                Ok(())
            }
            None if word.starts_with(rest) => Err(Trouble::End),
            _ => Err(Trouble::Syntax("invalid JSON value")),
        }
    }

    pub(super) fn skip(&mut self) -> Result<&'a [u8], Trouble> {
        self.peek()?;
        let start = self.at;
        self.skip_at(0)?;
        Ok(self.since(start))
    }

    fn skip_at(&mut self, depth: usize) -> Result<(), Trouble> {
        if depth > MAX_DEPTH {
            return Err(Trouble::Syntax("values are nested too deeply"));
        }
        match self.peek()? {
            b'"' => self.text().map(drop),
            b'{' => {
                let mut more = self.enter(b'}')?;
                while more {
                    self.key()?;
                    self.skip_at(depth + 1)?;
                    more = self.more(b'}')?;
                }
                Ok(())
            }
            b'[' => {
                let mut more = self.enter(b']')?;
                while more {
                    self.skip_at(depth + 1)?;
                    more = self.more(b']')?;
                }
                Ok(())
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number().map(drop),
        }
    }
}

impl<'a> Quoted<'a> {
    /// The text that is meant.
    pub(super) fn meant(&self) -> Result<Cow<'a, [u8]>, Trouble> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.raw));
        }
        let mut text = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(found) = memchr::memchr(b'\\', rest) {
            text.extend_from_slice(&rest[..found]);
            rest = unescape(&rest[found + 1..], &mut text)?;
        }
        text.extend_from_slice(rest);
        Ok(Cow::Owned(text))
    }
}

/// Adds what an escape stands for, and gives what follows it.
fn unescape<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Trouble> {
    const WRONG: Trouble = Trouble::Syntax("unknown escape sequence in a string");
    let (escape, rest) = rest.split_first().ok_or(WRONG)?;
    let plain = match escape {
        b'"' | b'\\' | b'/' => *escape,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode(rest, text),
        _ => return Err(WRONG),
    };
    text.push(plain);
    Ok(rest)
}

/// `00e9`, or two of them that are one character together.
fn unicode<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Trouble> {
    const WRONG: Trouble = Trouble::Syntax("incomplete surrogate pair in a string");
    let (first, mut rest) = four_digits(rest)?;
    let mut code = u32::from(first);
    if (0xd800..0xdc00).contains(&code) {
        let (second, behind) = four_digits(rest.strip_prefix(b"\\u").ok_or(WRONG)?)?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(WRONG);
        }
        code = 0x1_0000 + ((code - 0xd800) << 10) + (u32::from(second) - 0xdc00);
        rest = behind;
    }
    let character = char::from_u32(code).ok_or(WRONG)?;
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(rest)
}

fn four_digits(bytes: &[u8]) -> Result<(u16, &[u8]), Trouble> {
    let wrong = || Trouble::Syntax("expected four hexadecimal digits after `\\u`");
    let (digits, rest) = bytes.split_at_checked(4).ok_or_else(wrong)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
    Ok((u16::from_str_radix(digits, 16).map_err(|_| wrong())?, rest))
}

/// A value without the blanks between its tokens.
pub(super) fn compact(raw: &[u8], into: &mut Vec<u8>) {
    let (mut quoted, mut escaped) = (false, false);
    for byte in raw {
        if !quoted && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        }
        into.push(*byte);
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Trouble, compact};

    fn skipped(text: &str) -> String {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        match cursor.skip() {
            Ok(raw) => String::from_utf8_lossy(raw).into_owned(),
            Err(Trouble::End) => "end".to_owned(),
            Err(Trouble::Syntax(why)) => why.to_owned(),
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn values_are_passed_over_and_checked() {
        for (text, expected) in [
            (" {\"a\": [1, -2.5e3, true, null, {}]} x", "{\"a\": [1, -2.5e3, true, null, {}]}"),
            ("\"a\\\"b\" ", "\"a\\\"b\""),
            ("{\"a\": 1", "end"),
            ("12", "end"),
            ("tru", "end"),
            ("\"abc\\", "end"),
            ("[1,]", "invalid JSON value"),
            ("{a: 1}", "expected a key in quotes"),
            ("{\"a\" 1}", "expected a colon after a key"),
            ("[1 2]", "expected a comma or the end of a list or object"),
            ("01 ", "a number has a leading zero"),
            ("nul]", "invalid JSON value"),
        ] {
            assert_eq!(skipped(text), expected, "{text}");
        }
        assert_eq!(skipped(&"[".repeat(1_000)), "values are nested too deeply");
    }

    #[test]
    fn texts_are_what_is_meant() {
        for (text, expected) in [
            (r#""plain""#, Some("plain")),
            (r#""\u00e9 \ud83d\ude00 \n\"""#, Some("é 😀 \n\"")),
            (r#""\ud83d""#, None),
            (r#""\q""#, None),
            (r#""\u00g0""#, None),
        ] {
            let quoted = Cursor::new(text.as_bytes(), 0).text().unwrap();
            let meant = quoted.meant().ok().map(|text| String::from_utf8(text.into_owned()).unwrap());
            assert_eq!(meant.as_deref(), expected, "{text}");
        }
        let mut short = Vec::new();
        compact(b"{ \"a b\" : [ 1,\n 2 ], \"c\\\" d\": 3 }", &mut short);
        assert_eq!(String::from_utf8(short).unwrap(), "{\"a b\":[1,2],\"c\\\" d\":3}");
    }
}
