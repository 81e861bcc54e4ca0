//! `THEN DO NOTHING` of MERGE, which the parser does not know: it becomes an INSERT or UPDATE of a column that no table has, which
//! the engine takes for what it is.

use crate::tokens::{is_blank, keyword, word};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The name of the column.
pub const DO_NOTHING: &str = "\u{3}nothing";

/// Of one text: each is put in its place by itself, and a MERGE has fewer clauses.
const MOST: usize = 1_000;

/// Puts such words in the place of all these of a text.
pub(crate) fn put(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| keyword(&token.token) == Keyword::MERGE) {
        return;
    }
    let is = |tokens: &[TokenWithSpan], at: usize, wanted: Keyword| {
        tokens.get(at).is_some_and(|token| keyword(&token.token) == wanted)
    };
    let words: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|token| !is_blank(&token.token))).collect();
    let mut found = Vec::new();
    // Whether the clause that is read is of rows that the target lacks.
    let (mut new, mut before) = (false, [Keyword::NoKeyword; 3]);
    for (place, at) in words.iter().enumerate() {
        let next = words.get(place + 1).copied().unwrap_or(tokens.len());
        let this = tokens.get(*at).map_or(Keyword::NoKeyword, |token| keyword(&token.token));
        match (this, before) {
            (Keyword::WHEN, _) => new = false,
            (Keyword::MATCHED, [_, Keyword::WHEN, Keyword::NOT]) => new = true,
            (Keyword::SOURCE, [Keyword::NOT, Keyword::MATCHED, Keyword::BY]) => new = false,
            (Keyword::DO, [.., Keyword::THEN]) if is(tokens, next, Keyword::NOTHING) => {
                found.push((*at, next, new));
            }
            _ => {}
        }
        before = [before[1], before[2], this];
    }
    if found.len() > MOST {
        return;
    }
    for (from, to, new) in found.into_iter().rev() {
        let Some(span) = tokens.get(from).map(|token| token.span) else { continue };
        let there = action(new).into_iter().map(|token| TokenWithSpan { token, span });
        tokens.splice(from..=to, there.collect::<Vec<_>>());
    }
}

fn action(new: bool) -> Vec<Token> {
    let column = Token::Word(Word {
        value: DO_NOTHING.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    let null = || word("NULL", Keyword::NULL);
    if new {
        vec![
            word("INSERT", Keyword::INSERT),
            Token::LParen,
            column,
            Token::RParen,
            word("VALUES", Keyword::VALUES),
            Token::LParen,
            null(),
            Token::RParen,
        ]
    } else {
        vec![word("UPDATE", Keyword::UPDATE), word("SET", Keyword::SET), column, Token::Eq, null()]
    }
}
