//! What logs, the audit trail, traces and tables of statements have of a text: all of it but its secrets, which are found by
//! their place in a statement. Of a statement that nobody understands all texts in quotes are left out, never the statement.

mod marks;

use self::marks::{Mark, is_secret_word, is_shown_key, may_hold_secrets};
use crate::offsets::Offsets;
use crate::{Dialect, access, cache_statement, database_statement, parse, secret_statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::borrow::Cow;

/// What stands in the place of a text in quotes, and of other parts.
const TEXT: &str = "'…'";
const PART: &str = "…";
/// Longest text that is looked at; what follows is left out if there may be a secret in it.
const MAX_BYTES: usize = 2 << 20;
/// Levels of a statement that is looked at: one that nests deeper is not understood.
const MAX_LEVELS: usize = 64;

/// The text without its secrets.
pub fn redact_secrets(sql: &str, dialect: Dialect) -> Cow<'_, str> {
    let found = Redaction::new(sql, dialect);
    if found.hidden.is_empty() { Cow::Borrowed(sql) } else { Cow::Owned(found.shown()) }
}

/// Whether a secret is in its place in a text.
pub fn holds_secrets(sql: &str, dialect: Dialect) -> bool {
    Redaction::new(sql, dialect).has_secret
}

/// A token that is not blank, and its bytes.
struct Located<'a> {
    token: &'a Token,
    start: usize,
    end: usize,
}

struct Hidden {
    start: usize,
    end: usize,
    shown: &'static str,
}

struct Redaction<'a> {
    sql: &'a str,
    dialect: Dialect,
    hidden: Vec<Hidden>,
    has_secret: bool,
}

impl<'a> Redaction<'a> {
    fn new(sql: &'a str, dialect: Dialect) -> Self {
        let mut found = Self { sql, dialect, hidden: Vec::new(), has_secret: false };
        if may_hold_secrets(sql) {
            found.look();
        }
        found
    }

    fn look(&mut self) {
        let end = (0..=MAX_BYTES.min(self.sql.len())).rev().find(|end| self.sql.is_char_boundary(*end));
        let text = self.sql.get(..end.unwrap_or(0)).unwrap_or_default();
        let mut tokens = Vec::new();
        let read = Tokenizer::new(&self.dialect, text).tokenize_with_location_into_buf(&mut tokens);
        let (mut offsets, mut located, mut read_to) = (Offsets::new(text), Vec::new(), 0);
        for token in &tokens {
            let (start, end) = (offsets.of(token.span.start), offsets.of(token.span.end));
            let (Some(start), Some(end)) = (start, end) else { return self.hide_all() };
            read_to = end;
            if !matches!(token.token, Token::Whitespace(_)) {
                located.push(Located { token: &token.token, start, end });
            }
        }
        for statement in located.split(|token| *token.token == Token::SemiColon) {
            self.statement(statement);
        }
        // A quote or comment without an end, or too long a text.
        if read.is_err() || text.len() < self.sql.len() {
            self.hide(read_to, self.sql.len(), PART);
        }
        // In such comments the tokenizer tells other places.
        if !self.hidden.is_empty() && self.sql.contains("/*!") {
            self.hide_all();
        }
    }

    fn hide(&mut self, start: usize, end: usize, shown: &'static str) {
        self.hidden.push(Hidden { start, end, shown });
    }

    fn hide_all(&mut self) {
        self.hidden.clear();
        self.hide(0, self.sql.len(), PART);
    }

    fn hide_token(&mut self, token: &Located<'_>) {
        self.hide(token.start, token.end, TEXT);
    }

    fn hide_secret(&mut self, token: &Located<'_>) {
        self.has_secret = true;
        self.hide_token(token);
    }

    /// Hides what follows a token of a statement.
    fn hide_behind(&mut self, statement: &[Located<'_>], at: usize) {
        if let (Some(next), Some(last)) = (statement.get(at + 1), statement.last()) {
            self.has_secret = true;
            self.hide(next.start, last.end, PART);
        }
    }

    fn statement(&mut self, statement: &[Located<'_>]) {
        let statement = behind_prefix(statement);
        let (Some(first), Some(last)) = (statement.first(), statement.last()) else { return };
        let text = self.sql.get(first.start..last.end).unwrap_or_default();
        match Mark::find(statement) {
            Mark::Secret(at) => match secret_statement(text, &self.dialect) {
                Ok(Some(_)) => self.options(statement, at),
                _ => self.hide_behind(statement, at),
            },
            Mark::User => self.user(statement, text),
            Mark::Attach => match database_statement(text, &self.dialect) {
                Ok(Some(_)) => self.attach(statement),
                _ => self.unknown(statement),
            },
            Mark::Set => self.setting(statement),
            Mark::Other if !self.has_candidates(statement) => {}
            // COPY is read elsewhere; its options are where secrets could be.
            Mark::Other if is_word_at(statement, 0, "copy") || self.is_understood(text) => {
                self.places(statement, false);
            }
            Mark::Other => self.unknown(statement),
        }
    }

    /// Whether there is anything to hide if nobody understands it.
    fn has_candidates(&self, statement: &[Located<'_>]) -> bool {
        let mut tokens = statement.iter().enumerate();
        tokens.any(|(at, token)| is_text(token.token) || is_secret_place(statement, at, true, self.sql))
    }

    fn is_understood(&self, text: &str) -> bool {
        parse(text, self.dialect, MAX_LEVELS).is_ok()
            || matches!(access(text, self.dialect), Ok(Some(_)))
            || matches!(cache_statement(text, &self.dialect), Ok(Some(_)))
    }

    /// `CREATE USER` and its like.
    fn user(&mut self, statement: &[Located<'_>], text: &str) {
        if matches!(access(text, self.dialect), Ok(Some(_))) {
            for (before, token) in statement.iter().zip(statement.iter().skip(1)) {
                if is_text(token.token) && ["password", "by"].iter().any(|word| is_word(before.token, word)) {
                    self.hide_secret(token);
                }
            }
            return self.places(statement, true);
        }
        let words = statement.iter().enumerate().skip(1);
        // The name of the user may be such a word too.
        let least = if is_word_at(statement, 0, "set") || is_word_at(statement, 0, "grant") { 1 } else { 3 };
        let mark = words.skip(least - 1).find(|(_, token)| {
            is_word(token.token, "identified") || word(token.token).is_some_and(is_secret_word)
        });
        match mark {
            Some((at, _)) => self.hide_behind(statement, at),
            None => self.unknown(statement),
        }
    }

    fn attach(&mut self, statement: &[Located<'_>]) {
        const OF_CREDENTIALS: [char; 4] = ['@', '?', '=', ';'];
        let open = statement.iter().position(|token| *token.token == Token::LParen);
        let open = open.unwrap_or(statement.len());
        for token in statement.iter().take(open).filter(|token| is_text(token.token)) {
            let text = self.sql.get(token.start..token.end).unwrap_or_default();
            if text.contains(OF_CREDENTIALS) {
                self.hide_secret(token);
            }
        }
        self.options(statement, open.saturating_sub(1));
    }

    /// The values of `(key value, …)` behind a token, but for keys that hold none.
    fn options(&mut self, statement: &[Located<'_>], at: usize) {
        let is_attach = is_word_at(statement, 0, "attach");
        let mut key: Option<&str> = None;
        let open = statement.iter().skip(at).skip_while(|token| *token.token != Token::LParen).skip(1);
        for token in open {
            match (token.token, key) {
                (Token::Comma, _) => key = None,
                (Token::RParen | Token::LParen | Token::Eq, _) => {}
                (token, None) => key = Some(word(token).unwrap_or_default()),
                // The name of a secret is none.
                (Token::Word(_), Some(key)) if is_attach && key.eq_ignore_ascii_case("secret") => {}
                (_, Some(key)) if is_shown_key(key) => {}
                _ => self.hide_secret(token),
            }
        }
    }

    /// Texts that stand where a secret does: behind a word for one, or as the argument or option of that name.
    fn places(&mut self, statement: &[Located<'_>], are_options: bool) {
        let mut lists: Vec<bool> = Vec::new();
        for (at, token) in statement.iter().enumerate() {
            match token.token {
                Token::LParen => lists.push(begins_options(statement, at)),
                Token::RParen => drop(lists.pop()),
                text if is_text(text) => {
                    let in_list = are_options || lists.last() == Some(&true);
                    if is_secret_place(statement, at, in_list, self.sql) {
                        self.hide_secret(token);
                    }
                }
                _ => {}
            }
        }
    }

    /// What a setting for a secret becomes.
    fn setting(&mut self, statement: &[Located<'_>]) {
        for (at, token) in statement.iter().enumerate() {
            if is_secret_place(statement, at, true, self.sql) {
                self.hide_secret(token);
            }
        }
    }

    /// All texts, and what stands behind words for secrets.
    fn unknown(&mut self, statement: &[Located<'_>]) {
        for (at, token) in statement.iter().enumerate() {
            if is_secret_place(statement, at, true, self.sql) {
                self.hide_secret(token);
            } else if is_text(token.token) {
                self.hide_token(token);
            }
        }
    }

    fn shown(mut self) -> String {
        self.hidden.sort_by_key(|hidden| hidden.start);
        let (mut shown, mut from) = (String::with_capacity(self.sql.len()), 0);
        for hidden in &self.hidden {
            if hidden.start >= from {
                shown.push_str(self.sql.get(from..hidden.start).unwrap_or_default());
                shown.push_str(hidden.shown);
            }
            from = from.max(hidden.end);
        }
        shown.push_str(self.sql.get(from..).unwrap_or_default());
        shown
    }
}

/// Whether a value behind a word for secrets stands there: `SECRET 'x'`, `secret => 'x'`, and where options are, `secret = 'x'`.
fn is_secret_place(statement: &[Located<'_>], at: usize, is_option: bool, sql: &str) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| statement.get(at));
    let names_secret = |token: Option<&Located<'_>>| {
        token.is_some_and(|token| match word(token.token) {
            Some(word) => is_secret_word(word),
            // 'fs.s3a.secret.key' = 'x'
            None if is_text(token.token) => {
                let name = sql.get(token.start..token.end).unwrap_or_default();
                name.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_secret_word)
            }
            None => false,
        })
    };
    let is_value = statement.get(at).is_some_and(|token| match token.token {
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        Token::Number(..) => true,
        text => is_text(text),
    });
    let is_word_before = before(1).is_some_and(|token| word(token.token).is_some());
    is_value
        && match before(1).map(|token| token.token) {
            Some(Token::RArrow | Token::Assignment) => names_secret(before(2)),
            Some(Token::Eq) => is_option && names_secret(before(2)),
            Some(to) if is_word(to, "to") && is_option => names_secret(before(2)),
            _ => is_word_before && names_secret(before(1)),
        }
}

/// Whether options or arguments by name stand in this parenthesis, not an expression.
fn begins_options(statement: &[Located<'_>], at: usize) -> bool {
    const WORDS: [&str; 5] = ["options", "with", "properties", "tblproperties", "parameters"];
    let Some(before) = at.checked_sub(1).and_then(|at| statement.get(at)) else { return false };
    match word(before.token) {
        Some(word) => {
            let word = word.to_ascii_lowercase();
            WORDS.contains(&word.as_str()) || word.starts_with("read_") || word.ends_with("_scan")
        }
        None => is_text(before.token) && is_word_at(statement, 0, "copy"),
    }
}

/// The statement behind `EXPLAIN …` and `PREPARE name AS`.
fn behind_prefix<'s, 'a>(statement: &'s [Located<'a>]) -> &'s [Located<'a>] {
    let is_begin = |token: &Located<'_>| {
        ["create", "alter", "attach", "grant"].iter().any(|word| is_word(token.token, word))
    };
    let is_prefix = is_word_at(statement, 0, "explain") || is_word_at(statement, 0, "prepare");
    let begin = is_prefix.then(|| statement.iter().position(is_begin)).flatten();
    statement.get(begin.unwrap_or(0)..).unwrap_or_default()
}

fn word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) => Some(&word.value),
        _ => None,
    }
}

/// Whether it is this word, which is in lower case, and not in quotes.
fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn is_word_at(statement: &[Located<'_>], at: usize, wanted: &str) -> bool {
    statement.get(at).is_some_and(|token| is_word(token.token, wanted))
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests;
