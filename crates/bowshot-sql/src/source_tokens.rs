//! The tokens of a client's text one after the other, each with its bytes: what front ends ask about a statement before it is
//! planned. A long text is never in memory as tokens, and of most statements only the beginning is read.

use crate::dialect::{Dialect, DialectName};
use crate::offsets::Offsets;
use crate::tokens::is_blank;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes that become tokens at once, at first and later. A token that is longer is read again with more.
const FIRST_BYTES: usize = 1 << 8;
pub(crate) const LATER_BYTES: usize = 1 << 16;

/// A token that is not blank, and its position.
#[derive(Debug)]
pub(crate) struct SourceToken<'a> {
    /// `EOF` for what cannot be read, which is the end of the text.
    pub(crate) token: Token,
    pub(crate) text: &'a str,
    start: usize,
}

impl SourceToken<'_> {
    /// A keyword or a name without quotes.
    pub(crate) fn is_word(&self) -> bool {
        matches!(&self.token, Token::Word(word) if word.quote_style.is_none())
    }

    /// Whether it is this word, in any case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.is_word() && self.text.eq_ignore_ascii_case(word)
    }

    /// `@@name` with its scope before the name, or `@name`, of MySQL.
    pub(crate) fn is_variable(&self) -> bool {
        matches!(self.token, Token::AtSign | Token::AtAt)
    }

    pub(crate) fn is_number(&self) -> bool {
        match self.token {
            Token::Number(..) => true,
            Token::HexStringLiteral(_) => self.text.starts_with('0'),
            _ => false,
        }
    }

    /// How deep in parentheses the next token stands, compared with this one.
    pub(crate) fn depth(&self) -> i64 {
        i64::from(self.token == Token::LParen) - i64::from(self.token == Token::RParen)
    }

    /// A name, without its quotes.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.token {
            Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
            _ => self.is_word().then(|| self.text.to_owned()),
        }
    }

    /// The content of a string.
    pub(crate) fn string(&self) -> Option<&str> {
        match &self.token {
            Token::SingleQuotedString(text)
            | Token::DoubleQuotedString(text)
            | Token::EscapedStringLiteral(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// An iterator over the tokens of a text. Comments of MySQL with code in them are comments.
#[derive(Debug)]
pub(crate) struct SourceTokens<'a> {
    sql: &'a str,
    dialect: Dialect,
    /// Where the text begins that has not become tokens, and how many bytes of it come next.
    at: usize,
    bytes: usize,
    ready: VecDeque<SourceToken<'a>>,
    has_comments: bool,
}

impl<'a> SourceTokens<'a> {
    pub(crate) fn new(sql: &'a str, dialect: DialectName) -> Self {
        let dialect = Dialect::new(dialect).for_written_text();
        Self { sql, dialect, at: 0, bytes: FIRST_BYTES, ready: VecDeque::new(), has_comments: false }
    }

    /// The same with comments between `/*` and `*/`.
    pub(crate) fn with_comments(self) -> Self {
        Self { has_comments: true, ..self }
    }

    /// The next tokens, blanks included, with their bytes. What the last of them may be cut off from comes again.
    fn read(&mut self) -> Vec<(Token, Range<usize>)> {
        let (begin, rest) = (self.at, self.sql.get(self.at..).unwrap_or_default());
        let part = rest.get(..rest.floor_char_boundary(self.bytes)).unwrap_or_default();
        let (mut tokens, mut offsets) = (Vec::new(), Offsets::new(part));
        let read = Tokenizer::new(&self.dialect, part).tokenize_with_location_into_buf(&mut tokens);
        let place = |TokenWithSpan { token, span }| {
            let (start, end) = (offsets.of(span.start)?, offsets.of(span.end)?);
            Some((token, begin + start..begin + end))
        };
        let mut found: Vec<_> = tokens.into_iter().map_while(place).collect();
        if part.len() == rest.len() {
            let end = found.last().map_or(begin, |(_, place)| place.end);
            if read.is_err() || end < self.sql.len() {
                found.push((Token::EOF, end..self.sql.len()));
            }
            // In MySQL `--` begins a comment before a blank, and at the end.
            let ends_in_comment = matches!(found.as_slice(), [.., (Token::Minus, _), (Token::Minus, _)]);
            if ends_in_comment && self.dialect.name() == DialectName::MySql {
                found.truncate(found.len() - 2);
            }
            self.at = self.sql.len();
            return found;
        }
        // No token goes on behind one of these, if another token follows.
        let ends = |(token, _): &(Token, _)| is_blank(token) || *token == Token::Comma;
        let whole = found.iter().rev().skip(1).position(ends).map_or(0, |behind| found.len() - 1 - behind);
        found.truncate(whole);
        match found.last() {
            Some((_, place)) => {
                self.at = place.end;
                self.bytes = LATER_BYTES;
            }
            None => self.bytes *= 2,
        }
        found
    }

    fn read_part(&mut self) {
        for (token, place) in self.read() {
            let is_comment = matches!(token, Token::Whitespace(Whitespace::MultiLineComment(_)));
            let is_left_out = is_blank(&token) && !(is_comment && self.has_comments);
            let Some(text) = self.sql.get(place.clone()).filter(|_| !is_left_out) else { continue };
            let start = place.start;
            if self.dialect.name() != DialectName::MySql {
                self.ready.push_back(SourceToken { token, text, start });
            } else if self.continues_variable(&token, start) {
                if let Some(variable) = self.ready.back_mut() {
                    variable.text = self.sql.get(variable.start..place.end).unwrap_or_default();
                }
            } else if token == Token::ArrowAt {
                // `a<@b` compares with a variable.
                let (less, at) = text.split_at(1);
                self.ready.push_back(SourceToken { token: Token::Lt, text: less, start });
                self.ready.push_back(SourceToken { token: Token::AtSign, text: at, start: start + 1 });
            } else {
                self.ready.push_back(SourceToken { token, text, start });
            }
        }
    }

    /// Whether a token is a further part of the name of a variable before it.
    fn continues_variable(&self, token: &Token, start: usize) -> bool {
        let Some(last) = self.ready.back().filter(|last| last.is_variable()) else { return false };
        let is_part = match token {
            Token::AtSign => last.text == "@",
            Token::Word(_) | Token::Period | Token::Number(..) => true,
            _ => false,
        };
        is_part && last.range().end == start
    }

    /// The next token, which stays.
    pub(crate) fn peek(&mut self) -> Option<&SourceToken<'a>> {
        self.peek_nth(0)
    }

    /// The next token but `n`.
    pub(crate) fn peek_nth(&mut self, n: usize) -> Option<&SourceToken<'a>> {
        while self.ready.len() <= n && self.at < self.sql.len() {
            self.read_part();
        }
        self.ready.get(n)
    }

    pub(crate) fn nth_is(&mut self, n: usize, wanted: &Token) -> bool {
        self.peek_nth(n).is_some_and(|token| token.token == *wanted)
    }

    pub(crate) fn next_if(
        &mut self,
        is_wanted: impl FnOnce(&SourceToken<'a>) -> bool,
    ) -> Option<SourceToken<'a>> {
        if self.peek().is_some_and(is_wanted) { self.ready.pop_front() } else { None }
    }

    /// Takes the next token if it is this word.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        self.next_if(|token| token.is(word)).is_some()
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take_token(&mut self, wanted: &Token) -> bool {
        self.next_if(|token| token.token == *wanted).is_some()
    }

    /// The content of brackets, after the opening one; `None` if they are not closed.
    pub(crate) fn bracketed(&mut self) -> Option<&'a str> {
        let start = self.peek()?.range().start;
        let mut depth = 1_i64;
        let end = self.find(|token| {
            depth += token.depth();
            depth == 0
        })?;
        self.sql.get(start..end.range().start)
    }
}

impl<'a> Iterator for SourceTokens<'a> {
    type Item = SourceToken<'a>;

    fn next(&mut self) -> Option<SourceToken<'a>> {
        self.next_if(|_| true)
    }
}

/// The query of a `CREATE VIEW … AS query` as it was written; `None` for another text.
pub fn view_query(sql: &str, dialect: Dialect) -> Option<&str> {
    let (mut view, mut depth) = (false, 0_i64);
    let before = SourceTokens::new(sql, dialect.name()).find(|token| {
        depth += token.depth();
        view |= token.is("VIEW");
        view && depth == 0 && token.is("AS")
    })?;
    Some(sql.get(before.range().end..)?.trim().trim_end_matches(';').trim_end())
}

/// The keyword that says what a statement does, behind its common table expressions, in upper case.
pub(crate) fn verb(tokens: SourceTokens<'_>) -> String {
    const MAIN: [&str; 8] = ["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE", "FROM"];
    let has_replace = tokens.dialect.name() == DialectName::MySql;
    let mut depth = 0_i64;
    for (index, token) in tokens.enumerate() {
        depth += token.depth();
        let is_verb = match index {
            0 if depth > 0 => break,
            0 => !token.is("WITH"),
            _ => MAIN.iter().any(|word| token.is(word)) || has_replace && token.is("REPLACE"),
        };
        if is_verb && depth == 0 {
            return token.text.to_ascii_uppercase();
        }
    }
    "SELECT".to_owned()
}

/// The first word of a statement in lower case, whatever space and comments stand before it; empty where there is none.
pub fn first_word(sql: &str) -> String {
    let text = sql.trim_ascii_start();
    let end = text.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // Asked of every statement, nearly all of which begin so.
    if !word.is_empty() && rest.bytes().next().is_none_or(|byte| byte.is_ascii_whitespace()) {
        return word.to_ascii_lowercase();
    }
    let first = |dialect| SourceTokens::new(sql, dialect).next();
    // Only MySQL has comments behind `#`, and no other statement begins so.
    let is_other = |token: &SourceToken<'_>| !token.text.starts_with('#');
    let token = first(DialectName::Postgres).filter(is_other).or_else(|| first(DialectName::MySql));
    let text = token.map_or("", |token| token.text);
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_ascii_lowercase()
}

/// The text with other names in the place of some, each given with its quote; `None` for one that cannot be read, or has code
/// in its comments.
pub fn replace_names(
    sql: &str,
    dialect: DialectName,
    other: impl Fn(&str, Option<char>) -> Option<String>,
) -> Option<String> {
    if sql.contains("/*!") {
        return None;
    }
    let (mut text, mut copied) = (String::with_capacity(sql.len()), 0);
    for token in SourceTokens::new(sql, dialect) {
        let (name, quote) = match &token.token {
            Token::EOF => return None,
            Token::Word(word) if word.quote_style.is_some() => (word.value.as_str(), word.quote_style),
            _ if token.is_word() => (token.text, None),
            _ => continue,
        };
        let Some(name) = other(name, quote) else { continue };
        let place = token.range();
        text.push_str(sql.get(copied..place.start)?);
        text.extend(quote);
        text.push_str(&name);
        text.extend(quote);
        copied = place.end;
    }
    text.push_str(sql.get(copied..)?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::statement_spans;

    fn words(sql: &str, dialect: DialectName) -> Vec<&str> {
        SourceTokens::new(sql, dialect).map(|token| token.text).collect()
    }

    #[test]
    fn tokens_are_those_of_mysql() {
        for (sql, expected) in [
            ("select 1 -- two\n, 3", &["select", "1", ",", "3"][..]),
            ("1--1", &["1", "-", "-", "1"]),
            ("1 --", &["1"]),
            ("a # b\nc", &["a", "c"]),
            ("/* a /* b */ c", &["c"]),
            ("/*! a */ c", &["c"]),
            (r"'it\'s' ''''", &[r"'it\'s'", "''''"]),
            (r#""a""b" `c``d`"#, &[r#""a""b""#, "`c``d`"]),
            ("@@session.sql_mode,@a", &["@@session.sql_mode", ",", "@a"]),
            ("select@@a.`b`, a@b", &["select", "@@a.`b`", ",", "a", "@b"]),
            (
                "a<@b<@@c @> @ - 5 'd'@'e'",
                &["a", "<", "@b", "<", "@@c", "@>", "@", "-", "5", "'d'", "@", "'e'"],
            ),
            ("a 'open", &["a", "'open"]),
            ("@@`x`=1", &["@@`x`", "=", "1"]),
            ("", &[]),
        ] {
            assert_eq!(words(sql, DialectName::MySql), expected, "{sql}");
        }
    }

    #[test]
    fn long_texts_have_the_same_tokens_as_short_ones() {
        let long = format!("'{}'", "ä;".repeat(30_000));
        let mut expected = Vec::new();
        for word in ["insert", "\"a\nb\"", ",", "1.5", "--", "x", "$1", ":", "/*ü*/", long.as_str(), ";"] {
            expected.extend([word; 10]);
        }
        let sql = expected.join(" ").replace("-- ", "-- ü\n");
        let expected: Vec<&str> =
            expected.into_iter().filter(|word| !matches!(*word, "--" | "/*ü*/")).collect();
        assert_eq!(words(&sql, DialectName::Postgres), expected);
        let insert = format!("/* c */ insert into t values {};", "(1),".repeat(20_000));
        let spans = statement_spans(&insert, DialectName::Postgres);
        assert_eq!((spans.len(), spans.first()), (1, Some(&(8..insert.len() - 1))));
        let crowded = "(1,'a;b'),".repeat(20_000);
        assert_eq!(SourceTokens::new(&crowded, DialectName::Postgres).count(), 120_000);
    }

    #[test]
    fn the_first_word_is_found_behind_space_and_comments() {
        for (sql, expected) in [
            ("VACUUM t", "vacuum"),
            (" \n\tCall\tjoin_cache_clear()", "call"),
            ("-- why\n/* and */ Optimize -- this\n\"T\"", "optimize"),
            ("-- nothing", ""),
            // Only MySQL has such comments, and no other statement begins so.
            ("# why\n# more\nSHOW # this\nTABLES", "show"),
            ("#", ""),
            ("/* open", ""),
            ("/* /* */ vacuum */ SELECT t", "select"),
            ("/* /**/ /***/ */ VACUUM /*/ t */ t", "vacuum"),
            ("(SELECT 1)", ""),
            ("größe x", "größe"),
        ] {
            assert_eq!(first_word(sql), expected, "{sql}");
        }
    }

    #[test]
    fn names_are_replaced_and_texts_stay() {
        let replaced = |sql| {
            replace_names(sql, DialectName::Ansi, |name, _| {
                name.eq_ignore_ascii_case("a").then(|| "bc".to_owned())
            })
        };
        let sql = "SELECT 'a', \"a\".x -- a\nFROM A\tJOIN ä.a";
        assert_eq!(replaced(sql).as_deref(), Some("SELECT 'a', \"bc\".x -- a\nFROM bc\tJOIN ä.bc"));
        assert_eq!(replaced("SELECT a, 'a"), None);
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
