//! Rewrites a statement for the engine: system and user variables and the number of the connection become values, and SHOW of
//! objects that Bowshot does not have becomes a query without rows.

use crate::status::Failure;
use crate::tokens::{Kind, Token, quoted_name, tokens};
use crate::user_variables::{UserVariables, user_name};
use crate::variables::{ConnectionState, bare, literal};
use bowshot_api::Session;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// The statement for the engine.
///
/// # Errors
/// For an unknown system variable, and for user variables in a prepared statement.
pub(crate) fn rewritten<'a>(
    sql: &'a str,
    session: &dyn Session,
    (state, users): (ConnectionState, Option<&UserVariables>),
) -> Result<Cow<'a, str>, Failure> {
    if let Some(answer) = count_of_conditions(sql, state).or_else(|| without_rows(sql)) {
        return Ok(Cow::Owned(answer));
    }
    let lower = sql.to_ascii_lowercase();
    if !["@", "connection_id", "found_rows", "_utf8"].iter().any(|mark| lower.contains(mark)) {
        return Ok(Cow::Borrowed(sql));
    }
    let tokens: Vec<Token<'_>> = tokens(sql).collect();
    let mut values =
        Values { session, state, user_variables: users, assigned: assigned(&tokens), known: HashMap::new() };
    let mut position =
        TokenPosition { is_select: tokens.first().is_some_and(|first| first.is("select")), depth: 0 };
    let mut out = String::new();
    let mut copied = 0;
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let Some((value, count)) = values.value_at(&tokens, index)? else {
            position.pass(token);
            index += 1;
            continue;
        };
        let end = tokens.get(index + count - 1).map_or(token.range(), Token::range).end;
        out.push_str(sql.get(copied..token.range().start).unwrap_or_default());
        out.push_str(&value);
        if position.is_item(&tokens, index, count) {
            let name = sql.get(token.range().start..end).unwrap_or_default();
            out.push_str(" AS ");
            out.push_str(&quoted_name(name));
        }
        copied = end;
        index += count;
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(sql));
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

const INTRODUCERS: [&str; 3] = ["_utf8mb4", "_utf8mb3", "_utf8"];

/// The sources of values.
struct Values<'a> {
    session: &'a dyn Session,
    state: ConnectionState,
    user_variables: Option<&'a UserVariables>,
    /// User variables that the statement itself assigns.
    assigned: BTreeSet<String>,
    /// System variables that have been read already.
    known: HashMap<String, String>,
}

impl Values<'_> {
    /// The value that replaces some tokens, and how many.
    fn value_at(&mut self, tokens: &[Token<'_>], at: usize) -> Result<Option<(String, usize)>, Failure> {
        let Some(token) = tokens.get(at) else { return Ok(None) };
        if token.kind == Kind::Variable && token.text.starts_with("@@") {
            return self.variable(bare(token.text)).map(|value| Some((value, 1)));
        }
        // A single `@` begins an operator.
        if token.kind == Kind::Variable && token.text != "@" && !is_host(tokens, at) {
            return Ok(self.own_variable(token)?.map(|value| (value, 1)));
        }
        let is_call = tokens.get(at + 1).is_some_and(|next| next.is_symbol('('))
            && tokens.get(at + 2).is_some_and(|next| next.is_symbol(')'));
        if is_call && token.is("found_rows") {
            if self.user_variables.is_none() {
                return Err(Failure::unsupported("FOUND_ROWS() has no value in prepared statements")
                    .with_hint("send it as a statement by itself"));
            }
            return Ok(Some((self.state.found.to_string(), 3)));
        }
        Ok(introduced(tokens, at).or_else(|| {
            (is_call && token.is("connection_id")).then(|| (self.state.connection.to_string(), 3))
        }))
    }

    /// The value of a user variable; `None` for one that the statement itself assigns.
    fn own_variable(&self, token: &Token<'_>) -> Result<Option<String>, Failure> {
        let name = user_name(token.text);
        if self.assigned.contains(&name) {
            return Ok(None);
        }
        match self.user_variables {
            Some(users) => Ok(Some(users.literal(&name))),
            None => Err(Failure::unsupported("variables of users have no values in prepared statements")
                .with_hint("pass the value as a parameter")),
        }
    }

    fn variable(&mut self, name: String) -> Result<String, Failure> {
        if let Some(known) = self.known.get(&name) {
            return Ok(known.clone());
        }
        let value = literal(&name, self.session, self.state)?;
        self.known.insert(name, value.clone());
        Ok(value)
    }
}

/// The variables in `@name := …`.
fn assigned(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let names = tokens.windows(3).filter_map(|three| match three {
        [name, colon, equals] if colon.is_symbol(':') && equals.is_symbol('=') => Some(name),
        _ => None,
    });
    names.filter(|name| name.kind == Kind::Variable).map(|name| user_name(name.text)).collect()
}

/// Whether it is the second part of an account: `user@host`.
fn is_host(tokens: &[Token<'_>], at: usize) -> bool {
    let (Some(before), Some(token)) = (at.checked_sub(1).and_then(|at| tokens.get(at)), tokens.get(at))
    else {
        return false;
    };
    let is_name = matches!(before.kind, Kind::Word | Kind::Quoted | Kind::Text);
    is_name && before.range().end == token.range().start
}

/// A string after the name of its character set.
fn introduced(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let (token, next) = (tokens.get(at)?, tokens.get(at + 1)?);
    // All texts are UTF-8, so such introducers have no effect (MySQL manual, "Character Set Introducers").
    let is_introducer = INTRODUCERS.iter().any(|introducer| token.is(introducer));
    (is_introducer && next.kind == Kind::Text).then(|| (next.text.to_owned(), 2))
}

/// The position of a token in a statement.
struct TokenPosition {
    /// In the list of a SELECT.
    is_select: bool,
    /// The depth of parentheses.
    depth: i64,
}

impl TokenPosition {
    fn pass(&mut self, token: &Token<'_>) {
        self.depth += i64::from(token.is_symbol('(')) - i64::from(token.is_symbol(')'));
        self.is_select &= !token.is("from");
    }

    /// Whether a value is an item of a SELECT without an alias: its name is the text of the client.
    fn is_item(&self, tokens: &[Token<'_>], from: usize, count: usize) -> bool {
        let before = from.checked_sub(1).and_then(|before| tokens.get(before));
        let begins = before.is_some_and(|before| before.is("select") || before.is_symbol(','));
        let ends = tokens.get(from + count).is_none_or(|next| {
            next.is_symbol(',') || ["from", "limit", "where", "union"].iter().any(|word| next.is(word))
        });
        begins && ends && self.is_select && self.depth == 0
    }
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

/// `SHOW COUNT(*) WARNINGS`, `SHOW COUNT(*) ERRORS`
fn count_of_conditions(sql: &str, state: ConnectionState) -> Option<String> {
    let mut words = tokens(sql);
    if !words.next()?.is("show") || !words.next()?.is("count") {
        return None;
    }
    let what = words.last()?;
    let (name, count) = if what.is("errors") {
        ("error", state.errors)
    } else if what.is("warnings") {
        ("warning", state.warnings)
    } else {
        return None;
    };
    Some(format!("SELECT {count} AS `@@session.{name}_count`"))
}

fn without_rows(sql: &str) -> Option<String> {
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
            && names.get(1).is_none_or(|name| second.is_some_and(|second| second.is(name)))
    })?;
    let items: Vec<String> = columns.iter().map(|name| format!("'' AS {}", quoted_name(name))).collect();
    Some(format!("SELECT {} LIMIT 0", items.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ListenPort;
    use crate::user_variables::UserValue;
    use bowshot_api::{Limits, Principal, Server};
    use bowshot_test_server::TestServer;

    const LISTEN_PORT: ListenPort = ListenPort { port: 3306, is_encrypted: false };

    async fn check(cases: &[(&str, &str)]) {
        let session =
            TestServer::open(Limits::default(), false).open_session(&Principal::anonymous()).await.unwrap();
        let state = ConnectionState { autocommit: false, ..ConnectionState::new(7, LISTEN_PORT) };
        let mut users = UserVariables::default();
        users.set("x", &UserValue::Text("it's".to_owned())).unwrap();
        for (sql, expected) in cases {
            let found = rewritten(sql, session.as_ref(), (state, Some(&users)));
            match found {
                Ok(found) => assert_eq!(found, *expected, "{sql}"),
                Err(failure) => assert_eq!(failure.message, *expected, "{sql}"),
            }
        }
    }

    #[tokio::test]
    async fn variables_become_values_with_the_names_that_clients_expect() {
        check(&[
            ("select 1", "select 1"),
            ("SELECT @@max_allowed_packet", "SELECT 67108864 AS `@@max_allowed_packet`"),
            ("SELECT @@socket", "SELECT NULL AS `@@socket`"),
            (
                "/* c */SELECT @@session.autocommit AS a, @@SQL_MODE b, @@tx_isolation",
                "/* c */SELECT 0 AS a, '' b, 'REPEATABLE-READ' AS `@@tx_isolation`",
            ),
            ("select @@version_comment limit 1", "select 'Bowshot' AS `@@version_comment` limit 1"),
            ("SELECT a FROM t WHERE b = @@autocommit", "SELECT a FROM t WHERE b = 0"),
            ("SELECT connection_id ( ), 1", "SELECT 7 AS `connection_id ( )`, 1"),
            ("SELECT found_rows()", "SELECT 0 AS `found_rows()`"),
            (
                "SELECT _utf8mb4'x', a FROM t WHERE b = _UTF8 'y' AND _utf8mb4 = 1",
                "SELECT 'x' AS `_utf8mb4'x'`, a FROM t WHERE b = 'y' AND _utf8mb4 = 1",
            ),
            ("SELECT (@@identity), @@port", "SELECT (0), 3306 AS `@@port`"),
            ("SELECT '@@x', @y, @X + 1", "SELECT '@@x', NULL AS `@y`, 'it''s' + 1"),
            ("SELECT @a := 1, @a, @`x`", "SELECT @a := 1, @a, 'it''s' AS `@``x```"),
            ("SELECT j @> '1', @ - 5", "SELECT j @> '1', @ - 5"),
            ("CREATE USER a@localhost, 'b'@`x`", "CREATE USER a@localhost, 'b'@`x`"),
            ("SELECT @@nothing", "unknown system variable 'nothing'"),
        ])
        .await;
    }

    #[tokio::test]
    async fn many_variables_are_no_more_work_than_one_by_one() {
        let session =
            TestServer::open(Limits::default(), false).open_session(&Principal::anonymous()).await.unwrap();
        let sql = format!("SELECT 1{}", ",@@autocommit".repeat(50_000));
        let found = rewritten(&sql, session.as_ref(), (ConnectionState::new(1, LISTEN_PORT), None)).unwrap();
        assert_eq!(found.matches(",1 AS `@@autocommit`").count(), 50_000);
    }

    #[tokio::test]
    async fn what_there_is_none_of_has_columns_and_no_rows() {
        let plugins =
            "SELECT '' AS `Name`, '' AS `Status`, '' AS `Type`, '' AS `Library`, '' AS `License` LIMIT 0";
        check(&[
            ("SHOW PLUGINS", plugins),
            ("show full plugins", plugins),
            ("SHOW TABLES", "SHOW TABLES"),
            ("SHOW FUNCTIONS", "SHOW FUNCTIONS"),
            ("SHOW COUNT(*) WARNINGS", "SELECT 0 AS `@@session.warning_count`"),
            ("SHOW", "SHOW"),
        ])
        .await;
    }
}
