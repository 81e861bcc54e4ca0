//! What MySQL, Doris and Spark write into a CREATE TABLE about where its rows lie, and texts in double quotes.

use super::{CLAUSES, Edit, Text, name};
use crate::offsets::Offsets;
use crate::tokens::word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// What is to be changed of a CREATE TABLE that is in a text.
pub(super) fn edits(text: &Text<'_>, sql: &str) -> Vec<Edit> {
    let Some(behind_name) = behind_name(text) else { return Vec::new() };
    let Some(open) = Some(behind_name).filter(|at| matches!(text.token(*at), Some(Token::LParen))) else {
        return partitioned(text, behind_name).into_iter().collect();
    };
    let Some(behind) = text.behind(open) else { return Vec::new() };
    let clauses = clauses(text, behind);
    let mut edits = quoted(text, open);
    edits.extend(last_comma(text, behind));
    edits.extend(kept(text, (open, behind), &clauses, sql));
    edits.extend(clauses.into_iter().map(|tokens| Edit::new(text.range(tokens), Vec::new())));
    edits
}

/// The clauses that are taken away, as a condition that the table's definition takes them from.
fn kept(
    text: &Text<'_>,
    (open, behind): (usize, usize),
    clauses: &[Range<usize>],
    sql: &str,
) -> Option<Edit> {
    let mut offsets = Offsets::new(sql);
    let written = clauses.iter().map(|tokens| {
        let start = offsets.of(text.span(tokens.start)?.start)?;
        let end = offsets.of(text.span(tokens.end.checked_sub(1)?)?.end)?;
        sql.get(start..end)
    });
    let clauses = written.collect::<Option<Vec<_>>>()?.join(" ");
    // A backslash means something else from dialect to dialect. Tables of a query have no conditions yet.
    let is_kept = !clauses.is_empty() && !clauses.contains('\\');
    let ends = (behind..text.len()).all(|at| !text.is_one_of(at, &["AS", "SELECT", "LIKE"]));
    let has_columns = behind > open + 2 && !text.is(open + 1, "LIKE");
    if !is_kept || !ends || !has_columns {
        return None;
    }
    let close = text.place(behind - 1);
    let condition = vec![
        Token::Comma,
        word("CONSTRAINT", Keyword::CONSTRAINT),
        name(CLAUSES),
        word("CHECK", Keyword::CHECK),
        Token::LParen,
        Token::SingleQuotedString(clauses),
        Token::RParen,
    ];
    Some(Edit::new(close..close, condition))
}

/// The place behind the name of the table, where its columns begin if there are any.
fn behind_name(text: &Text<'_>) -> Option<usize> {
    let table = (1..5).find(|at| text.is(*at, "TABLE"))?;
    let named = if text.words(table + 1, &["IF", "NOT", "EXISTS"]) { table + 4 } else { table + 1 };
    (named + 1..named + 7).find(|at| !is_name(text, *at))
}

/// `PARTITIONED BY (day(at))` of a table that is made of a query, as the parser knows it.
fn partitioned(text: &Text<'_>, at: usize) -> Option<Edit> {
    let is_meant = text.words(at, &["PARTITIONED", "BY"]) && has_calls(text, at + 2);
    is_meant.then(|| Edit::new(text.range(at..at + 1), vec![word("PARTITION", Keyword::PARTITION)]))
}

/// Whether a list has calls such as `day(at)`, and not only columns with their types.
fn has_calls(text: &Text<'_>, open: usize) -> bool {
    let is_call = |at: usize| {
        matches!(text.token(at.wrapping_sub(1)), Some(Token::LParen | Token::Comma))
            && matches!(text.token(at), Some(Token::Word(_)))
            && matches!(text.token(at + 1), Some(Token::LParen))
    };
    text.behind(open).is_some_and(|behind| (open + 1..behind).any(is_call))
}

fn is_name(text: &Text<'_>, at: usize) -> bool {
    matches!(text.token(at), Some(Token::Period))
        || matches!(text.token(at.wrapping_sub(1)), Some(Token::Period))
}

/// `DEFAULT "x"` and `COMMENT "x"`, which no column can be meant by.
fn quoted(text: &Text<'_>, from: usize) -> Vec<Edit> {
    let edit = |at: usize| {
        let value = if matches!(text.token(at + 1), Some(Token::Eq)) { at + 2 } else { at + 1 };
        let inner = match text.token(value)? {
            Token::Word(word) if word.quote_style == Some('"') => &word.value,
            Token::DoubleQuotedString(inner) => inner,
            _ => return None,
        };
        Some(Edit::new(text.range(value..value + 1), vec![Token::SingleQuotedString(inner.clone())]))
    };
    (from..text.len()).filter(|at| text.is_one_of(*at, &["DEFAULT", "COMMENT"])).filter_map(edit).collect()
}

/// The comma behind the last column.
fn last_comma(text: &Text<'_>, behind: usize) -> Option<Edit> {
    let comma = behind.checked_sub(2)?;
    matches!(text.token(comma), Some(Token::Comma))
        .then(|| Edit::new(text.range(comma..comma + 1), Vec::new()))
}

/// The clauses behind the columns that say where rows lie.
fn clauses(text: &Text<'_>, mut at: usize) -> Vec<Range<usize>> {
    let mut clauses = Vec::new();
    while at < text.len() {
        match clause(text, at) {
            Some(next) => {
                clauses.push(at..next.min(text.len()));
                at = next;
            }
            None if text.is_one_of(at, &["AS", "SELECT"]) => break,
            None => at += 1,
        }
    }
    clauses
}

/// The place behind a clause of that kind.
fn clause(text: &Text<'_>, at: usize) -> Option<usize> {
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
        "DUPLICATE" if text.is(at + 1, "KEY") => list(at + 2),
        "DISTRIBUTED" | "CLUSTERED" if text.is(at + 1, "BY") => {
            let behind = match text.word(at + 2).as_str() {
                "HASH" => list(at + 3)?,
                "RANDOM" => at + 3,
                _ => list(at + 2)?,
            };
            Some(if text.is(behind, "BUCKETS") { behind + 2 } else { behind })
        }
        "PARTITIONED" if text.is(at + 1, "BY") && has_calls(text, at + 2) => list(at + 2),
        "PARTITION" if text.is(at + 1, "BY") => {
            let columns = (at + 2..at + 5).find(|at| matches!(text.token(*at), Some(Token::LParen)))?;
            let behind = list(columns)?;
            Some(list(behind).unwrap_or(behind))
        }
        "ENGINE" | "CHARSET" | "COLLATE" | "ROW_FORMAT" | "AUTO_INCREMENT" | "KEY_BLOCK_SIZE" => {
            value(at + 1)
        }
        "CHARACTER" if text.is(at + 1, "SET") => value(at + 2),
        // Only one such word stands before another: as many as a text holds would be more than a stack does.
        "DEFAULT" if !text.is(at + 1, "DEFAULT") => clause(text, at + 1),
        _ => None,
    }
}
