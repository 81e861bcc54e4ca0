//! What a statement is: [`parse`](crate::parse) gives one of these. Statements that `sqlparser` does not read are read here.

use crate::access::{self, AccessStatement};
use crate::cache::{self, CacheStatement};
use crate::copy::{self, CopyStatement};
use crate::database::{self, DatabaseStatement};
use crate::explain::Explain;
use crate::function::{self, FunctionStatement};
use crate::maintenance::{self, MaintenanceStatement};
use crate::model::{self, ModelStatement};
use crate::pipe::{self, PipeStatement};
use crate::secret::{self, SecretStatement};
use crate::sql_statement::sql_statement;
use crate::statement_parser::{SourceText, StatementParser};
use crate::transaction::{self, TransactionStatement};
use crate::utility::{self, Utility, refused};
use bowshot_api::Result;
use sqlparser::ast;
use sqlparser::tokenizer::TokenWithSpan;

/// One statement, as it was written but for [`crate::rewrite`].
#[derive(Debug, Clone)]
pub enum Statement {
    /// A query, a change of rows, a definition: all that `sqlparser` reads.
    Sql(Box<ast::Statement>),
    /// `EXPLAIN` of such a statement.
    Explain(Explain),
    /// `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT` and their like.
    Transaction(TransactionStatement),
    /// `COPY`, `INSERT INTO FILES`
    Copy(CopyStatement),
    /// Users, roles, rights, policies and tokens.
    Access(Box<AccessStatement>),
    /// `CREATE SECRET`, `DROP SECRET`
    Secret(SecretStatement),
    /// `ATTACH`, `DETACH`
    Database(DatabaseStatement),
    /// `CALL result_cache_…`, `CALL join_cache_…`
    Cache(CacheStatement),
    /// `CREATE MODEL`, `DROP MODEL`
    Model(ModelStatement),
    /// `CREATE FUNCTION`, `CREATE MACRO`, `DROP FUNCTION`
    Function(FunctionStatement),
    /// `OPTIMIZE`, `VACUUM`, `REFRESH MATERIALIZED VIEW`
    Maintenance(MaintenanceStatement),
    /// `CREATE PIPE`, `ALTER PIPE`, `DROP PIPE`
    Pipe(PipeStatement),
    /// What asks about the server and the session, or steers the session.
    Utility(Utility),
}

/// Reads a statement whose first words are known.
pub(crate) type Read = fn(StatementParser<'_>) -> Result<Statement>;

/// The statement of tokens.
pub(crate) fn read(tokens: Vec<TokenWithSpan>, text: SourceText<'_>) -> Result<Statement> {
    let words = StatementParser::new(tokens, text);
    if let Some(read) = reader(&words)? {
        return read(words);
    }
    let (tokens, text) = words.into_rest();
    let statement = sql_statement(tokens, text)?;
    let transaction = transaction::read(&statement);
    Ok(transaction.map_or_else(|| Statement::Sql(statement), Statement::Transaction))
}

/// Who reads the statement that begins so; `None` where `sqlparser` does.
///
/// # Errors
/// `Unsupported` for statements that there are none of here.
pub(crate) fn reader(words: &StatementParser<'_>) -> Result<Option<Read>> {
    let [first, second] = [0, 1].map(|n| words.peek_nth(n).unwrap_or_default());
    let read: Read = match first.as_str() {
        _ if copy::begins(words) => |words| copy::read(words).map(Statement::Copy),
        _ if maintenance::begins(words) => |words| maintenance::read(words).map(Statement::Maintenance),
        "call" if cache::begins(&second) => |words| cache::read(words).map(Statement::Cache),
        "attach" | "detach" => |words| database::read(words).map(Statement::Database),
        _ if secret::begins(words) => |words| secret::read(words).map(Statement::Secret),
        _ if model::begins(words) => |words| model::read(words).map(Statement::Model),
        _ if function::begins(words) => |words| function::read(words).map(Statement::Function),
        _ if pipe::begins(words) => |words| pipe::read(words).map(Statement::Pipe),
        _ if access::begins(words) => {
            |words| access::read(words).map(|statement| Statement::Access(Box::new(statement)))
        }
        _ => {
            let utility = utility::reader(words);
            return if utility.is_some() { Ok(utility) } else { refused::check(words).map(|()| None) };
        }
    };
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, DialectName, parse};

    /// Who reads the one statement of a text, or how `sqlparser` understands it.
    fn shown(sql: &str, dialect: DialectName) -> Result<String> {
        let mut statements = parse(sql, Dialect::new(dialect), 50)?;
        assert_eq!(statements.len(), 1, "{sql}");
        Ok(match statements.remove(0) {
            Statement::Sql(statement) => statement.to_string(),
            Statement::Explain(explain) => format!("explain {}", explain.statement),
            Statement::Transaction(_) => "transaction".to_owned(),
            Statement::Copy(_) => "copy".to_owned(),
            Statement::Access(_) => "access".to_owned(),
            Statement::Secret(_) => "secret".to_owned(),
            Statement::Database(_) => "database".to_owned(),
            Statement::Cache(_) => "cache".to_owned(),
            Statement::Model(_) => "model".to_owned(),
            Statement::Function(_) => "function".to_owned(),
            Statement::Maintenance(_) => "maintenance".to_owned(),
            Statement::Pipe(_) => "pipe".to_owned(),
            Statement::Utility(_) => "utility".to_owned(),
        })
    }

    #[test]
    fn the_first_words_tell_who_reads_a_statement() {
        for (sql, expected) in [
            ("; ;/* c */ GRANT -- d\n SELECT ON t TO r;", "access"),
            ("ALTER MATERIALIZED VIEW IF EXISTS a.b.c OWNER TO r", "access"),
            ("ALTER VIEW v RENAME TO w", "ALTER TABLE v RENAME TO w"),
            ("CREATE OR REPLACE PERSISTENT SECRET s (TYPE s3)", "secret"),
            ("CREATE OR REPLACE MODEL m FROM 'f'", "model"),
            ("CREATE OR REPLACE TEMP FUNCTION f() RETURNS INT RETURN 1", "function"),
            ("DROP MACRO IF EXISTS f", "function"),
            ("CREATE TABLE model (secret INT)", "CREATE TABLE model (secret INT)"),
            ("CREATE PIPE p AS COPY INTO t FROM 'in/*.csv'", "pipe"),
            ("CREATE TABLE pipe (a INT)", "CREATE TABLE pipe (a INT)"),
            ("VACUUM (ANALYZE)", "maintenance"),
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY v WITH DATA", "maintenance"),
            ("EXPLAIN REFRESH MATERIALIZED VIEW v", "maintenance"),
            ("ALTER MATERIALIZED VIEW a.b.c SET REFRESH EVERY '5 minutes'", "maintenance"),
            ("ALTER MATERIALIZED VIEW v SET REFRESH ON COMMIT", "maintenance"),
            (
                "CREATE MATERIALIZED VIEW IF NOT EXISTS a.v (x) REFRESH EVERY '5 minutes' AS SELECT 1",
                "CREATE MATERIALIZED VIEW IF NOT EXISTS a.v (x) WITH (\"\u{3}refresh\" = 'every 5 minutes') AS SELECT 1",
            ),
            ("CREATE MATERIALIZED VIEW refresh AS SELECT 1", "CREATE MATERIALIZED VIEW refresh AS SELECT 1"),
            ("INSERT INTO files (path = 'a.csv') SELECT 1", "copy"),
            ("INSERT INTO files (path) SELECT 1", "INSERT INTO files (path) SELECT 1"),
            ("EXPLAIN people", "utility"),
            ("EXPLAIN (ANALYZE off, FORMAT json) SELECT 1", "explain SELECT 1"),
            ("BEGIN READ ONLY, NOT DEFERRABLE", "transaction"),
            ("DROP DATABASE d FORCE", "DROP DATABASE d CASCADE"),
            ("SELECT 1 OFFSET 2 ROWS FETCH FIRST ($1) ROWS ONLY", "SELECT 1 LIMIT ($1) OFFSET 2 ROWS"),
            ("SELECT 1 FETCH NEXT (1 + (2)) ROW ONLY", "SELECT 1 LIMIT (1 + (2))"),
            ("ALTER TABLE a.t COMMENT = 'x';", "COMMENT ON TABLE a.t IS 'x'"),
            ("ALTER TABLE t COMMENT ''", "COMMENT ON TABLE t IS NULL"),
            ("ALTER TABLE comment RENAME TO t", "ALTER TABLE comment RENAME TO t"),
            ("SELECT 1 FOR UPDATE", "SELECT 1 FOR UPDATE"),
            ("SELECT 1 AS for", "SELECT 1 AS for"),
            ("SELECT 1 FETCH FIRST ROW ONLY", "SELECT 1 FETCH FIRST ROWS ONLY"),
            (
                "SELECT a ORDER BY a FETCH FIRST (2) ROWS WITH TIES",
                "SELECT a ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
            ),
            ("COMMENT ON CONSTRAINT C ON s.t IS 'x'", "COMMENT ON COLUMN s.t.\"\u{3}constraint c\" IS 'x'"),
            ("COMMENT ON CONSTRAINT \"C\" ON t IS NULL", "COMMENT ON COLUMN t.\"\u{3}constraint C\" IS NULL"),
            ("DROP TABLE force", "DROP TABLE force"),
            ("REPLACE INTO t VALUES (1)", "INSERT OR REPLACE INTO t VALUES (1)"),
            ("EXPLAIN SELECT a::STRUCT(b LIST(INT))", "explain SELECT a::STRUCT<b ARRAY<INT>>"),
            ("SELECT a::MAP<INT, LIST<INT>>", "SELECT a::Map(INT, ARRAY<INT>)"),
            (
                "EXPLAIN INSERT INTO t BY NAME SELECT 1 AS a",
                "explain INSERT INTO t (\"\u{3}by name\") SELECT 1 AS a",
            ),
        ] {
            assert_eq!(shown(sql, DialectName::Ansi).expect(sql), expected, "{sql}");
        }
        for sql in ["# c\nSHOW TABLES", "#\nGRANT SELECT ON t TO r", "DO 1 + 1"] {
            assert!(shown(sql, DialectName::MySql).is_ok(), "{sql}");
        }
        assert_eq!(shown("SHOW TABLES # c", DialectName::MySql).expect("is read"), "utility");
    }

    #[test]
    fn what_there_is_none_of_is_refused_with_a_reason() {
        for (sql, message) in [
            ("/* c */ LISTEN x", "LISTEN is not supported"),
            ("CREATE CONSTRAINT TRIGGER t", "CREATE TRIGGER is not supported"),
            ("DO $$ x $$", "no procedural languages"),
            ("ALTER MATERIALIZED VIEW v SET REFRESH ON", "`ON` was not expected"),
            ("ALTER MATERIALIZED VIEW v SET REFRESH EVERY '1 month'", "invalid interval `1 month`"),
            ("ALTER MATERIALIZED VIEW v SET REFRESH EVERY '10 ms'", "invalid interval `10 ms`"),
            ("CREATE TABLE t (a INT, CONSTRAINT __bowshot_x CHECK (a > 1))", "is a reserved name"),
            ("ALTER TABLE t ADD CONSTRAINT \"__Bowshot_y\" CHECK ('x')", "is a reserved name"),
            ("INSERT INTO t SELECT a FROM \"__Bowshot_Change\".\"target\"", "is a reserved name"),
        ] {
            let error = shown(sql, DialectName::Ansi).expect_err(sql).to_string();
            assert!(error.contains(message), "{sql}: {error}");
        }
        let text = "SELECT '__bowshot_change', __bowshot_x FROM t -- CONSTRAINT __bowshot_y";
        assert!(shown(text, DialectName::Ansi).is_ok());
    }
}
