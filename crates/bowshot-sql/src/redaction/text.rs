//! A text as its tokens, each with its place.

use crate::Dialect;
use crate::offsets::Offsets;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

/// Longest text that is looked at; what follows is left out if there may be a secret in it.
pub(super) const MAX_BYTES: usize = 2 << 20;

pub(super) struct Text<'a> {
    /// The text; where tokens cannot be found in it, those in a row.
    pub(super) sql: Cow<'a, str>,
    tokens: Vec<TokenWithSpan>,
    places: Vec<Range<usize>>,
    /// Where that begins which has no tokens.
    pub(super) unread: Option<usize>,
}

/// A token that is not blank, and its bytes.
pub(super) struct Located<'a> {
    pub(super) token: &'a Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'a> Text<'a> {
    pub(super) fn read(sql: &'a str, dialect: Dialect) -> Self {
        let end = (0..=MAX_BYTES.min(sql.len())).rev().find(|end| sql.is_char_boundary(*end));
        let text = sql.get(..end.unwrap_or(0)).unwrap_or_default();
        let mut tokens = Vec::new();
        let read = Tokenizer::new(&dialect, text).tokenize_with_location_into_buf(&mut tokens);
        let is_whole = read.is_ok() && text.len() == sql.len();
        // In such comments the tokenizer tells other places.
        let found = if text.contains("/*!") { None } else { places(text, &tokens) };
        let (sql, places) = match found {
            Some(places) => (Cow::Borrowed(sql), places),
            None => {
                let (mut text, places) = in_a_row(&tokens);
                if !is_whole {
                    text.push(' ');
                }
                (Cow::Owned(text), places)
            }
        };
        let unread = (!is_whole).then(|| places.last().map_or(0, |place| place.end));
        Self { sql, tokens, places, unread }
    }

    pub(super) fn located(&self) -> impl Iterator<Item = Located<'_>> {
        let tokens = self.tokens.iter().zip(&self.places);
        let tokens = tokens.filter(|(token, _)| !matches!(token.token, Token::Whitespace(_)));
        tokens.map(|(token, place)| Located { token: &token.token, start: place.start, end: place.end })
    }
}

fn places(text: &str, tokens: &[TokenWithSpan]) -> Option<Vec<Range<usize>>> {
    let mut offsets = Offsets::new(text);
    tokens.iter().map(|token| Some(offsets.of(token.span.start)?..offsets.of(token.span.end)?)).collect()
}

fn in_a_row(tokens: &[TokenWithSpan]) -> (String, Vec<Range<usize>>) {
    let mut text = String::new();
    let places = tokens.iter().map(|token| {
        let start = text.len();
        let _ = write!(text, "{}", token.token);
        start..text.len()
    });
    let places = places.collect();
    (text, places)
}
