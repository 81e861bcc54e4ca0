//! Types of several parts as the parser knows them: `STRUCT(a INT)` and `ROW(a INT)` are `STRUCT<a INT>`, `MAP<k, v>` is
//! `MAP(k, v)`, `LIST(t)` and `ARRAY(t)` are `ARRAY<t>`.

use crate::statement::forms::{Edit, Text};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Words behind which no type stands.
const BEFORE_VALUES: &[&str] = &[
    "SELECT",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "ON",
    "BY",
    "HAVING",
    "THEN",
    "ELSE",
    "WHEN",
    "CASE",
    "VALUES",
    "DEFAULT",
    "CHECK",
    "DISTINCT",
    "ALL",
    "ANY",
    "SET",
    "UNION",
    "LIKE",
    "BETWEEN",
    "IS",
    "FROM",
    "JOIN",
    "USING",
    "RETURNING",
    "EXCEPT",
    "INTERSECT",
    "LATERAL",
];
/// How deep types may stand in one another.
const MAX_DEPTH: usize = 32;
/// Tokens that are read for nothing, behind what looks like a type and is none: each may be followed to the end of the text.
const MOST_IN_VAIN: usize = 1_000_000;

/// The types of a text that have to be spelled otherwise. Where columns are defined, a name stands before a type.
pub(crate) fn edits(text: &Text<'_>, defines: bool) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at, mut in_vain) = (1, 0);
    while at < text.len() && in_vain < MOST_IN_VAIN {
        if is_composed(text, at) && is_type(text, at, defines) {
            let mut reader = Reader { text, at, closed: 0 };
            if let Some(spelled) = reader.composed(0)
                && reader.closed == 0
            {
                let end = text.start(reader.at.saturating_sub(1)) + 1;
                let end = if matches!(text.token(reader.at.saturating_sub(1)), Some(Token::ShiftRight)) {
                    end + 1
                } else {
                    end
                };
                edits.push((text.start(at)..end, spelled));
                at = reader.at;
                continue;
            }
            in_vain += reader.at - at;
        }
        at += 1;
    }
    edits
}

fn is_composed(text: &Text<'_>, at: usize) -> bool {
    matches!(text.word(at).as_str(), "STRUCT" | "ROW" | "MAP" | "LIST" | "ARRAY")
        && matches!(text.token(at + 1), Some(Token::LParen | Token::Lt))
}

fn is_type(text: &Text<'_>, at: usize, defines: bool) -> bool {
    match text.token(at - 1) {
        Some(Token::DoubleColon) => true,
        Some(Token::Word(word)) => {
            let before = text.word(at - 1);
            before == "AS"
                || (defines && (word.quote_style.is_some() || !BEFORE_VALUES.contains(&before.as_str())))
        }
        _ => false,
    }
}

struct Reader<'a, 'sql> {
    text: &'a Text<'sql>,
    at: usize,
    /// Types that a `>>` has closed beyond the one that was read.
    closed: usize,
}

impl Reader<'_, '_> {
    fn composed(&mut self, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let kind = self.text.word(self.at);
        let angle = matches!(self.text.token(self.at + 1), Some(Token::Lt));
        self.at += 2;
        let mut parts = Vec::new();
        loop {
            let mut part = String::new();
            if kind == "STRUCT" || kind == "ROW" {
                part.push_str(&self.text.token(self.at)?.to_string());
                part.push(' ');
                self.at += 1;
                // `a: INT` is another way to write it.
                if matches!(self.text.token(self.at), Some(Token::Colon)) {
                    self.at += 1;
                }
            }
            part.push_str(&self.one(depth)?);
            parts.push(part);
            if self.closed > 0 {
                self.closed -= 1;
                break;
            }
            match self.text.token(self.at)? {
                Token::Comma => self.at += 1,
                Token::RParen if !angle => {
                    self.at += 1;
                    break;
                }
                Token::Gt if angle => {
                    self.at += 1;
                    break;
                }
                Token::ShiftRight if angle => {
                    self.at += 1;
                    self.closed += 1;
                    break;
                }
                _ => return None,
            }
        }
        let parts = parts.join(", ");
        Some(match kind.as_str() {
            "MAP" => format!("MAP({parts})"),
            "LIST" | "ARRAY" => format!("ARRAY<{parts}>"),
            _ => format!("STRUCT<{parts}>"),
        })
    }

    /// A type within another, up to the comma or bracket behind it.
    fn one(&mut self, depth: usize) -> Option<String> {
        let mut spelled =
            if is_composed(self.text, self.at) { self.composed(depth + 1)? } else { String::new() };
        if self.closed > 0 {
            return Some(spelled);
        }
        let mut open = 0_usize;
        loop {
            let token = self.text.token(self.at)?;
            match token {
                Token::LParen | Token::LBracket => open += 1,
                Token::RBracket => open = open.checked_sub(1)?,
                Token::RParen if open > 0 => open -= 1,
                Token::Comma if open > 0 => {}
                Token::Comma | Token::RParen | Token::Gt | Token::ShiftRight => return Some(spelled),
                _ => {}
            }
            let tight = matches!(token, Token::LParen | Token::RParen | Token::LBracket | Token::RBracket);
            let after = spelled.ends_with(['(', '[']);
            if !spelled.is_empty() && !tight && !after && !matches!(token, Token::Comma) {
                spelled.push(' ');
            }
            spelled.push_str(&token.to_string());
            self.at += 1;
        }
    }
}
