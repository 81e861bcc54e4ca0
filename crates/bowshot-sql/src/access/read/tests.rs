//! Statements about access, as they are written.

use super::*;
use crate::Statement;
use crate::parse::read_one;

fn read(sql: &str) -> Result<Option<AccessStatement>> {
    Ok(match read_one(sql)? {
        Statement::Access(statement) => Some(*statement),
        _ => None,
    })
}

#[test]
fn statements_about_tables_of_such_names_are_left_alone() {
    for sql in [
        "SELECT 1",
        "CREATE TABLE role (a INT)",
        "CREATE TABLE mask AS SELECT 1",
        "DROP TABLE \"user\"",
        "DROP TABLE row",
        "CREATE VIEW grant_view AS SELECT 1",
    ] {
        assert_eq!(read(sql).expect(sql), None, "{sql}");
    }
}

#[test]
fn what_is_wrong_is_refused() {
    for sql in [
        "CREATE ROW POLICY p ON t USING region = 1",
        "CREATE MASK m ON t USING (null)",
        "GRANT SELECT ON t",
        "GRANT SELECT TO",
        "GRANT DELETE (a) ON t TO r",
        "GRANT UPDATE () ON t TO r",
        "GRANT UPDATE (a) ON SCHEMA s TO r",
        "GRANT SELECT ON t TO r CASCADE",
        "GRANT r TO s WITH GRANT OPTION",
        "REVOKE SELECT ON t FROM r WITH GRANT OPTION",
        "REVOKE GRANT OPTION FOR r FROM s",
        "REVOKE SELECT ON t FROM r CASCADE RESTRICT",
        "ALTER TABLE t OWNER TO",
        "ALTER TABLE t OWNER TO a, b",
        "CREATE ROLE",
        "GRANT SELECT ON t TO r EXTRA",
        "CREATE TOKEN",
        "CREATE TOKEN t EXPIRES",
        "CREATE TOKEN t EXPIRES '0 days'",
        "DROP TOKEN t x",
        "ALTER DEFAULT PRIVILEGES",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO r",
        "ALTER DEFAULT PRIVILEGES GRANT r TO s",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON SCHEMAS TO r",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA GRANT SELECT ON TABLES TO r",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES FROM r",
    ] {
        assert_eq!(read(sql).expect_err(sql).kind(), ErrorKind::Syntax, "{sql}");
    }
}

#[test]
fn passwords_do_not_come_back() {
    for sql in ["CREATE USER u PASSWORD 'a' hunter2", "ALTER USER u PASSWORD 'a' 'hunter2'"] {
        let error = read(sql).expect_err(sql);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
