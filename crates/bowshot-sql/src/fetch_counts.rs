//! `FETCH FIRST (expression) ROWS ONLY`, of which the parser takes a value without parentheses alone: it becomes LIMIT, which takes
//! expressions; before WITH TIES a value loses its parentheses.

use crate::tokens::{is_blank, keyword, word};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Of one text: each is looked at up to the end of its parentheses.
const MOST: usize = 1_000;

/// Puts other tokens in the place of such ones.
pub(crate) fn put(tokens: &mut [TokenWithSpan]) {
    if !tokens.iter().any(|token| keyword(&token.token) == Keyword::FETCH) {
        return;
    }
    let words: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|token| !is_blank(&token.token))).collect();
    let fetches = (0..words.len()).filter(|from| is_fetch(tokens, words.get(*from..).unwrap_or_default()));
    let fetches: Vec<usize> = fetches.take(MOST).collect();
    for from in fetches {
        let words = words.get(from..).unwrap_or_default();
        for (n, token) in changes(tokens, words).unwrap_or_default() {
            if let Some(there) = words.get(n).and_then(|at| tokens.get_mut(*at)) {
                there.token = token;
            }
        }
    }
}

fn token_at<'a>(tokens: &'a [TokenWithSpan], words: &[usize], n: usize) -> Option<&'a Token> {
    words.get(n).and_then(|at| tokens.get(*at)).map(|token| &token.token)
}

/// `FETCH FIRST (`
fn is_fetch(tokens: &[TokenWithSpan], words: &[usize]) -> bool {
    let keyword_at = |n| token_at(tokens, words, n).map(keyword);
    keyword_at(0) == Some(Keyword::FETCH)
        && matches!(keyword_at(1), Some(Keyword::FIRST | Keyword::NEXT))
        && token_at(tokens, words, 2) == Some(&Token::LParen)
}

/// What becomes of which word.
fn changes(tokens: &[TokenWithSpan], words: &[usize]) -> Option<Vec<(usize, Token)>> {
    let mut depth = 0_usize;
    let end = (2..words.len()).find(|n| {
        match token_at(tokens, words, *n) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    if !matches!(keyword(token_at(tokens, words, end + 1)?), Keyword::ROW | Keyword::ROWS) {
        return None;
    }
    let blank = || Token::Whitespace(Whitespace::Space);
    match keyword(token_at(tokens, words, end + 2)?) {
        Keyword::ONLY => Some(vec![
            (0, word("LIMIT", Keyword::LIMIT)),
            (1, blank()),
            (end + 1, blank()),
            (end + 2, blank()),
        ]),
        Keyword::WITH if end == 4 => Some(vec![(2, blank()), (4, blank())]),
        _ => None,
    }
}
