//! Statements of other servers that Bowshot does not have, each with the reason and what to do instead; and those that it
//! accepts because there is nothing to do.

use super::Expanded;
use super::asked::{Asked, texts};
use super::parse::Words;
use crate::statement::session::SessionStatement;
use bowshot_api::{Error, Notice, Result};
use datafusion::sql::sqlparser::tokenizer::Token;

/// `ANALYZE [t]`, `CHECKPOINT`: statistics are kept with the rows, and what is committed is written.
pub(super) fn harmless(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Expanded> {
    let _ = words.take("verbose");
    let _ = words.take("table");
    if !words.at_end() {
        let name = words.name()?;
        // Columns and options after the name say what is done anyway.
        asked.table(&name)?;
    }
    Ok(Expanded::Act(SessionStatement::Nothing))
}

/// `CHECK TABLE t, …` of MySQL, with what it says of tables that have no check of their own.
pub(super) fn check(mut words: Words<'_>, asked: &Asked<'_>) -> Result<Expanded> {
    let _ = words.take("table");
    let mut rows = Vec::new();
    loop {
        let full = asked.table(&words.name()?)?;
        let table = format!("{}.{}", full.schema, full.name);
        let note = "The storage engine for the table doesn't support check";
        rows.push([table.as_str(), "check", "note", note].map(|text| Some(text.to_owned())).to_vec());
        if !words.take_token(&Token::Comma) {
            break;
        }
    }
    let rows = texts(&["Table", "Op", "Msg_type", "Msg_text"], &rows)?;
    Ok(Expanded::Rows(Box::new(rows)))
}

/// `CREATE INDEX [CONCURRENTLY] [IF NOT EXISTS] [i] ON t …` and `DROP INDEX i`: migrations send them. There are no indexes, since
/// scans skip what the statistics rule out. One that is UNIQUE is a promise, and does not come here.
pub(super) fn index(mut words: Words<'_>, first: &str, asked: &Asked<'_>) -> Result<Expanded> {
    let _ = words.take("index");
    let _ = words.take("concurrently");
    if first == "create" {
        let _ = words.take_all(&["if", "not", "exists"]);
        if words.peek().as_deref() != Some("on") {
            words.name()?;
        }
        if !words.take("on") {
            return Err(words.unexpected());
        }
        let _ = words.take("only");
        let name = words.name()?;
        // The columns and the kind of the index say nothing here.
        asked.table(&name)?;
        return Ok(Expanded::Act(SessionStatement::Notice(Notice::NoIndexes)));
    }
    let _ = words.take_all(&["if", "exists"]);
    words.name()?;
    Ok(Expanded::Act(SessionStatement::Nothing))
}

/// The reason why a statement is refused, with its first word taken; `None` for one that is not of this list.
pub(super) fn refused(mut words: Words<'_>, first: &str) -> Option<Error> {
    if matches!(first, "create" | "drop" | "alter") {
        return kind_of_thing(&mut words).map(|kind| of_thing(first, &kind)).unwrap_or_default();
    }
    let second = words.peek();
    let refusal = REFUSED.iter().find(|refusal| {
        refusal.words.first() == Some(&first)
            && refusal.words.get(1).is_none_or(|word| second.as_deref() == Some(*word))
    })?;
    Some(Error::unsupported(refusal.reason).with_hint(refusal.hint))
}

struct Refusal {
    words: &'static [&'static str],
    reason: &'static str,
    hint: &'static str,
}

const fn refusal(words: &'static [&'static str], reason: &'static str, hint: &'static str) -> Refusal {
    Refusal { words, reason, hint }
}

const FILES: &str = "serve files and folders with `bowshot serve NAME=PATH`";
const BUILT_IN: &str = "what Bowshot can do is built in; there is nothing to load";
const ALL_RIGHTS: &str = "the operator decides who may connect: see `access.users` in the configuration";

const REFUSED: &[Refusal] = &[
    refusal(&["attach"], "ATTACH is not supported", FILES),
    refusal(
        &["cluster"],
        "CLUSTER is not supported",
        "there are no indexes to follow; `OPTIMIZE t` rewrites small files",
    ),
    refusal(&["detach"], "DETACH is not supported", FILES),
    refusal(
        &["do"],
        "DO is not supported: there are no procedural languages",
        "send the statements one by one",
    ),
    refusal(
        &["export"],
        "EXPORT DATABASE is not supported",
        "write each table to a file: `COPY t TO 't.parquet'`",
    ),
    refusal(
        &["flush"],
        "FLUSH is not supported",
        "what is committed is written; `CALL result_cache_clear()` empties the cache",
    ),
    refusal(&["force"], "FORCE is not supported", BUILT_IN),
    refusal(&["grant"], "GRANT is not supported: everybody who may connect may do everything", ALL_RIGHTS),
    refusal(&["handler"], "HANDLER is not supported", "declare a cursor: `DECLARE c CURSOR FOR SELECT …`"),
    refusal(&["import"], "IMPORT is not supported", "read files into tables: `COPY t FROM 'file'`"),
    refusal(&["install"], "there are no extensions", BUILT_IN),
    refusal(
        &["listen"],
        "LISTEN is not supported: there are no notifications",
        "ask `system.table_history` for changes",
    ),
    refusal(&["load"], "there are no extensions", BUILT_IN),
    refusal(&["lock"], "LOCK is not supported", "transactions have snapshot isolation and need no locks"),
    refusal(
        &["notify"],
        "NOTIFY is not supported: there are no notifications",
        "ask `system.table_history` for changes",
    ),
    refusal(&["reassign"], "REASSIGN is not supported: tables have no owners", ALL_RIGHTS),
    refusal(
        &["reindex"],
        "REINDEX is not supported: there are no indexes",
        "statistics are kept with the rows",
    ),
    refusal(&["revoke"], "REVOKE is not supported: everybody who may connect may do everything", ALL_RIGHTS),
    refusal(&["security"], "SECURITY LABEL is not supported", ALL_RIGHTS),
    refusal(
        &["unlisten"],
        "UNLISTEN is not supported: there are no notifications",
        "there is nothing to undo",
    ),
    refusal(&["unlock"], "UNLOCK is not supported", "transactions have snapshot isolation and need no locks"),
];

/// Words between CREATE and the kind of thing.
const MODIFIERS: &[&str] = &[
    "or",
    "replace",
    "alter",
    "temp",
    "temporary",
    "unique",
    "global",
    "local",
    "persistent",
    "aggregate",
    "concurrently",
    "fulltext",
    "spatial",
    "trusted",
    "clustered",
    "nonclustered",
    "secure",
    "event",
    "constraint",
];

fn kind_of_thing(words: &mut Words<'_>) -> Option<String> {
    let mut before = None;
    loop {
        let word = words.word()?;
        if !MODIFIERS.contains(&word.as_str()) {
            // `CREATE EVENT e` is about events, `CREATE EVENT TRIGGER t` about triggers.
            let things = THINGS.iter().any(|(kind, ..)| *kind == word);
            return if things { Some(word) } else { before };
        }
        before = (word == "event" || word == "aggregate").then_some(word);
    }
}

/// Kinds of things that there are none of: kind, reason, what to do instead.
const THINGS: &[(&str, &str, &str)] = &[
    (
        "index",
        "there are no indexes",
        "declare it with the table, which keeps rows unique: `CREATE TABLE t (…, UNIQUE (a))`",
    ),
    (
        "function",
        "functions cannot be created",
        "write the expression into a view: `CREATE VIEW v AS SELECT …`",
    ),
    ("procedure", "procedures cannot be created", "send the statements one by one"),
    ("macro", "macros cannot be created", "write the expression into a view: `CREATE VIEW v AS SELECT …`"),
    ("aggregate", "aggregates cannot be created", "the functions that there are: `SHOW FUNCTIONS`"),
    ("trigger", "triggers cannot be created", "change both tables in one transaction"),
    ("event", "events cannot be created", "let a scheduler of the operating system send the statement"),
    ("role", "roles cannot be managed by SQL", ALL_RIGHTS),
    ("user", "users cannot be managed by SQL", ALL_RIGHTS),
    ("group", "groups cannot be managed by SQL", ALL_RIGHTS),
    (
        "policy",
        "there are no policies for rows",
        "show rows through a view that compares a column with `current_user`",
    ),
    ("rule", "rules cannot be created", "write the query into a view"),
    ("extension", "there are no extensions", BUILT_IN),
    ("language", "there are no procedural languages", BUILT_IN),
    (
        "secret",
        "its values are never read, and so not changed one by one",
        "write all of them: `CREATE OR REPLACE SECRET`",
    ),
    ("server", "foreign servers are not supported", FILES),
    ("foreign", "foreign tables are not supported", FILES),
    ("tablespace", "there are no tablespaces", "tables are in the data folder of the server"),
    ("publication", "there is no replication", "ask `system.table_history` for changes"),
    ("subscription", "there is no replication", "ask `system.table_history` for changes"),
    ("operator", "operators cannot be created", "the functions that there are: `SHOW FUNCTIONS`"),
    ("cast", "casts cannot be created", "write `CAST(value AS type)`"),
    ("collation", "texts are compared by their bytes", "order by `lower(text)` for an order without case"),
    ("conversion", "texts are UTF-8", "convert files before they are read"),
    ("statistics", "statistics need no statement: they are kept with the rows", "there is nothing to do"),
];

fn of_thing(first: &str, kind: &str) -> Option<Error> {
    let (kind, reason, hint) = THINGS.iter().find(|(known, ..)| *known == kind)?;
    let statement = format!("{} {}", first.to_ascii_uppercase(), kind.to_ascii_uppercase());
    Some(Error::unsupported(format!("{statement} is not supported: {reason}")).with_hint(*hint))
}
