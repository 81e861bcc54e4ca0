//! Parts of a statement that the values of a connection take the place of: system and user variables, the number of the
//! connection, and SHOW of objects that Bowshot does not have.

use super::{quoted_name, tokens};
use crate::source_tokens::{SourceToken, SourceTokens};
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;
use std::ops::Range;

/// A part that a value takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePart {
    /// Its bytes.
    pub span: Range<usize>,
    pub source: ValueSource,
    /// Whether it is an item of a SELECT without an alias: its name is the text of the client.
    pub is_item: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// A system variable, without its scope and in lower case.
    System(String),
    /// A variable of the user, in lower case.
    User(String),
    /// `FOUND_ROWS()`
    FoundRows,
    /// `CONNECTION_ID()`
    ConnectionId,
    /// A string as it is written, behind the name of its character set.
    Text(String),
}

/// The parts of a statement in their order. User variables that the statement itself assigns are none.
pub fn value_parts(sql: &str) -> Vec<ValuePart> {
    let lower = sql.to_ascii_lowercase();
    if !["@", "connection_id", "found_rows", "_utf8"].iter().any(|mark| lower.contains(mark)) {
        return Vec::new();
    }
    let assigned = assigned(sql);
    let mut tokens = tokens(sql);
    let mut position =
        TokenPosition { is_select: tokens.peek().is_some_and(|first| first.is("select")), depth: 0 };
    let mut before: Option<SourceToken<'_>> = None;
    let mut parts = Vec::new();
    loop {
        let found = source_ahead(&mut tokens, before.as_ref());
        let Some(mut last) = tokens.next() else { return parts };
        match found.filter(|(source, _)| !is_assigned(source, &assigned)) {
            None => position.pass(&last),
            Some((source, count)) => {
                let start = last.range().start;
                last = tokens.by_ref().take(count - 1).last().unwrap_or(last);
                let is_item = position.is_item(before.as_ref(), tokens.peek());
                parts.push(ValuePart { span: start..last.range().end, source, is_item });
            }
        }
        before = Some(last);
    }
}

const INTRODUCERS: [&str; 3] = ["_utf8mb4", "_utf8mb3", "_utf8"];

/// The value that replaces the next tokens, and how many.
fn source_ahead(
    tokens: &mut SourceTokens<'_>,
    before: Option<&SourceToken<'_>>,
) -> Option<(ValueSource, usize)> {
    let is_call = tokens.nth_is(1, &Token::LParen) && tokens.nth_is(2, &Token::RParen);
    let text = tokens.peek_nth(1).filter(|next| next.string().is_some()).map(|next| next.text);
    let token = tokens.peek()?;
    if token.is_variable() {
        // A single `@` begins an operator.
        let is_user = || token.text != "@" && !before.is_some_and(|before| is_account(before, token));
        return if token.text.starts_with("@@") {
            Some((ValueSource::System(system_name(token.text)), 1))
        } else {
            is_user().then(|| (ValueSource::User(user_name(token.text)), 1))
        };
    }
    if is_call && token.is("found_rows") {
        return Some((ValueSource::FoundRows, 3));
    }
    if is_call && token.is("connection_id") {
        return Some((ValueSource::ConnectionId, 3));
    }
    // All texts are UTF-8, so such introducers have no effect (MySQL manual, "Character Set Introducers").
    let is_introducer = INTRODUCERS.iter().any(|introducer| token.is(introducer));
    text.filter(|_| is_introducer).map(|text| (ValueSource::Text(text.to_owned()), 2))
}

/// The variables in `@name := …`.
fn assigned(sql: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if sql.contains(":=") {
        let mut tokens = tokens(sql);
        while let Some(token) = tokens.next() {
            if token.is_variable() && tokens.nth_is(0, &Token::Assignment) {
                names.insert(user_name(token.text));
            }
        }
    }
    names
}

fn is_assigned(source: &ValueSource, assigned: &BTreeSet<String>) -> bool {
    matches!(source, ValueSource::User(name) if assigned.contains(name))
}

/// Whether they are the two parts of an account: `user@host`.
fn is_account(user: &SourceToken<'_>, host: &SourceToken<'_>) -> bool {
    matches!(user.token, Token::Word(_) | Token::SingleQuotedString(_) | Token::DoubleQuotedString(_))
        && user.range().end == host.range().start
}

/// The position of a token in a statement.
struct TokenPosition {
    /// In the list of a SELECT.
    is_select: bool,
    /// The depth of parentheses.
    depth: i64,
}

impl TokenPosition {
    fn pass(&mut self, token: &SourceToken<'_>) {
        self.depth += token.depth();
        self.is_select &= !token.is("from");
    }

    fn is_item(&self, before: Option<&SourceToken<'_>>, next: Option<&SourceToken<'_>>) -> bool {
        let begins = before.is_some_and(|before| before.is("select") || before.token == Token::Comma);
        let ends = next.is_none_or(|next| {
            next.token == Token::Comma || ["from", "limit", "where", "union"].iter().any(|word| next.is(word))
        });
        begins && ends && self.is_select && self.depth == 0
    }
}

/// The name of a system variable in lower case, without its scope: `@@session.sql_mode` is `sql_mode`.
pub(super) fn system_name(variable: &str) -> String {
    let name = variable.trim_start_matches('@').replace('`', "").to_ascii_lowercase();
    match name.split_once('.') {
        Some(("session" | "global" | "local" | "persist" | "persist_only", name)) => name.to_owned(),
        _ => name,
    }
}

/// The name of a variable in lower case, without its `@` and quotes.
pub(super) fn user_name(text: &str) -> String {
    let name = text.trim_start_matches('@');
    name.trim_matches(['`', '\'', '"']).to_lowercase()
}

/// Objects that Bowshot does not have, as SHOW names them, and the columns of MySQL's result.
const NONE: &[(&[&str], &[&str])] = &[
    (&["function", "status"], ROUTINES),
    (&["procedure", "status"], ROUTINES),
    (
        &["triggers"],
        &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    (
        &["events"],
        &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Starts",
            "Ends",
            "Status",
            "Originator",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    (&["plugins"], &["Name", "Status", "Type", "Library", "License"]),
    (&["open", "tables"], &["Database", "Table", "In_use", "Name_locked"]),
    (&["profiles"], &["Query_ID", "Duration", "Query"]),
    (&["privileges"], &["Privilege", "Context", "Comment"]),
    (&["master", "status"], &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]),
    (&["slave", "status"], &["Slave_IO_State", "Master_Host", "Master_User", "Master_Port"]),
    (&["replica", "status"], &["Replica_IO_State", "Source_Host", "Source_User", "Source_Port"]),
    (&["binary", "logs"], &["Log_name", "File_size", "Encrypted"]),
    (&["slave", "hosts"], &["Server_id", "Host", "Port", "Master_id"]),
];

const ROUTINES: &[&str] = &[
    "Db",
    "Name",
    "Type",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

/// Whether the text begins with SELECT, as most do: nothing that begins with SHOW does.
fn is_select(sql: &str) -> bool {
    sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"))
}

/// `SHOW COUNT(*) WARNINGS`, `SHOW COUNT(*) ERRORS`: `warning` or `error`.
pub fn counted_conditions(sql: &str) -> Option<&'static str> {
    if is_select(sql) {
        return None;
    }
    let mut words = tokens(sql);
    if !words.next()?.is("show") || !words.next()?.is("count") {
        return None;
    }
    let what = words.last()?;
    if what.is("errors") { Some("error") } else { what.is("warnings").then_some("warning") }
}

/// `SHOW` of objects that Bowshot does not have, as a query without rows.
pub fn show_without_rows(sql: &str) -> Option<String> {
    if is_select(sql) {
        return None;
    }
    let mut words = tokens(sql);
    if !words.next()?.is("show") {
        return None;
    }
    let (mut first, mut second) = (words.next()?, words.next());
    if first.is("full") || first.is("extended") {
        (first, second) = (second?, words.next());
    }
    let (_, columns) = NONE.iter().find(|(names, _)| {
        names.first().is_some_and(|name| first.is(name))
            && names.get(1).is_none_or(|name| second.as_ref().is_some_and(|second| second.is(name)))
    })?;
    let items: Vec<String> = columns.iter().map(|name| format!("'' AS {}", quoted_name(name))).collect();
    Some(format!("SELECT {} LIMIT 0", items.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_scope() {
        for (name, expected) in [
            ("@@SQL_MODE", "sql_mode"),
            ("@@session.`sql_mode`", "sql_mode"),
            ("@@global.x", "x"),
            ("@@a.b", "a.b"),
            ("wait_timeout", "wait_timeout"),
        ] {
            assert_eq!(system_name(name), expected);
        }
    }

    #[test]
    fn variables_of_a_statement_itself_have_no_value_yet() {
        let sources = |sql| value_parts(sql).into_iter().map(|part| part.source).collect::<Vec<_>>();
        assert_eq!(sources("SELECT @a := 1, @A, @b"), [ValueSource::User("b".to_owned())]);
        assert_eq!(sources("CREATE USER a@localhost, 'b'@`x`"), []);
        assert_eq!(sources("SELECT@@x"), [ValueSource::System("x".to_owned())]);
    }

    #[test]
    fn missing_objects_are_listed_without_rows() {
        for (sql, expected) in [
            (
                "SHOW FULL MASTER STATUS",
                Some(
                    "SELECT '' AS `File`, '' AS `Position`, '' AS `Binlog_Do_DB`, '' AS `Binlog_Ignore_DB` LIMIT 0",
                ),
            ),
            ("SHOW MASTER LOGS", None),
            ("SHOW TABLES", None),
            ("SHOW", None),
        ] {
            assert_eq!(show_without_rows(sql).as_deref(), expected, "{sql}");
        }
        assert_eq!(counted_conditions("show count(*) errors"), Some("error"));
        assert_eq!(counted_conditions("show count(*) tables"), None);
    }
}
