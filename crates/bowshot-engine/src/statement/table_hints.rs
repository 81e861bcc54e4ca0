//! What MySQL and Doris write into a CREATE TABLE about where its rows lie, and texts in double quotes.

use crate::statement::forms::{CLAUSES, Edit, Text};
use datafusion::sql::sqlparser::tokenizer::Token;

/// What is to be changed of a CREATE TABLE.
pub(crate) fn edits(text: &Text<'_>) -> Vec<Edit> {
    let Some(open) = columns(text) else { return Vec::new() };
    let Some(behind) = text.behind(open) else { return Vec::new() };
    let mut edits = quoted(text, open);
    let comma = last_comma(text, behind);
    let hints = hints(text, behind);
    edits.extend(kept(text, (open, behind), &hints));
    edits.extend(comma);
    edits.extend(hints);
    edits
}

/// The clauses that are taken away, as a condition that the table's definition takes them from.
fn kept(text: &Text<'_>, (open, behind): (usize, usize), hints: &[Edit]) -> Option<Edit> {
    let clauses = hints.iter().filter_map(|(range, _)| Some(text.sql.get(range.clone())?.trim()));
    let clauses = clauses.collect::<Vec<_>>().join(" ");
    // A backslash means something else from dialect to dialect. Tables of a query have no conditions yet.
    let is_kept = !clauses.is_empty() && !clauses.contains('\\');
    let ends = (behind..text.len()).all(|at| !matches!(text.word(at).as_str(), "AS" | "SELECT" | "LIKE"));
    let has_columns = behind > open + 2 && text.word(open + 1) != "LIKE";
    if !is_kept || !ends || !has_columns {
        return None;
    }
    let close = text.start(behind - 1);
    let condition = format!(", CONSTRAINT {CLAUSES} CHECK ('{}')", clauses.replace('\'', "''"));
    Some((close..close, condition))
}

/// The place of the parenthesis before the columns.
fn columns(text: &Text<'_>) -> Option<usize> {
    let table = (1..5).find(|at| text.word(*at) == "TABLE")?;
    let named = if text.words(table + 1, &["IF", "NOT", "EXISTS"]) { table + 4 } else { table + 1 };
    let open = (named + 1..named + 7).find(|at| !is_name(text, *at))?;
    matches!(text.token(open), Some(Token::LParen)).then_some(open)
}

fn is_name(text: &Text<'_>, at: usize) -> bool {
    matches!(text.token(at), Some(Token::Period))
        || matches!(text.token(at.wrapping_sub(1)), Some(Token::Period))
}

/// `DEFAULT "x"` and `COMMENT "x"`, which no column can be meant by.
fn quoted(text: &Text<'_>, from: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    for at in from..text.len() {
        if !matches!(text.word(at).as_str(), "DEFAULT" | "COMMENT") {
            continue;
        }
        let value = if matches!(text.token(at + 1), Some(Token::Eq)) { at + 2 } else { at + 1 };
        let inner = match text.token(value) {
            Some(Token::Word(word)) if word.quote_style == Some('"') => &word.value,
            Some(Token::DoubleQuotedString(inner)) => inner,
            _ => continue,
        };
        let start = text.start(value);
        let Some(length) = text.sql.get(start..).and_then(quoted_length) else { continue };
        edits.push((start..start + length, format!("'{}'", inner.replace('\'', "''"))));
    }
    edits
}

/// The comma behind the last column.
fn last_comma(text: &Text<'_>, behind: usize) -> Option<Edit> {
    let comma = behind.checked_sub(2)?;
    let start = text.start(comma);
    matches!(text.token(comma), Some(Token::Comma)).then(|| (start..start + 1, String::new()))
}

/// Bytes of a text in double quotes, which are doubled within.
fn quoted_length(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '"' && characters.next_if(|(_, next)| *next == '"').is_none() {
            return Some(at + 1);
        }
    }
    None
}

/// The clauses behind the columns that say where rows lie.
fn hints(text: &Text<'_>, mut at: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    while at < text.len() {
        let next = hint(text, at);
        match next {
            Some(next) => {
                edits.push((text.start(at)..text.start(next), String::new()));
                at = next;
            }
            None if text.word(at) == "AS" || text.word(at) == "SELECT" => break,
            None => at += 1,
        }
    }
    edits
}

/// The place behind a clause of that kind.
fn hint(text: &Text<'_>, at: usize) -> Option<usize> {
    let list = |open: usize| match text.token(open) {
        Some(Token::LParen) => text.behind(open),
        _ => None,
    };
    let value = |name: usize| {
        let value = if matches!(text.token(name), Some(Token::Eq)) { name + 1 } else { name };
        let behind = value + 1;
        Some(if matches!(text.token(behind), Some(Token::Comma)) { behind + 1 } else { behind })
    };
    match text.word(at).as_str() {
        "PROPERTIES" => list(at + 1),
        "DUPLICATE" if text.word(at + 1) == "KEY" => list(at + 2),
        "DISTRIBUTED" | "CLUSTERED" if text.word(at + 1) == "BY" => {
            let behind = match text.word(at + 2).as_str() {
                "HASH" => list(at + 3)?,
                "RANDOM" => at + 3,
                _ => list(at + 2)?,
            };
            Some(if text.word(behind) == "BUCKETS" { behind + 2 } else { behind })
        }
        "PARTITION" if text.word(at + 1) == "BY" => {
            let columns = (at + 2..at + 5).find(|at| matches!(text.token(*at), Some(Token::LParen)))?;
            let behind = list(columns)?;
            Some(list(behind).unwrap_or(behind))
        }
        "ENGINE" | "CHARSET" | "COLLATE" | "ROW_FORMAT" | "AUTO_INCREMENT" | "KEY_BLOCK_SIZE" => {
            value(at + 1)
        }
        "CHARACTER" if text.word(at + 1) == "SET" => value(at + 2),
        // Only one such word stands before another: as many as a text holds would be more than a stack does.
        "DEFAULT" if text.word(at + 1) != "DEFAULT" => hint(text, at + 1),
        _ => None,
    }
}
