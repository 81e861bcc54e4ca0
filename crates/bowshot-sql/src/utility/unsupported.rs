//! Statements of other servers that Bowshot does not have, each with the reason and what to do instead.

use crate::statement_tokens::StatementTokens;
use bowshot_api::{Error, Result};

/// Refuses a statement of this list.
///
/// # Errors
/// `Unsupported` with the reason.
pub(crate) fn check(words: &StatementTokens<'_>) -> Result<()> {
    let first = words.peek().unwrap_or_default();
    if matches!(first.as_str(), "create" | "drop" | "alter") {
        return match kind_of_thing(words).and_then(|kind| of_thing(&first, &kind)) {
            Some(error) => Err(error),
            None => Ok(()),
        };
    }
    match REFUSED.iter().find(|(word, ..)| *word == first) {
        Some((_, reason, hint)) => Err(Error::unsupported(*reason).with_hint(*hint)),
        None => Ok(()),
    }
}

const FILES: &str = "serve files and folders with `bowshot serve NAME=PATH`";
const BUILT_IN: &str = "what Bowshot can do is built in; there is nothing to load";
const ACCESS: &str = "use CREATE USER, CREATE ROLE, GRANT and REVOKE";

/// First words of statements that there are none of: word, reason, what to do instead.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "cluster",
        "CLUSTER is not supported",
        "there are no indexes to follow; `OPTIMIZE t` rewrites small files",
    ),
    ("do", "DO is not supported: there are no procedural languages", "send the statements one by one"),
    ("export", "EXPORT DATABASE is not supported", "write each table to a file: `COPY t TO 't.parquet'`"),
    (
        "flush",
        "FLUSH is not supported",
        "what is committed is written; `CALL result_cache_clear()` empties the cache",
    ),
    ("force", "FORCE is not supported", BUILT_IN),
    ("handler", "HANDLER is not supported", "declare a cursor: `DECLARE c CURSOR FOR SELECT …`"),
    ("import", "IMPORT is not supported", "read files into tables: `COPY t FROM 'file'`"),
    ("install", "there are no extensions", BUILT_IN),
    (
        "listen",
        "LISTEN is not supported: there are no notifications",
        "ask `system.table_history` for changes",
    ),
    ("load", "there are no extensions", BUILT_IN),
    ("lock", "LOCK is not supported", "rows are locked by `SELECT … FOR UPDATE`"),
    (
        "notify",
        "NOTIFY is not supported: there are no notifications",
        "ask `system.table_history` for changes",
    ),
    ("reassign", "REASSIGN is not supported", "use `ALTER TABLE t OWNER TO …`"),
    ("reindex", "REINDEX is not supported: there are no indexes", "statistics are kept with the rows"),
    ("security", "SECURITY LABEL is not supported", ACCESS),
    ("unlisten", "UNLISTEN is not supported: there are no notifications", "there is nothing to undo"),
    ("unlock", "UNLOCK is not supported", "locks of rows end with their transaction"),
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

fn kind_of_thing(words: &StatementTokens<'_>) -> Option<String> {
    let (mut at, mut before) = (1, None);
    loop {
        let word = words.peek_nth(at)?;
        if !MODIFIERS.contains(&word.as_str()) {
            // `CREATE EVENT e` is about events, `CREATE EVENT TRIGGER t` about triggers.
            let things = THINGS.iter().any(|(kind, ..)| *kind == word);
            return if things { Some(word) } else { before };
        }
        before = (word == "event" || word == "aggregate").then_some(word);
        at += 1;
    }
}

/// Kinds of things that there are none of: kind, reason, what to do instead.
const THINGS: &[(&str, &str, &str)] = &[
    (
        "index",
        "there are no indexes",
        "declare it with the table, which keeps rows unique: `CREATE TABLE t (…, UNIQUE (a))`",
    ),
    ("function", "functions are replaced as a whole", "use `CREATE OR REPLACE FUNCTION`"),
    ("procedure", "procedures cannot be created", "send the statements one by one"),
    ("aggregate", "aggregate functions cannot be created", "the functions that there are: `SHOW FUNCTIONS`"),
    ("trigger", "triggers cannot be created", "change both tables in one transaction"),
    ("event", "events cannot be created", "send the statement from a scheduler, such as cron"),
    ("role", "roles have no options", ACCESS),
    ("user", "users have a password and attributes only", ACCESS),
    ("group", "groups are roles", ACCESS),
    ("policy", "the syntax differs", "write `CREATE ROW POLICY name ON table FOR role USING (condition)`"),
    ("rule", "rules cannot be created", "write the query into a view"),
    ("extension", "there are no extensions", BUILT_IN),
    ("language", "there are no procedural languages", BUILT_IN),
    ("secret", "secrets are replaced as a whole", "use `CREATE OR REPLACE SECRET`"),
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
