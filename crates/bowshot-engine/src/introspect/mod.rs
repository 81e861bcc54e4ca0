//! Statements that ask about the server and the session, or steer the session: SHOW, DESCRIBE, SUMMARIZE, USE, SET, PREPARE,
//! KILL and their like; and what they ask: `information_schema`, `pg_catalog`, the functions that tell who and where.
//!
//! ```text
//! text ─► recognised, by its first words ─┬─► Rows: a query over information_schema and system       (show, pragma)
//!                                         ├─► Act: something that the session does                    (set, kill, …)
//!                                         ├─► Cursor: what is done with a cursor; its query is planned    (cursors)
//!                                         ├─► Instead: another text that means the same               (explain)
//!                                         ├─► Describe, Summarize: the query is planned first         (describe, summarize)
//!                                         ├─► Execute: the named statement with values in it          (prepare)
//!                                         └─► a refusal with its reason                               (refuse)
//! ```
//!
//! Nothing here changes a table, and nothing of it applies to scratch sessions.

mod asked;
mod cursors;
pub(crate) mod describe;
mod explain;
mod kill;
mod parse;
mod pragma;
mod prepare;
mod refuse;
mod set;
mod show;
mod show_keys;
mod show_names;
mod show_server;
mod show_tables;
pub(crate) mod summarize;
mod use_names;

pub(crate) use asked::Asked;

use crate::statement::session::{CursorStatement, SessionStatement};
use bowshot_api::Result;
use bowshot_system_catalog::client::Flavour;
use datafusion::sql::parser::Statement as Parsed;
use parse::Words;

/// What stands in the place of a statement.
#[derive(Debug)]
pub(crate) enum Expanded {
    /// A query over tables of our own.
    Rows(Box<Parsed>),
    /// Something that the session does.
    Act(SessionStatement),
    /// Something that is done with a cursor.
    Cursor(CursorStatement),
    /// A text that means the same.
    Instead(String),
    /// The columns of the query in this text.
    Describe(String),
    /// Statistics of the columns of the query in this text.
    Summarize(String),
    /// A statement that had a name, with its values.
    Execute(Box<Parsed>),
}

/// Whether a statement begins as those of this room do.
pub(crate) fn begins_here(sql: &str) -> bool {
    let [first, _] = bowshot_sql::first_words(sql);
    FIRST_WORDS.contains(&first.as_str())
}

/// The statement in the form in which it can be planned; `None` when it is planned as it is.
///
/// # Errors
/// `Syntax` for an incomplete one, `NotFound` for names in it, `Unsupported` with the reason.
pub(crate) fn recognise(sql: &str, asked: &Asked<'_>) -> Result<Option<Expanded>> {
    let [first, second] = bowshot_sql::first_words(sql);
    let Some(mut words) = Words::of(sql, asked.dialect, asked.recursion) else { return Ok(None) };
    // The tokenizer may see another first word: what a comment is differs.
    if !words.take(&first) {
        return Ok(None);
    }
    match first.as_str() {
        "show" => show::recognise(words, asked),
        "use" => use_names::recognise(words, asked).map(Some),
        "set" | "reset" => set::recognise(words, &first).map(Some),
        "describe" | "desc" | "explain" => {
            if let Some(explained) = explain::recognise(sql, &first, asked)? {
                return Ok(Some(explained));
            }
            describe::recognise(words, &first, asked)
        }
        "summarize" => summarize::recognise(words, asked).map(Some),
        "pragma" => pragma::recognise(words, asked).map(Some),
        "prepare" | "execute" | "deallocate" | "discard" => prepare::recognise(words, &first, asked),
        "kill" => kill::recognise(words).map(Some),
        "declare" | "fetch" | "move" | "close" => cursors::recognise(words, &first).map(Some),
        "analyze" | "analyse" | "checkpoint" => refuse::harmless(words, asked).map(Some),
        "check" if second == "table" && asked.flavour() == Flavour::MySql => {
            refuse::check(words, asked).map(Some)
        }
        // Expressions that are computed: there are no procedural languages.
        "do" if asked.flavour() == Flavour::MySql => {
            Ok(Some(Expanded::Instead(format!("SELECT {}", words.rest()))))
        }
        // Without a table: old versions go by themselves, in the background.
        "vacuum" => Ok(Some(Expanded::Act(SessionStatement::Nothing))),
        "unlisten" if asked.flavour() == Flavour::Postgres => {
            // Nobody listens. Pools of connections say it when one is given back.
            Ok(Some(Expanded::Act(SessionStatement::Nothing)))
        }
        "drop" if second == "prepare" => prepare::recognise(words, "deallocate", asked),
        "create" | "drop" if second == "index" => refuse::index(words, &first, asked).map(Some),
        _ => refuse::refused(words, &first).map_or(Ok(None), Err),
    }
}

/// Words that a statement of this room may begin with.
const FIRST_WORDS: &[&str] = &[
    "alter",
    "analyse",
    "analyze",
    "attach",
    "check",
    "checkpoint",
    "close",
    "cluster",
    "create",
    "deallocate",
    "declare",
    "desc",
    "describe",
    "detach",
    "discard",
    "do",
    "drop",
    "execute",
    "explain",
    "export",
    "fetch",
    "flush",
    "force",
    "grant",
    "handler",
    "import",
    "install",
    "kill",
    "listen",
    "load",
    "lock",
    "move",
    "notify",
    "pragma",
    "prepare",
    "reassign",
    "reindex",
    "reset",
    "revoke",
    "security",
    "set",
    "show",
    "summarize",
    "unlisten",
    "unlock",
    "use",
    "vacuum",
];
