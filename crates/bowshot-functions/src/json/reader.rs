//! Reads JSON text in one pass, without a tree where only a part is wanted.
//!
//! Every reading checks the whole text: what is behind the wanted part has to be JSON as well. Numbers stay the text that
//! they are, so that no digit is lost. Nesting is bounded, since reading recurses.

use super::value::Json;
use datafusion::common::{DataFusionError, Result};
use std::borrow::Cow;

/// How deep arrays and objects may be inside of one another.
const DEPTH: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The member of an object.
    Key(String),
    /// The element of an array; from its end if negative.
    Index(i64),
    /// All members or elements.
    All,
    /// What is at any depth below, and here.
    Below,
}

pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    pub(crate) fn tree(text: &'a str) -> Result<Json<'a>> {
        let mut reader = Self::new(text);
        let value = reader.value()?;
        reader.end().map(|()| value)
    }

    /// The part that the steps lead to, as it is written. `steps` have neither [`Step::All`] nor [`Step::Below`].
    pub(crate) fn part(text: &'a str, steps: &[Step]) -> Result<Option<&'a str>> {
        let mut reader = Self::new(text);
        let part = reader.find(steps)?;
        reader.end().map(|()| part)
    }

    pub(crate) fn check(text: &'a str) -> Result<()> {
        let mut reader = Self::new(text);
        reader.skip()?;
        reader.end()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn end(&mut self) -> Result<()> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { self.fault() }
    }

    fn fault<T>(&self) -> Result<T> {
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = found.map_or("the text ends".to_owned(), |found| format!("unexpected `{found}`"));
        Err(invalid(&format!(
            "{found} at character {}",
            self.text.get(..self.at).unwrap_or_default().chars().count() + 1
        )))
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        self.space();
        if self.peek() != Some(byte) {
            return self.fault();
        }
        self.at += 1;
        Ok(())
    }

    /// Goes over one value and gives it as it is written.
    pub(crate) fn skip(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.members(|reader, _| reader.skip().map(drop))?,
            Some(b'[') => self.elements(|reader, _| reader.skip().map(drop))?,
            _ => self.scalar().map(drop)?,
        }
        Ok(self.from(start))
    }

    fn value(&mut self) -> Result<Json<'a>> {
        self.space();
        match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.members(|reader, key| {
                    let value = reader.value()?;
                    members.push((key, value));
                    Ok(())
                })?;
                Ok(Json::Object(members))
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                self.elements(|reader, _| {
                    elements.push(reader.value()?);
                    Ok(())
                })?;
                Ok(Json::Array(elements))
            }
            _ => self.scalar(),
        }
    }

    fn find(&mut self, steps: &[Step]) -> Result<Option<&'a str>> {
        let Some((step, rest)) = steps.split_first() else { return self.skip().map(Some) };
        self.space();
        let mut found = None;
        match (self.peek(), step) {
            (Some(b'{'), Step::Key(wanted)) => self.members(|reader, key| {
                // Of two members of one name the last one counts, as in PostgreSQL.
                if key == wanted.as_str() {
                    reader.find(rest).map(|part| found = part)
                } else {
                    reader.skip().map(drop)
                }
            })?,
            (Some(b'['), Step::Index(wanted)) => {
                let wanted = if *wanted < 0 { self.length()? + wanted } else { *wanted };
                self.elements(|reader, index| {
                    if index == wanted {
                        reader.find(rest).map(|part| found = part)
                    } else {
                        reader.skip().map(drop)
                    }
                })?;
            }
            _ => self.skip().map(drop)?,
        }
        Ok(found)
    }

    /// How many elements the array that begins here has. Does not move.
    fn length(&self) -> Result<i64> {
        let mut ahead = Reader { text: self.text, at: self.at, depth: self.depth };
        let mut length = 0;
        ahead.elements(|reader, _| {
            length += 1;
            reader.skip().map(drop)
        })?;
        Ok(length)
    }

    fn deeper(&mut self) -> Result<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(invalid(&format!("arrays and objects are nested more than {DEPTH} deep")));
        }
        self.space();
        Ok(())
    }

    fn members(&mut self, mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Result<()>) -> Result<()> {
        self.deeper()?;
        if self.peek() == Some(b'}') {
            return self.up();
        }
        loop {
            self.space();
            let key = self.string()?;
            self.expect(b':')?;
            each(self, key)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.up(),
                _ => return self.fault(),
            }
        }
    }

    fn elements(&mut self, mut each: impl FnMut(&mut Self, i64) -> Result<()>) -> Result<()> {
        self.deeper()?;
        if self.peek() == Some(b']') {
            return self.up();
        }
        for index in 0.. {
            each(self, index)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.up(),
                _ => return self.fault(),
            }
        }
        self.fault()
    }

    fn up(&mut self) -> Result<()> {
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<Json<'a>> {
        match self.peek() {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(|digits| Json::Number(Cow::Borrowed(digits))),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.fault(),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return self.fault();
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.fault() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.from(start))
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return self.fault();
        }
        self.at += 1;
        let start = self.at;
        let mut made: Option<String> = None;
        let mut run = start;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = self.from(run);
                    self.at += 1;
                    return Ok(made.map_or(Cow::Borrowed(rest), |made| Cow::Owned(made + rest)));
                }
                Some(b'\\') => {
                    let out = made.get_or_insert_default();
                    out.push_str(self.text.get(run..self.at).unwrap_or_default());
                    let meant = self.escape()?;
                    made.get_or_insert_default().push(meant);
                    run = self.at;
                }
                None | Some(0..=0x1f) => return self.fault(),
                Some(_) => self.at += 1,
            }
        }
    }

    /// The character that an escape means. `at` is at its backslash, and behind it afterwards.
    fn escape(&mut self) -> Result<char> {
        self.at += 1;
        let meant = match self.peek() {
            Some(b'u') => return self.code_point(),
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(same @ (b'"' | b'\\' | b'/')) => char::from(same),
            _ => return self.fault(),
        };
        self.at += 1;
        Ok(meant)
    }

    fn code_point(&mut self) -> Result<char> {
        let first = self.four_digits()?;
        let code = match first {
            0xd800..=0xdbff if self.text.get(self.at..self.at + 2) == Some("\\u") => {
                self.at += 1;
                let second = self.four_digits()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return self.fault();
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            _ => first,
        };
        char::from_u32(code).map_or_else(|| self.fault(), Ok)
    }

    fn four_digits(&mut self) -> Result<u32> {
        self.at += 1;
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|four| four.bytes().all(|one| one.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|four| u32::from_str_radix(four, 16).ok()) else {
            return self.fault();
        };
        self.at += 4;
        Ok(code)
    }
}

/// PostgreSQL's words for what is not JSON.
pub(crate) fn invalid(why: &str) -> DataFusionError {
    DataFusionError::Execution(format!("invalid input syntax for type json: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_is_told_from_what_is_not() {
        for good in ["1", "-0.5e+3", " [ 1 , {} ] ", "\"\\ud83d\\ude00\"", "{\"a\":null,\"a\":true}", "[]"] {
            assert!(Reader::check(good).is_ok(), "{good}");
        }
        let bad = [
            "",
            "01",
            "1.",
            "-",
            "+1",
            "nul",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "'a'",
            "\"\t\"",
            "\"\\x\"",
            "1 2",
            "[1",
            "\"\\ud83d\"",
            "NaN",
        ];
        for bad in bad {
            assert!(Reader::check(bad).is_err(), "{bad}");
            assert!(Reader::tree(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Reader::check(&nested(DEPTH)).is_ok());
        assert!(Reader::tree(&nested(DEPTH + 1)).is_err());
        assert!(Reader::check(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn a_part_is_found_without_a_tree() {
        let part = |steps: &[Step]| Reader::part("{\"a\":[1,{\"b\": [2] }],\"c\":3}", steps).ok().flatten();
        assert_eq!(part(&[Step::Key("a".into()), Step::Index(1), Step::Key("b".into())]), Some("[2]"));
        assert_eq!(part(&[Step::Key("a".into()), Step::Index(-2)]), Some("1"));
        assert_eq!(part(&[Step::Key("c".into()), Step::Index(0)]), None);
    }
}
