//! `FOR UPDATE`, `FOR SHARE` and their like behind a query.

use crate::statement::Statement;
use crate::tokens::{is_blank, keyword};
use bowshot_api::{Error, Reason, Result};
use sqlparser::ast::{self, Ident, NonBlock, ObjectName, ObjectNamePart, TableFactor};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

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
        Some(match query(statement)?.locks.first()?.nonblock {
            None => Self::Wait,
            Some(NonBlock::Nowait) => Self::NoWait,
            Some(NonBlock::SkipLocked) => Self::SkipLocked,
        })
    }
}

/// The tables that a query locks: those of its FROM, or those of them that `OF` names. `None` where more than names of tables is to be
/// locked.
///
/// # Errors
/// `NotFound` for a name that is not in FROM.
pub fn locked_names(statement: &Statement) -> Result<Option<Vec<ObjectName>>> {
    let Some(query) = query(statement) else { return Ok(None) };
    let (ast::SetExpr::Select(select), None) = (query.body.as_ref(), &query.with) else { return Ok(None) };
    let mut tables = Vec::new();
    for from in &select.from {
        add_tables(&from.relation, &mut tables);
        from.joins.iter().for_each(|join| add_tables(&join.relation, &mut tables));
    }
    let of = query.locks.iter().map(|lock| lock.of.as_ref()).collect::<Option<Vec<_>>>();
    if let Some(of) = of {
        let of = of.into_iter().flat_map(|names| &names.0).filter_map(ObjectNamePart::as_ident);
        let of: Vec<&Ident> = of.collect();
        if let Some(name) = of.iter().find(|name| !tables.iter().any(|(table, _)| is_called(*table, name))) {
            let message = format!("table `{}` of FOR UPDATE is not in FROM", name.value);
            return Err(Error::not_found(message).with_reason(Reason::UndefinedTable));
        }
        tables.retain(|(table, _)| of.iter().any(|name| is_called(*table, name)));
    }
    Ok(tables.into_iter().map(|(_, name)| name.cloned()).collect())
}

/// What is in FROM: how OF names it, if that is known, and its name if it may be a table.
type InFrom<'a> = (Option<&'a Ident>, Option<&'a ObjectName>);

fn is_called(table: Option<&Ident>, name: &Ident) -> bool {
    table.is_none_or(|table| table.value.eq_ignore_ascii_case(&name.value))
}

fn add_tables<'a>(from: &'a TableFactor, found: &mut Vec<InFrom<'a>>) {
    match from {
        TableFactor::Table { name, alias, args, .. } => {
            let alias = alias.as_ref().map(|alias| &alias.name);
            let last = || name.0.last().and_then(ObjectNamePart::as_ident);
            found.push((alias.or_else(last), Some(name).filter(|_| args.is_none())));
        }
        TableFactor::Derived { alias: Some(alias), .. } => found.push((Some(&alias.name), None)),
        TableFactor::NestedJoin { table_with_joins: from, alias: None } => {
            add_tables(&from.relation, found);
            from.joins.iter().for_each(|join| add_tables(&join.relation, found));
        }
        _ => found.push((None, None)),
    }
}

fn query(statement: &Statement) -> Option<&ast::Query> {
    let Statement::Sql(statement) = statement else { return None };
    let ast::Statement::Query(query) = statement.as_ref() else { return None };
    (!query.locks.is_empty()).then_some(&**query)
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
            ("SELECT a FROM t FOR UPDATE", Some(RowLock::Wait)),
            ("SELECT a FROM t FOR NO KEY UPDATE NOWAIT", Some(RowLock::NoWait)),
            ("SELECT a FROM t FOR KEY SHARE OF t SKIP LOCKED", Some(RowLock::SkipLocked)),
            ("SELECT a FROM t FOR SHARE", Some(RowLock::Wait)),
            ("UPDATE t SET a = 1", None),
        ] {
            assert_eq!(RowLock::from_statement(&read_one(sql).unwrap()), expected, "{sql}");
        }
    }

    #[test]
    fn queries_say_which_tables_they_lock() {
        for (sql, expected) in [
            ("SELECT 1 FROM t AS a JOIN s.u ON true, (v JOIN w ON true) FOR UPDATE", Some("t s.u v w")),
            ("SELECT 1 FROM t AS a JOIN s.u ON true FOR UPDATE OF A NOWAIT", Some("t")),
            ("SELECT 1 FROM t AS a, u, v FOR NO KEY UPDATE OF a, v SKIP LOCKED", Some("t v")),
            ("SELECT 1 FROM t AS a, u, v FOR UPDATE OF a FOR SHARE OF u", Some("t u")),
            ("SELECT 1 FROM t, (SELECT 2 FROM u) AS q FOR UPDATE OF t", Some("t")),
            ("SELECT 1 FROM t, (SELECT 2 FROM u) AS q FOR UPDATE OF q", None),
            ("SELECT 1 FROM t, (SELECT 2 FROM u) AS q FOR UPDATE", None),
            ("WITH t AS (SELECT 1) SELECT 1 FROM t FOR UPDATE OF t", None),
        ] {
            let names = locked_names(&read_one(sql).unwrap()).unwrap();
            let names =
                names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            assert_eq!(names.as_deref(), expected, "{sql}");
        }
        let error = locked_names(&read_one("SELECT 1 FROM t AS a FOR UPDATE OF t").unwrap()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::UndefinedTable));
    }
}
