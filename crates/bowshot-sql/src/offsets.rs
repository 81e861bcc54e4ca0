//! Places in a text: from the lines and columns of the tokenizer to bytes.

use crate::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, Tokenizer, Word};

/// Byte offsets of places that the tokenizer gives as line and column, both from 1, columns in characters. The text is walked
/// once, so the places have to come in their order.
#[derive(Debug)]
pub struct Offsets<'sql> {
    rest: &'sql str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'sql> Offsets<'sql> {
    /// Of places in this text.
    pub fn new(sql: &'sql str) -> Self {
        Self { rest: sql, at: 0, line: 1, column: 1 }
    }

    /// `None` for a place that is not in the text, or before one that was asked for.
    pub fn of(&mut self, place: Location) -> Option<usize> {
        while (self.line, self.column) < (place.line, place.column) {
            let mut characters = self.rest.chars();
            let next = characters.next()?;
            self.rest = characters.as_str();
            self.at += next.len_utf8();
            (self.line, self.column) =
                if next == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        ((self.line, self.column) == (place.line, place.column)).then_some(self.at)
    }
}

/// Whether a token stands at a byte of the text: within `/*! … */` the tokenizer tells other places.
pub fn stands_at(sql: &str, at: usize, token: &Token) -> bool {
    let shown = match token {
        Token::Word(Word { value, quote_style: Some(quote @ ('"' | '`')), .. }) => {
            let doubled = value.replace(*quote, &format!("{quote}{quote}"));
            format!("{quote}{doubled}{quote}")
        }
        other => other.to_string(),
    };
    sql.get(at..at + shown.len()).is_some_and(|there| there.eq_ignore_ascii_case(&shown))
}

/// The statements of a text, each by itself and none empty. A text that cannot be read is one.
pub fn split(sql: &str, dialect: Dialect) -> Vec<&str> {
    if !sql.trim_end().trim_end_matches(';').contains(';') {
        return vec![sql];
    }
    let Ok(tokens) = Tokenizer::new(&dialect, sql).tokenize_with_location() else { return vec![sql] };
    let (mut offsets, mut from, mut statements) = (Offsets::new(sql), 0, Vec::new());
    let mut has_words = false;
    for token in &tokens {
        match &token.token {
            Token::SemiColon => {
                let Some(to) = offsets.of(token.span.start) else { return vec![sql] };
                if has_words {
                    statements.extend(sql.get(from..to));
                }
                (from, has_words) = (to + 1, false);
            }
            Token::Whitespace(_) => {}
            _ => has_words = true,
        }
    }
    if has_words {
        statements.extend(sql.get(from..));
    }
    if statements.is_empty() { vec![sql] } else { statements }
}

/// The query of a `CREATE VIEW … AS query` as it was written; `None` for another text, or one that cannot be read.
pub fn view_query(sql: &str, dialect: Dialect) -> Option<&str> {
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location().ok()?;
    let (mut view, mut depth) = (false, 0_usize);
    for token in &tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::VIEW => view = true,
            Token::Word(word) if word.keyword == Keyword::AS && view && depth == 0 => {
                let start = Offsets::new(sql).of(token.span.end)?;
                return Some(sql.get(start..)?.trim().trim_end_matches(';').trim_end());
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{split, view_query};
    use crate::{Dialect, DialectName};

    #[test]
    fn texts_are_split_at_semicolons_outside_of_quotes() {
        let split = |sql| split(sql, Dialect::new(DialectName::Ansi));
        assert_eq!(split("SELECT 1"), ["SELECT 1"]);
        assert_eq!(split("SELECT ';'; SELECT 2 -- ;\n;;"), ["SELECT ';'", " SELECT 2 -- ;\n"]);
        assert_eq!(split("SELECT 1;"), ["SELECT 1;"]);
        assert_eq!(split("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2"]);
    }

    #[test]
    fn the_query_of_a_view_is_as_it_was_written() {
        let query = |sql| view_query(sql, Dialect::new(DialectName::Ansi));
        assert_eq!(
            query("CREATE VIEW v (a) AS SELECT  b AS a FROM t FOR VERSION AS OF 3;"),
            Some("SELECT  b AS a FROM t FOR VERSION AS OF 3")
        );
        assert_eq!(query("SELECT 1 AS a"), None);
    }
}
