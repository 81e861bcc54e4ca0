//! `FOR UPDATE`, `FOR SHARE` and their like behind a query.

use crate::statement::Statement;
use crate::tokens::{is_blank, keyword};
use sqlparser::ast::{self, NonBlock};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::TokenWithSpan;

/// How a query waits for the rows that it locks. All locks are those of FOR UPDATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLock {
    /// As long as the session waits for locks.
    Wait,
    /// `NOWAIT`: it fails.
    NoWait,
    /// `SKIP LOCKED`: it does not see them.
    SkipLocked,
}

impl RowLock {
    /// How a statement locks its rows, if it is a query that does.
    pub fn from_statement(statement: &Statement) -> Option<Self> {
        let Statement::Sql(statement) = statement else { return None };
        let ast::Statement::Query(query) = statement.as_ref() else { return None };
        Some(match query.locks.first()?.nonblock {
            None => Self::Wait,
            Some(NonBlock::Nowait) => Self::NoWait,
            Some(NonBlock::SkipLocked) => Self::SkipLocked,
        })
    }
}

/// `FOR NO KEY UPDATE` and `FOR KEY SHARE` without the words that the parser does not know there.
pub(crate) fn drop_key(kept: &mut Vec<TokenWithSpan>) {
    if !kept.iter().any(|token| keyword(&token.token) == Keyword::KEY) {
        return;
    }
    let words = kept.iter().enumerate().filter(|(_, token)| !is_blank(&token.token));
    let words: Vec<(usize, Keyword)> = words.map(|(at, token)| (at, keyword(&token.token))).collect();
    let mut dropped = Vec::new();
    for (from, _) in words.iter().enumerate().filter(|(_, (_, word))| *word == Keyword::FOR) {
        match words.get(from + 1..).unwrap_or_default() {
            [(no, Keyword::NO), (key, Keyword::KEY), (_, Keyword::UPDATE), ..] => dropped.extend([*no, *key]),
            [(key, Keyword::KEY), (_, Keyword::SHARE), ..] => dropped.push(*key),
            _ => {}
        }
    }
    let mut at = 0;
    kept.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::read_one;

    #[test]
    fn queries_say_how_they_lock() {
        for (sql, expected) in [
            ("SELECT 1 AS a", None),
            ("SELECT a FROM t FOR UPDATE", Some(RowLock::Wait)),
            ("SELECT a FROM t FOR NO KEY UPDATE NOWAIT", Some(RowLock::NoWait)),
            ("SELECT a FROM t FOR KEY SHARE OF t SKIP LOCKED", Some(RowLock::SkipLocked)),
            ("SELECT a FROM t FOR SHARE", Some(RowLock::Wait)),
            ("UPDATE t SET a = 1", None),
        ] {
            assert_eq!(RowLock::from_statement(&read_one(sql).unwrap()), expected, "{sql}");
        }
    }
}
