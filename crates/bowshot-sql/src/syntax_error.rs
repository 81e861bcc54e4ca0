//! What the parser says, in our words.

use bowshot_api::{Error, ErrorKind, Position, Reason};
use sqlparser::parser::ParserError;

pub(crate) fn syntax_error(error: &ParserError) -> Error {
    match error {
        ParserError::RecursionLimitExceeded => Error::new(
            ErrorKind::LimitReached,
            "the statement nests deeper than the parser's recursion limit allows",
        )
        .with_reason(Reason::TooComplex)
        .with_hint("take inner queries apart with WITH"),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            let (what, position) = placed(text);
            let what = misplaced_action(what).unwrap_or_else(|| lower_first(what));
            let told = Error::new(ErrorKind::Syntax, format!("syntax error: {what}"));
            match position {
                Some(position) => told.with_position(position),
                None => told,
            }
        }
    }
}

/// The parser's `… at Line: 1, Column: 8` as what it says and the place.
fn placed(text: &str) -> (&str, Option<Position>) {
    let apart = || {
        let (what, place) = text.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((what, Position { line: line.parse().ok()?, column: column.trim_end().parse().ok()? }))
    };
    match apart() {
        Some((what, position)) => (what, Some(position)),
        None => (text, None),
    }
}

/// `INSERT is not allowed in a NOT MATCHED BY SOURCE merge clause`
fn misplaced_action(text: &str) -> Option<String> {
    let (action, clause) = text.strip_suffix(" merge clause")?.split_once(" is not allowed in a ")?;
    Some(format!("{action} is not possible for WHEN {clause}"))
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            first.to_ascii_lowercase().to_string() + characters.as_str()
        }
        _ => text.to_owned(),
    }
}
