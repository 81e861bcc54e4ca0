//! Types of several parts as `sqlparser` knows them: `STRUCT(a INT)` and `ROW(a INT)` are `STRUCT<a INT>`, `MAP<k, v>` is
//! `MAP(k, v)`, `LIST(t)` and `ARRAY(t)` are `ARRAY<t>`.

use super::{Edit, Text};
use crate::tokens::word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// Words behind which no type stands.
const BEFORE_VALUES: &[&str] = bowshot_api::words! {
    SELECT WHERE AND OR NOT IN ON BY HAVING THEN ELSE WHEN CASE VALUES DEFAULT CHECK DISTINCT ALL ANY SET
    UNION LIKE BETWEEN IS FROM JOIN USING RETURNING EXCEPT INTERSECT LATERAL
};
/// How deep types may stand in one another.
const MAX_DEPTH: usize = 32;
/// Tokens that are read for nothing, behind what looks like a type and is none: each may be followed to the end of the text.
const MOST_IN_VAIN: usize = 1_000_000;

/// The types of a text that have to be written otherwise. Where columns are defined, a name stands before a type.
pub(super) fn edits(text: &Text<'_>, defines: bool) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at, mut in_vain) = (1, 0);
    while at < text.len() && in_vain < MOST_IN_VAIN {
        if is_composed(text, at) && is_type(text, at, defines) {
            let mut reader = Reader { text, at, closed: 0, written: Vec::new() };
            if reader.composed(0).is_some() && reader.closed == 0 {
                edits.push(Edit::new(text.range(at..reader.at), reader.written));
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
    matches!(text.token(at + 1), Some(Token::LParen | Token::Lt))
        && text.is_one_of(at, &["STRUCT", "ROW", "MAP", "LIST", "ARRAY"])
}

fn is_type(text: &Text<'_>, at: usize, defines: bool) -> bool {
    match text.token(at - 1) {
        Some(Token::DoubleColon) => true,
        Some(Token::Word(word)) => {
            text.is(at - 1, "AS")
                || defines && (word.quote_style.is_some() || !text.is_one_of(at - 1, BEFORE_VALUES))
        }
        _ => false,
    }
}

struct Reader<'a, 'sql> {
    text: &'a Text<'sql>,
    at: usize,
    /// Types that a `>>` has closed beyond the one that was read.
    closed: usize,
    written: Vec<Token>,
}

impl Reader<'_, '_> {
    /// Reads and writes a type of several parts; `None` for something else.
    fn composed(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let is_struct = self.text.is_one_of(self.at, &["STRUCT", "ROW"]);
        let is_map = self.text.is(self.at, "MAP");
        let angle = matches!(self.text.token(self.at + 1), Some(Token::Lt));
        self.at += 2;
        let (open, close) = if is_map { (Token::LParen, Token::RParen) } else { (Token::Lt, Token::Gt) };
        self.written.push(match (is_struct, is_map) {
            (true, _) => word("STRUCT", Keyword::STRUCT),
            (_, true) => word("MAP", Keyword::MAP),
            _ => word("ARRAY", Keyword::ARRAY),
        });
        self.written.push(open);
        loop {
            if is_struct {
                self.copy()?;
                // `a: INT` is another way to write it.
                if matches!(self.text.token(self.at), Some(Token::Colon)) {
                    self.at += 1;
                }
            }
            self.one(depth)?;
            if self.closed > 0 {
                self.closed -= 1;
                break;
            }
            match self.text.token(self.at)? {
                Token::Comma => self.copy()?,
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
        self.written.push(close);
        Some(())
    }

    /// Takes a token as it is.
    fn copy(&mut self) -> Option<()> {
        self.written.push(self.text.token(self.at)?.clone());
        self.at += 1;
        Some(())
    }

    /// A type within another, up to the comma or bracket behind it.
    fn one(&mut self, depth: usize) -> Option<()> {
        if is_composed(self.text, self.at) {
            self.composed(depth + 1)?;
        }
        if self.closed > 0 {
            return Some(());
        }
        let mut open = 0_usize;
        loop {
            match self.text.token(self.at)? {
                Token::LParen | Token::LBracket => open += 1,
                Token::RBracket => open = open.checked_sub(1)?,
                Token::RParen if open > 0 => open -= 1,
                Token::Comma if open > 0 => {}
                Token::Comma | Token::RParen | Token::Gt | Token::ShiftRight => return Some(()),
                _ => {}
            }
            self.copy()?;
        }
    }
}
