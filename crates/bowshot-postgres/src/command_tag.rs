//! The command tag of CommandComplete (PostgreSQL manual, "Message Formats").

use crate::statement::verb;
use crate::tokens::{Kind, tokens};

/// Keywords between CREATE and the kind of object.
const BETWEEN: [&str; 9] =
    ["OR", "REPLACE", "TEMP", "TEMPORARY", "GLOBAL", "LOCAL", "UNLOGGED", "UNIQUE", "EXTERNAL"];

/// The tag of a statement, with the number of rows returned or changed.
pub(crate) fn tag(sql: &str, rows: Option<u64>) -> String {
    let rows = rows.unwrap_or(0);
    let verb = verb(sql);
    match verb.as_str() {
        "SELECT" | "VALUES" | "TABLE" | "FROM" => format!("SELECT {rows}"),
        "INSERT" => format!("INSERT 0 {rows}"),
        "UPDATE" | "DELETE" | "MERGE" | "FETCH" | "MOVE" | "COPY" => format!("{verb} {rows}"),
        "TRUNCATE" => "TRUNCATE TABLE".to_owned(),
        "END" => "COMMIT".to_owned(),
        "ABORT" => "ROLLBACK".to_owned(),
        "START" => "START TRANSACTION".to_owned(),
        "DECLARE" => "DECLARE CURSOR".to_owned(),
        "CLOSE" if tokens(sql).nth(1).is_some_and(|word| word.is("ALL")) => "CLOSE CURSOR ALL".to_owned(),
        "CLOSE" => "CLOSE CURSOR".to_owned(),
        "DISCARD" => two_words(sql, &verb),
        "CREATE" if makes_rows(sql) => format!("SELECT {rows}"),
        "CREATE" | "DROP" | "ALTER" => two_words(sql, &verb),
        _ => verb,
    }
}

fn two_words(sql: &str, verb: &str) -> String {
    let mut words = tokens(sql).skip(1).filter(|token| !BETWEEN.iter().any(|between| token.is(between)));
    match words.next() {
        Some(word) if word.is("MATERIALIZED") => format!("{verb} MATERIALIZED VIEW"),
        Some(word) if word.kind == Kind::Word => format!("{verb} {}", word.text.to_ascii_uppercase()),
        _ => verb.to_owned(),
    }
}

/// `CREATE TABLE … AS …`
fn makes_rows(sql: &str) -> bool {
    let mut depth = 0_usize;
    let mut is_table = false;
    for token in tokens(sql).skip(1) {
        match token.kind {
            Kind::Symbol('(') => depth += 1,
            Kind::Symbol(')') => depth = depth.saturating_sub(1),
            Kind::Word if depth == 0 && token.is("TABLE") => is_table = true,
            Kind::Word if depth == 0 && token.is("VIEW") => return false,
            Kind::Word if depth == 0 && token.is("AS") => return is_table,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_as_in_postgresql() {
        for (sql, expected) in [
            ("select 1", "SELECT 7"),
            ("values (1)", "SELECT 7"),
            ("with a as (select 1) update t set b = 1", "UPDATE 7"),
            ("insert into t values (1)", "INSERT 0 7"),
            ("create or replace temp table t as select 1", "SELECT 7"),
            ("create table t (a int)", "CREATE TABLE"),
            ("create or replace view v as select 1", "CREATE VIEW"),
            ("drop schema s", "DROP SCHEMA"),
            ("truncate t", "TRUNCATE TABLE"),
            ("end", "COMMIT"),
            ("discard all", "DISCARD ALL"),
            ("declare c cursor for select 1", "DECLARE CURSOR"),
            ("fetch all from c", "FETCH 7"),
            ("close c", "CLOSE CURSOR"),
            ("close all", "CLOSE CURSOR ALL"),
            ("set a = 1", "SET"),
            ("show a", "SHOW"),
            ("explain select 1", "EXPLAIN"),
        ] {
            assert_eq!(tag(sql, Some(7)), expected, "{sql}");
        }
    }
}
