//! Secrets are redacted by their place in the statement, and nothing else is.

use super::text::MAX_BYTES;
use super::*;
use crate::DialectName;

fn ansi() -> Dialect {
    Dialect::new(DialectName::Ansi)
}

fn shown(sql: &str) -> String {
    redact_secrets(sql, ansi()).into_owned()
}

#[test]
fn secrets_are_hidden_in_their_places_and_the_rest_stays() {
    for (sql, expected) in [
        ("create  user u password 'hush' ADMIN", "create  user u password '…' ADMIN"),
        ("/* x */ ALTER USER u WITH PASSWORD 'hush' -- y", "/* x */ ALTER USER u WITH PASSWORD '…' -- y"),
        ("CREATE USER IF NOT EXISTS u IDENTIFIED BY 'hush'", "CREATE USER IF NOT EXISTS u IDENTIFIED BY '…'"),
        ("ALTER USER password PASSWORD 'it''s hush'", "ALTER USER password PASSWORD '…'"),
        ("CREATE USER u PASSWORD hush ADMIN", "CREATE USER u PASSWORD '…' ADMIN"),
        ("CREATE USER u IDENTIFIED BY \"hush\"", "CREATE USER u IDENTIFIED BY '…'"),
        ("CREATE USER u PASSWORD 'hush' SET team = 'blue'", "CREATE USER u PASSWORD '…' SET team = 'blue'"),
        (
            "SELECT 'ä\n'; CREATE USER u PASSWORD 'hush'; SELECT 'b'",
            "SELECT 'ä\n'; CREATE USER u PASSWORD '…'; SELECT 'b'",
        ),
        (
            "CREATE SECRET lake (TYPE s3, SCOPE 's3://b', KEY_ID 'hush', SECRET 'hush')",
            "CREATE SECRET lake (TYPE s3, SCOPE 's3://b', KEY_ID '…', SECRET '…')",
        ),
        (
            "CREATE OR REPLACE SECRET \"Lake\"(session_token hush, TYPE s3)",
            "CREATE OR REPLACE SECRET \"Lake\"(session_token '…', TYPE s3)",
        ),
        ("CREATE -- c\nSECRET x (KEY_ID hush)", "CREATE -- c\nSECRET x (KEY_ID '…')"),
        ("EXPLAIN CREATE SECRET x (SECRET hush)", "EXPLAIN CREATE SECRET x (SECRET '…')"),
        ("PREPARE p AS CREATE SECRET x (SECRET $$hush$$)", "PREPARE p AS CREATE SECRET x (SECRET '…')"),
        (
            "ATTACH 'postgres://h/db' AS pg (TYPE postgres, USER 'u', PASSWORD 'hush')",
            "ATTACH 'postgres://h/db' AS pg (TYPE postgres, USER 'u', PASSWORD '…')",
        ),
        ("ATTACH 'postgres://u:hush@h/db' AS pg", "ATTACH '…' AS pg"),
        ("ATTACH \"postgres://u:hush@h/db\" AS pg", "ATTACH '…' AS pg"),
        ("ATTACH 'mysql://h/db' AS m (SECRET shop)", "ATTACH 'mysql://h/db' AS m (SECRET shop)"),
        ("SET s3_secret_access_key = 'hush'", "SET s3_secret_access_key = '…'"),
        ("SET SESSION a.auth_token TO hush", "SET SESSION a.auth_token TO '…'"),
        ("SET a.auth_token = concat('hush', ('hush')), b = 'x'", "SET a.auth_token = '…', b = 'x'"),
        ("SELECT set_config('a.auth_token', 'hush', false)", "SELECT set_config('a.auth_token', '…', false)"),
        ("SET search_path = 'secret'", "SET search_path = 'secret'"),
        ("CREATE OR REPLACE USER u PASSWORD 'hush'", "CREATE OR REPLACE USER u PASSWORD …"),
        (
            "COPY t TO 's3://b/f' (FORMAT csv, SECRET_ACCESS_KEY 'hush')",
            "COPY t TO 's3://b/f' (FORMAT csv, SECRET_ACCESS_KEY '…')",
        ),
        (
            "SELECT * FROM read_csv('s3://b/f', key_id => 'hush', sas_token := 'hush', password = 'hush')",
            "SELECT * FROM read_csv('s3://b/f', key_id => '…', sas_token := '…', password = '…')",
        ),
        (
            "SELECT f(secret => ('hush' || upper('hush')), a => 'x') FROM t WHERE (b = 'y')",
            "SELECT f(secret => ('…' || upper('…')), a => 'x') FROM t WHERE (b = 'y')",
        ),
        (
            "CREATE EXTERNAL TABLE t STORED AS csv LOCATION 's3://b' OPTIONS ('a.secret_key' 'hush', 'b' 'x')",
            "CREATE EXTERNAL TABLE t STORED AS csv LOCATION 's3://b' OPTIONS ('a.secret_key' '…', 'b' 'x')",
        ),
        ("SELECT * FROM read_csv('https://u:hush@h/f')", "SELECT * FROM read_csv('https://…@h/f')"),
        (
            "PREPARE p FROM 'ALTER USER u PASSWORD ''hush'' ADMIN'",
            "PREPARE p FROM 'ALTER USER u PASSWORD ''…'' ADMIN'",
        ),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
        assert_eq!(shown(expected), expected, "again");
        assert_eq!(sql != expected, holds_secrets(sql, ansi()), "{sql}");
    }
}

#[test]
fn statements_without_secrets_stay_whole() {
    for sql in [
        "DELETE FROM pay /* user set password */",
        "DELETE FROM pay WHERE note = 'create user x password' -- identified by",
        "DELETE FROM pay WHERE a = 'attach ://'",
        "DELETE FROM pay WHERE password = = 'x'",
        "DELETE FROM pay USING token t WHERE note = 'abfss://a@b/c'",
        "UPDATE secret s SET name = 'x' WHERE id = (SELECT password pw FROM t LIMIT 1)",
        "EXPLAIN ANALYZE DELETE FROM pay WHERE grant = 'x' OR identified = 'password'",
        "PREPARE p FROM 'DELETE FROM pay -- user password'",
        "CALL join_cache_warm('SELECT password FROM users WHERE name = ''x''')",
        "SELECT password, secret, user FROM create_log WHERE secret = 'x' AND key_id = $1",
        "SELECT password FROM t WHERE token IN ('a', 'b') OR f(password = 'x')",
        "UPDATE users SET password = 'x', created = 'y' WHERE user = 'z'",
        "EXPLAIN UPDATE users SET password = 'x' WHERE user = 'z'",
        "INSERT INTO users (password) VALUES ('x')",
        "CREATE TABLE secret (password TEXT DEFAULT 'x', a INT)",
        "CREATE OR REPLACE TABLE secret AS SELECT 'x' AS secret",
        "SELECT 'secret' AS a, 'my secret', 'x'",
        "SELECT * FROM system.secrets",
        "DROP SECRET lake",
        "CREATE ROLE r",
        "GRANT SELECT ON password TO \"user\"",
        "CREATE TOKEN t EXPIRES '30 days'",
        "(SELECT 'password')",
        "",
        ";;",
    ] {
        assert_eq!(shown(sql), sql);
        assert!(!holds_secrets(sql, ansi()), "{sql}");
    }
}

#[test]
fn of_what_nobody_understands_the_texts_are_hidden() {
    for (sql, expected) in [
        ("SELEC 'hush' FROM t", "SELEC '…' FROM t"),
        ("CRATE SECRT x (TYPE s3, SECRET E'hush')", "CRATE SECRT x (TYPE s3, SECRET '…')"),
        (
            "CRATE SECRT x (account_key\n\"hush\", KEY_ID hush)",
            "CRATE SECRT x (account_key\n'…', KEY_ID '…')",
        ),
        ("CREATE USER u PASWORD 'hush'", "CREATE USER u PASWORD '…'"),
        ("CREATE USER u PASSWORD 'a' hush", "CREATE USER u PASSWORD …"),
        ("CREATE ROLE r LOGIN PASSWORD 'hush' VALID UNTIL 'x'", "CREATE ROLE r LOGIN PASSWORD …"),
        ("CREATE SECRET x hush (TYPE s3)", "CREATE SECRET …"),
        ("CREATE SECRET 'hush' (", "CREATE SECRET …"),
        ("SET PASSWORD FOR u = 'hush'", "SET PASSWORD …"),
        ("GRANT ALL ON *.* TO u IDENTIFIED BY 'hush'", "GRANT ALL ON *.* TO u IDENTIFIED …"),
        ("ATTACH 'x' AS y (PASSWORD 'hush' 'hush')", "ATTACH '…' AS y (PASSWORD '…' '…')"),
        ("CREATE SERVER s OPTIONS (user 'hush', pwd hush)", "CREATE SERVER s OPTIONS (user '…', pwd '…')"),
        ("DELETE FROM pay WHERE password = 'hush", "DELETE FROM pay WHERE password = …"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
        assert_eq!(shown(expected), expected, "again");
    }
    // What follows a quote that is not closed may be anything.
    let open = shown("CREATE USER u PASSWORD 'it's hush'");
    assert!(open.starts_with("CREATE USER u PASSWORD …") && !open.contains("hush"), "{open}");
}

#[test]
fn dialects_have_texts_of_their_own() {
    let shown = |sql| redact_secrets(sql, Dialect::new(DialectName::MySql)).into_owned();
    for (sql, expected) in [
        ("CREATE USER u IDENTIFIED BY \"hush\"", "CREATE USER u IDENTIFIED BY '…'"),
        ("# c\nALTER USER u IDENTIFIED BY 'it\\'s hush'", "# c\nALTER USER u IDENTIFIED BY '…'"),
        ("DELETE FROM pay # user set password 'x'", "DELETE FROM pay # user set password 'x'"),
        ("CREATE /*! USER u IDENTIFIED BY 'hush' */", "CREATE  USER u IDENTIFIED BY '…' "),
        (
            "DELETE FROM pay WHERE f(secret => 'hush') /*! OR a */ = 'x'",
            "DELETE FROM pay WHERE f(secret => '…')  OR a  = 'x'",
        ),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
    }
}

#[test]
fn messages_repeat_secrets_or_not() {
    for (message, sql, expected) in [
        ("`ada` may not make users", "CREATE USER eve PASSWORD 'x' ADMIN", false),
        ("user `eve` already exists", "CREATE USER eve PASSWORD 'x'", false),
        ("expected: end of statement, found: hush", "CRATE SECRET x (KEY_ID Hush)", true),
        ("found: 'it''s hush' at line 1", "CREATE USER u PASSWORD E'it\\'s hu\\x73h' 1", true),
        ("found: '!!'", "COPY t TO 'f' (PASSWORD '!!')", true),
        ("column `hush` does not exist", "SELECT hush FROM t WHERE password = 'hush'", false),
    ] {
        assert_eq!(repeats_secrets(message, sql, ansi()), expected, "{sql}");
    }
}

#[test]
fn long_texts_are_read_once() {
    let part = "-- create\nCREATE OR REPLACE /* create one */ TABLE secret (a INT);";
    let script = part.repeat(20_000);
    assert!(shown(&script) == script);
    for part in ["create ", "create/*", "create/**/", "(", "CAST((SELECT ", "EXECUTE IMMEDIATE $a$"] {
        let long = format!("{} secret x (KEY_ID 'hush')", part.repeat(100_000));
        assert!(!shown(&long).contains("'hush'"), "{part}");
    }
    let long = shown(&format!("INSERT INTO users (password) VALUES ('{}')", "x".repeat(MAX_BYTES)));
    assert_eq!(long, "INSERT INTO users (password) VALUES (…");
}
