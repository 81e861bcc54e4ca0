//! `EXCLUDE CURRENT ROW`, `EXCLUDE GROUP` and `EXCLUDE TIES` of window frames, which the parser does not know. Here they become
//! a call around the first bound of the frame, which [`crate::rewrite`] takes off again: `ROWS BETWEEN 2 PRECEDING AND …
//! EXCLUDE TIES` is read as `ROWS BETWEEN __excluding('ties', 2) PRECEDING AND …`.

use crate::tokens::{is_blank, keyword, word};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The name of the call.
pub const EXCLUDING: &str = "__excluding";

/// Frames of one text that are marked, and tokens between the beginning of one and its EXCLUDE: each is looked for by itself.
const MOST_FRAMES: usize = 500;
const LONGEST_FRAME: usize = 10_000;

/// Marks the frames of a text. Where there are more than it may have, the parser says so.
pub(crate) fn mark(tokens: &mut Vec<TokenWithSpan>) {
    let exclusions = tokens.iter().filter(|token| keyword(&token.token) == Keyword::EXCLUDE);
    if exclusions.count() > MOST_FRAMES {
        return;
    }
    let mut at = tokens.len();
    // From the end, so that the places before stay what they are.
    while at > 0 {
        at -= 1;
        if tokens.get(at).is_some_and(|token| keyword(&token.token) == Keyword::EXCLUDE) {
            mark_one(tokens, at);
        }
    }
}

fn mark_one(tokens: &mut Vec<TokenWithSpan>, exclude: usize) -> Option<()> {
    let (what, end) = excluded(tokens, exclude)?;
    let bound = first_bound(tokens, exclude)?;
    tokens.drain(exclude..end);
    if what == "no others" {
        return Some(());
    }
    let first = words(tokens, bound).next()?;
    let (replaced, rows) = match keyword(&tokens.get(first)?.token) {
        Keyword::UNBOUNDED => (first..first + 1, Some("unbounded")),
        Keyword::CURRENT => (first..words(tokens, first + 1).next()? + 1, Some("current")),
        _ => (first..first, None),
    };
    let mut call = vec![
        word(EXCLUDING, Keyword::NoKeyword),
        Token::LParen,
        Token::SingleQuotedString(what.to_owned()),
        Token::Comma,
    ];
    match rows {
        Some(rows) => {
            call.extend([Token::SingleQuotedString(rows.to_owned()), Token::RParen]);
            if rows == "current" {
                call.push(word("PRECEDING", Keyword::PRECEDING));
            }
        }
        None => {
            let direction = |at: &usize| {
                tokens.get(*at).is_some_and(|token| {
                    matches!(keyword(&token.token), Keyword::PRECEDING | Keyword::FOLLOWING)
                })
            };
            let direction = words(tokens, first).find(direction)?;
            tokens.insert(direction, TokenWithSpan::wrap(Token::RParen));
        }
    }
    tokens.splice(replaced, call.into_iter().map(TokenWithSpan::wrap));
    Some(())
}

/// Places from there on, without blanks.
fn words(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = usize> + '_ {
    (from..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|token| !is_blank(&token.token)))
}

/// What is excluded, in lower case, and where its last word ends: at the bracket behind the frame.
fn excluded(tokens: &[TokenWithSpan], exclude: usize) -> Option<(&'static str, usize)> {
    const FORMS: [&str; 4] = ["current row", "group", "ties", "no others"];
    let mut said = String::new();
    for at in words(tokens, exclude + 1).take(3) {
        match &tokens.get(at)?.token {
            Token::RParen => {
                return FORMS.into_iter().find(|form| *form == said).map(|form| (form, at));
            }
            Token::Word(word) if word.quote_style.is_none() => {
                if !said.is_empty() {
                    said.push(' ');
                }
                said.push_str(&word.value.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    None
}

/// The place behind `ROWS`, `RANGE` or `GROUPS`, and BETWEEN, of the frame that an EXCLUDE ends.
fn first_bound(tokens: &[TokenWithSpan], exclude: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (exclude.saturating_sub(LONGEST_FRAME)..exclude).rev() {
        let token = &tokens.get(at)?.token;
        match token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return None,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if matches!(keyword(token), Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS) => {
                let next = words(tokens, at + 1).next()?;
                let between = keyword(&tokens.get(next)?.token) == Keyword::BETWEEN;
                return Some(if between { next + 1 } else { next });
            }
            _ => {}
        }
    }
    None
}
