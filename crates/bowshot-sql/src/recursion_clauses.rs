//! `CYCLE` and `SEARCH` behind a recursive query of WITH, which the parser does not know. They are carried within the brackets of
//! the query, as the name behind a lock, where [`crate::rewrite`] finds them.

use crate::tokens::{is_blank, keyword, last_words, word};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What the name begins with, and what stands between its parts.
pub(crate) const CARRIED: char = '\u{4}';
pub(crate) const APART: char = '\u{1f}';

/// Clauses of one text: each is moved by itself.
const MOST: usize = 100;

/// Words of one clause.
const MOST_WORDS: usize = 500;

/// Moves these clauses of a text into the brackets before them.
pub(crate) fn carry(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| keyword(&token.token) == Keyword::RECURSIVE) {
        return;
    }
    let (mut at, mut carried) = (0, 0);
    while at < tokens.len() && carried < MOST {
        if let Some((bracket, clause, end)) = behind_bracket(tokens, at) {
            carried += 1;
            let span = tokens.get(at).map_or_else(sqlparser::tokenizer::Span::empty, |token| token.span);
            tokens.drain(at..end);
            let name = Word { value: clause, quote_style: Some('"'), keyword: Keyword::NoKeyword };
            let lock = [
                word("FOR", Keyword::FOR),
                word("UPDATE", Keyword::UPDATE),
                word("OF", Keyword::OF),
                Token::Word(name),
            ];
            tokens.splice(bracket..bracket, lock.map(|token| TokenWithSpan { token, span }));
        } else {
            at += 1;
        }
    }
}

/// The bracket before a clause that begins there, its words, and where it ends.
fn behind_bracket(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, String, usize)> {
    if !is_named(&tokens.get(at)?.token, &["CYCLE", "SEARCH"]) {
        return None;
    }
    let bracket = last_words(tokens.get(..at)?).next()?;
    let (clause, end) = clause(tokens, at)?;
    (tokens.get(bracket)?.token == Token::RParen).then_some((bracket, clause, end))
}

fn is_named(token: &Token, names: &[&str]) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && names.iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

/// The words of a clause that begins there, and where it ends.
fn clause(tokens: &[TokenWithSpan], from: usize) -> Option<(String, usize)> {
    let is_cycle = tokens.get(from).is_some_and(|token| is_named(&token.token, &["CYCLE"]));
    let last = if is_cycle { "USING" } else { "SET" };
    let mut said = String::from(CARRIED);
    let mut ends = false;
    for at in (from..tokens.len()).take(MOST_WORDS) {
        let token = &tokens.get(at)?.token;
        if is_blank(token) {
            continue;
        }
        match token {
            Token::Word(_) | Token::Comma | Token::Number(..) | Token::SingleQuotedString(_) => {}
            _ => return None,
        }
        said.push_str(&token.to_string());
        said.push(APART);
        if ends {
            return Some((said, at + 1));
        }
        ends = is_named(token, &[last]);
    }
    None
}
