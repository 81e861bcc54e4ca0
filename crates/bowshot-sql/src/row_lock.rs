//! `FOR UPDATE`, `FOR SHARE` and their like behind a query.

use crate::statement::Statement;
use crate::tokens::{is_blank, keyword};
use sqlparser::ast::{self, NonBlock, ObjectName, ObjectNamePart};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;

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

/// What a query says about the rows that it locks.
#[derive(Debug, Clone)]
pub struct LockClause {
    /// What it does where others have locked them.
    pub wait: RowLock,
    /// What it locks, as FROM calls it: all of that where this is empty.
    pub of: Arc<[String]>,
}

impl LockClause {
    /// The clause of a statement, if it is a query that locks rows.
    pub fn from_statement(statement: &Statement) -> Option<Self> {
        let Statement::Sql(statement) = statement else { return None };
        let ast::Statement::Query(query) = statement.as_ref() else { return None };
        let wait = match query.locks.first()?.nonblock {
            None => RowLock::Wait,
            Some(NonBlock::Nowait) => RowLock::NoWait,
            Some(NonBlock::SkipLocked) => RowLock::SkipLocked,
        };
        let of: Option<Vec<&ObjectName>> = query.locks.iter().map(|lock| lock.of.as_ref()).collect();
        let names = of.into_iter().flatten().flat_map(|names| &names.0).filter_map(ObjectNamePart::as_ident);
        Some(Self { wait, of: names.map(|name| name.value.clone()).collect() })
    }
}

/// `OF a, b` as `OF a.b`: the parser takes one name there, and tables are named without their schema.
pub(crate) fn join_names(kept: &mut [TokenWithSpan]) {
    let mut before = [Keyword::NoKeyword; 2];
    let mut is_list = false;
    for token in kept.iter_mut().filter(|token| !is_blank(&token.token)) {
        let word = keyword(&token.token);
        if word == Keyword::OF && matches!(before, [Keyword::FOR, Keyword::UPDATE | Keyword::SHARE]) {
            is_list = true;
        } else if !matches!(token.token, Token::Word(_) | Token::Comma) {
            is_list = false;
        } else if is_list && token.token == Token::Comma {
            token.token = Token::Period;
        }
        before = [before[1], word];
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
            ("SELECT a FROM t FOR UPDATE", Some((RowLock::Wait, ""))),
            ("SELECT a FROM t FOR NO KEY UPDATE NOWAIT", Some((RowLock::NoWait, ""))),
            ("SELECT a FROM t FOR KEY SHARE OF t SKIP LOCKED", Some((RowLock::SkipLocked, "t"))),
            ("SELECT a FROM t FOR SHARE", Some((RowLock::Wait, ""))),
            ("SELECT a FROM t, u, v FOR NO KEY UPDATE OF t , v NOWAIT", Some((RowLock::NoWait, "t v"))),
            ("SELECT a FROM t, u, v FOR UPDATE OF t FOR SHARE OF u, v", Some((RowLock::Wait, "t u v"))),
            ("SELECT a FROM t, u FOR UPDATE OF t FOR SHARE", Some((RowLock::Wait, ""))),
            ("UPDATE t SET a = 1", None),
        ] {
            let clause = LockClause::from_statement(&read_one(sql).unwrap());
            let found = clause.map(|clause| (clause.wait, clause.of.join(" ")));
            assert_eq!(found, expected.map(|(wait, of)| (wait, of.to_owned())), "{sql}");
        }
    }
}
