//! Texts such as `SELECT a, b FROM t WHERE id = 5 LIMIT 1`, which clients send again and again with other literals, told apart from all others
//! by their characters alone: to split them into tokens several times, and to parse them, takes longer than to answer them.
//!
//! It takes so few characters that each dialect reads them in the same way: words, blanks, names in quotes, `,`, `.`, `*` and `=`,
//! behind `=` parameters, whole numbers without a sign and texts without escapes, and behind a LIMIT at the end a whole number or a
//! parameter, which is no literal that another text may have otherwise. There is no comment, no parenthesis, no other
//! operator, no second statement and no other literal among what it takes. All that is not a literal is the form of the text; two
//! texts of one form differ in the values of literals alone, which stand in the same places.

use std::ops::Range;

/// Longest text that is looked at.
const MAX_BYTES: usize = 1_000;
/// Stands for the word LIMIT, where other tokens have their first byte.
const LIMIT: u8 = 0;

/// A literal behind `=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainLiteral<'a> {
    /// A whole number.
    Number(i64),
    /// What stands between single quotes.
    Text(&'a str),
}

/// A `SELECT` without parsing: its text without literals, and the literals.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainSelect<'a> {
    form: String,
    literals: Vec<PlainLiteral<'a>>,
}

impl<'a> PlainSelect<'a> {
    /// `None` for any other text.
    pub fn read(sql: &'a str) -> Option<Self> {
        let text = sql.get(bounds(sql))?;
        let (mut form, mut literals, mut copied) = (String::with_capacity(text.len()), Vec::new(), 0);
        scan(text, |place, literal| {
            form.push_str(text.get(copied..place.start).unwrap_or_default());
            form.push_str(match literal {
                PlainLiteral::Number(_) => "0",
                PlainLiteral::Text(_) => "''",
            });
            copied = place.end;
            literals.push(literal);
        })?;
        form.push_str(text.get(copied..).unwrap_or_default());
        Some(Self { form, literals })
    }

    /// The text with `0` and `''` in the place of its literals.
    pub fn form(&self) -> &str {
        &self.form
    }

    /// The literals in the order of the text.
    pub fn literals(&self) -> &[PlainLiteral<'a>] {
        &self.literals
    }
}

/// Where the statement of a text is that is such a SELECT.
pub(crate) fn place(sql: &str) -> Option<Range<usize>> {
    let place = bounds(sql);
    scan(sql.get(place.clone())?, |_, _| ()).map(|()| place)
}

/// The text without the blanks around it, and without a semicolon at its end.
fn bounds(sql: &str) -> Range<usize> {
    let text = sql.trim_ascii_start();
    let start = sql.len() - text.len();
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(';').map_or(text, str::trim_ascii_end);
    start..start + text.len()
}

/// Gives each literal with its place; `None` for a text that is no such SELECT.
fn scan<'a>(text: &'a str, mut found: impl FnMut(Range<usize>, PlainLiteral<'a>)) -> Option<()> {
    let bytes = text.as_bytes();
    let begins = text.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
    if bytes.len() > MAX_BYTES || !begins || !bytes.get(6).is_some_and(|byte| is_blank(*byte)) {
        return None;
    }
    // The first byte of the last token.
    let (mut last, mut at, mut has_from) = (b' ', 0, false);
    while let Some(byte) = bytes.get(at).copied() {
        let mut token = byte;
        let end = match byte {
            blank if is_blank(blank) => {
                at += 1;
                continue;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let end = end_of(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let word = text.get(at..end)?;
                has_from |= word.eq_ignore_ascii_case("from");
                // What locks rows is planned each time.
                if word.eq_ignore_ascii_case("for") || word.eq_ignore_ascii_case("lock") {
                    return None;
                }
                token = if word.eq_ignore_ascii_case("limit") { LIMIT } else { byte };
                // `E'\n'` and `_utf8'x'` are texts of other kinds.
                (!matches!(bytes.get(end), Some(b'\'' | b'"' | b'`'))).then_some(end)?
            }
            b'0'..=b'9' if last == b'=' => {
                let end = end_of(bytes, at, |byte| byte.is_ascii_digit());
                found(at..end, PlainLiteral::Number(text.get(at..end)?.parse().ok()?));
                ends_word(bytes, end).then_some(end)?
            }
            b'\'' if last == b'=' => {
                let end = end_of_quoted(bytes, at)?;
                found(at..end, PlainLiteral::Text(text.get(at + 1..end - 1)?));
                ends_word(bytes, end).then_some(end)?
            }
            b'0'..=b'9' if last == LIMIT => {
                let end = end_of(bytes, at, |byte| byte.is_ascii_digit());
                (end == bytes.len()).then_some(end)?
            }
            b'$' | b'?' if last == b'=' || last == LIMIT => {
                let end = end_of(bytes, at + 1, |byte| byte.is_ascii_digit());
                let is_parameter = (byte == b'$') == (end > at + 1);
                let is_at_end = end == bytes.len() || last == b'=' && ends_word(bytes, end);
                (is_parameter && is_at_end).then_some(end)?
            }
            b'"' | b'`' => {
                let end = end_of_quoted(bytes, at)?;
                let is_whole = ends_word(bytes, end) || matches!(bytes.get(end), Some(b',' | b'.' | b'='));
                is_whole.then_some(end)?
            }
            b'=' if last == b'=' => return None,
            b',' | b'.' | b'*' | b'=' => at + 1,
            _ => return None,
        };
        (last, at) = (token, end);
    }
    has_from.then_some(())
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether the text, or a blank, follows.
fn ends_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| is_blank(*byte))
}

fn end_of(bytes: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().skip(at).position(|byte| !belongs(*byte)).map_or(bytes.len(), |length| at + length)
}

/// The end of what is in quotes; `None` where it has an escape, or none.
fn end_of_quoted(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = *bytes.get(at)?;
    let inner = bytes.get(at + 1..)?;
    let length = inner.iter().position(|byte| *byte == quote || *byte == b'\\')?;
    let is_plain = inner.get(length) == Some(&quote) && inner.get(length + 1) != Some(&quote);
    is_plain.then_some(at + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PlainLiteral::{Number, Text};

    #[test]
    fn literals_behind_equals_are_taken_out_of_the_form() {
        for (sql, form, literals) in [
            ("SELECT a FROM t WHERE id = 5", "SELECT a FROM t WHERE id = 0", vec![Number(5)]),
            (" select *\nFrom t\tWhere id=007 ;\n", "select *\nFrom t\tWhere id=0", vec![Number(7)]),
            (
                "SELECT `a b`, t.* FROM t WHERE \"x\".b = 'ä -- ; 5' AND c = 9223372036854775807",
                "SELECT `a b`, t.* FROM t WHERE \"x\".b = '' AND c = 0",
                vec![Text("ä -- ; 5"), Number(i64::MAX)],
            ),
            ("SELECT a FROM t WHERE id = ''", "SELECT a FROM t WHERE id = ''", vec![Text("")]),
            ("SELECT a1 FROM t", "SELECT a1 FROM t", vec![]),
            (
                "SELECT a FROM t WHERE a = $1 AND b = 5 AND c=?",
                "SELECT a FROM t WHERE a = $1 AND b = 0 AND c=?",
                vec![Number(5)],
            ),
            (
                "SELECT a FROM t WHERE id = 5 ORDER BY id ASC limit 21;",
                "SELECT a FROM t WHERE id = 0 ORDER BY id ASC limit 21",
                vec![Number(5)],
            ),
            ("SELECT a FROM t WHERE id = $1 LIMIT $2", "SELECT a FROM t WHERE id = $1 LIMIT $2", vec![]),
            ("SELECT a FROM t WHERE limit = 5", "SELECT a FROM t WHERE limit = 0", vec![Number(5)]),
        ] {
            let read = PlainSelect::read(sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!((read.form(), read.literals()), (form, literals.as_slice()), "{sql}");
            let text = sql.trim().trim_end_matches(';').trim_end();
            assert_eq!(place(sql).and_then(|place| sql.get(place)), Some(text), "{sql}");
        }
    }

    #[test]
    fn whatever_may_be_read_otherwise_is_refused() {
        for condition in [
            "id = -5",
            "id = +5",
            "id = 5.0",
            "id = 5.",
            "id = .5",
            "id = 5e3",
            "id = 5_000",
            "id = 0x5",
            "id = 5a",
            "id = 9223372036854775808",
            "id == 5",
            "id > 5",
            "id = 5 + 1",
            "5 = id",
            "id = (5)",
            "id IN (5)",
            "id = $a",
            "id = $",
            "id = $1::int",
            "id = ?1",
            "id = :a",
            "id = @a",
            "id = 5::int",
            "id = 5 LIMIT 1, 2",
            "id = 5 LIMIT 1 OFFSET 2",
            "id = 5 LIMIT 1 FOR UPDATE",
            "id = 5 FOR UPDATE",
            "id = 5 lock in share mode",
            "id = 5 LIMIT ? OFFSET ?",
            "id = 5 LIMIT -1",
            "id = 5 LIMIT 1.5",
            "id = 5 LIMIT '1'",
            "id = 5 LIMIT (1)",
            "id = 5 LIMIT 1e1",
            "id = 5 ORDER BY 1",
            "id = 5 -- c",
            "id = 5 # c",
            "id = 5 /* c */",
            "id = 5; SELECT 1",
            "id = 5;;",
            "w = 'it''s'",
            r"w = 'a\'b'",
            "w = 'a' 'b'",
            "w = 'a''",
            "w = 'a",
            "w = E'a'",
            "w = N'a'",
            "w = X'5a'",
            "w = _utf8 'a'",
            "w = $$a$$",
            "w LIKE 'a'",
            "d = DATE '2020-01-01'",
            "d = INTERVAL '1' day",
            "\"a\"\"b\" = 5",
            r#""a\" = 5"#,
            "U&\"a\" = 5",
            "ä = 5",
            "id = 5\u{a0}",
        ] {
            let sql = format!("SELECT a FROM t WHERE {condition}");
            assert_eq!(PlainSelect::read(&sql), None, "{sql}");
            assert_eq!(place(&sql), None, "{sql}");
        }
    }

    #[test]
    fn other_statements_are_refused() {
        let long = format!("SELECT a FROM t WHERE w = '{}'", "a".repeat(MAX_BYTES));
        for sql in [
            "",
            "SELECT",
            "SELECT 1",
            "SELECT a",
            "SELECT*FROM t",
            "(SELECT a FROM t)",
            "DELETE FROM t",
            long.as_str(),
        ] {
            assert_eq!(PlainSelect::read(sql), None, "{sql}");
        }
    }
}
