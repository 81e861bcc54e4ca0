//! The statement for the engine: values of the connection take the place of variables, and SHOW of objects that Bowshot does not
//! have becomes a query without rows.

use crate::status::Failure;
use crate::user_variables::UserVariables;
use crate::variables::{ConnectionState, literal};
use bowshot_api::Session;
use bowshot_sql::mysql::{ValueSource, counted_conditions, quoted_name, show_without_rows, value_parts};
use std::borrow::Cow;
use std::collections::HashMap;

/// The statement for the engine.
///
/// # Errors
/// For an unknown system variable, and for user variables in a prepared statement.
pub(crate) fn rewritten<'a>(
    sql: &'a str,
    session: &dyn Session,
    (state, users): (ConnectionState, Option<&UserVariables>),
) -> Result<Cow<'a, str>, Failure> {
    if let Some(name) = counted_conditions(sql) {
        let count = if name == "error" { state.errors } else { state.warnings };
        return Ok(Cow::Owned(format!("SELECT {count} AS `@@session.{name}_count`")));
    }
    if let Some(query) = show_without_rows(sql) {
        return Ok(Cow::Owned(query));
    }
    let parts = value_parts(sql);
    if parts.is_empty() {
        return Ok(Cow::Borrowed(sql));
    }
    // System variables that have been read already.
    let mut known: HashMap<String, String> = HashMap::new();
    let (mut out, mut copied) = (String::new(), 0);
    for part in parts {
        out.push_str(sql.get(copied..part.span.start).unwrap_or_default());
        match part.source {
            ValueSource::System(name) => {
                let value = match known.get(&name) {
                    Some(value) => value.clone(),
                    None => literal(&name, session, state)?,
                };
                out.push_str(&value);
                known.insert(name, value);
            }
            ValueSource::User(name) => out.push_str(&users.ok_or_else(no_users)?.literal(&name)),
            ValueSource::FoundRows if users.is_none() => return Err(no_found_rows()),
            ValueSource::FoundRows => out.push_str(&state.found.to_string()),
            ValueSource::ConnectionId => out.push_str(&state.connection.to_string()),
            ValueSource::Text(text) => out.push_str(&text),
        }
        if part.is_item {
            out.push_str(" AS ");
            out.push_str(&quoted_name(sql.get(part.span.clone()).unwrap_or_default()));
        }
        copied = part.span.end;
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

fn no_users() -> Failure {
    Failure::unsupported("user variables are not supported in prepared statements")
        .with_hint("pass the value as a parameter")
}

fn no_found_rows() -> Failure {
    Failure::unsupported("FOUND_ROWS() is not supported in prepared statements")
        .with_hint("send it as a statement by itself")
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
        let state =
            ConnectionState { autocommit: false, ..ConnectionState::new(7, LISTEN_PORT, &Limits::default()) };
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
            ("SELECT @@max_allowed_packet", "SELECT 4194304 AS `@@max_allowed_packet`"),
            ("SELECT @@max_connections", "SELECT 10000 AS `@@max_connections`"),
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
        let found = rewritten(
            &sql,
            session.as_ref(),
            (ConnectionState::new(1, LISTEN_PORT, &Limits::default()), None),
        )
        .unwrap();
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
