//! All kinds of statements, and the keywords by which those that `sqlparser` does not parse are recognised.

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
use crate::sqlparser_statement::sql_statement;
use crate::statement_tokens::{SourceText, StatementTokens};
use crate::transaction::{self, TransactionStatement};
use crate::utility::{self, Utility, unsupported};
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
    /// `OPTIMIZE`, `VACUUM`, `REFRESH MATERIALIZED VIEW`, `ALTER TABLE … ADD PARTITION FIELD`, `… CREATE TAG`
    Maintenance(MaintenanceStatement),
    /// `CREATE PIPE`, `ALTER PIPE`, `DROP PIPE`
    Pipe(PipeStatement),
    /// What asks about the server and the session, or steers the session.
    Utility(Utility),
}

/// Reads a statement whose first words are known.
pub(crate) type Read = fn(StatementTokens<'_>) -> Result<Statement>;

pub(crate) fn read(tokens: Vec<TokenWithSpan>, text: SourceText<'_>) -> Result<Statement> {
    let words = StatementTokens::new(tokens, text);
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
pub(crate) fn reader(words: &StatementTokens<'_>) -> Result<Option<Read>> {
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
            return if utility.is_some() { Ok(utility) } else { unsupported::check(words).map(|()| None) };
        }
    };
    Ok(Some(read))
}
