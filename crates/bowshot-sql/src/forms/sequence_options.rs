//! `CREATE SEQUENCE s START WITH 1 INCREMENT BY 50`: options in any order, of which `sqlparser` takes one alone.

use super::{Edit, Text};
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// The options in the order of the parser; `None` for other statements and options.
pub(super) fn in_order(text: &Text<'_>) -> Option<Edit> {
    let sequence = (1..3).find(|at| text.is(*at, "SEQUENCE"))?;
    let named = if text.words(sequence + 1, &["IF", "NOT", "EXISTS"]) { sequence + 4 } else { sequence + 1 };
    let begin = text.behind_name(named);
    let (mut at, mut options) = (begin, Vec::new());
    while at < text.len() {
        let (place, end) = option(text, at)?;
        options.push((place, at..end));
        at = end;
    }
    if options.is_sorted_by_key(|(place, _)| *place) {
        return None;
    }
    options.sort_by_key(|(place, _)| *place);
    let tokens = |(_, range): (u8, Range<usize>)| range.map(move |at| text.token(at).cloned());
    let tokens = options.into_iter().flat_map(tokens).collect::<Option<Vec<Token>>>()?;
    Some(Edit::new(text.range(begin..text.len()), tokens))
}

/// The place of an option in the order, and where it ends.
fn option(text: &Text<'_>, at: usize) -> Option<(u8, usize)> {
    let negated = usize::from(text.is(at, "NO"));
    let optional = |word: &str| at + 1 + usize::from(text.is(at + 1, word));
    let number =
        |at: usize| Some(at + 1 + usize::from(matches!(text.token(at)?, Token::Minus | Token::Plus)));
    Some(match text.word(at + negated).as_str() {
        "AS" if negated == 0 => (0, at + 2),
        "INCREMENT" if negated == 0 => (1, number(optional("BY"))?),
        "MINVALUE" => (2, if negated == 1 { at + 2 } else { number(at + 1)? }),
        "MAXVALUE" => (3, if negated == 1 { at + 2 } else { number(at + 1)? }),
        "START" if negated == 0 => (4, number(optional("WITH"))?),
        "CACHE" if negated == 0 => (5, number(at + 1)?),
        "CYCLE" => (6, at + 1 + negated),
        "OWNED" if negated == 0 => (7, text.behind_name(at + 2)),
        _ => return None,
    })
}
