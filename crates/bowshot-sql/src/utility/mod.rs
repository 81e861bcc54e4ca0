//! Statements that ask about the server and the session, or steer the session: SHOW, DESCRIBE, SUMMARIZE, USE, SET, PREPARE,
//! KILL, cursors and their like.

mod cursors;
pub(crate) mod describe;
mod kill;
mod no_op;
mod pragma;
mod prepare;
mod session;
mod set;
mod show;
pub(crate) mod unsupported;

pub use pragma::Pragma;
pub use session::{Assignment, CursorStatement, Discarded, Killed, SessionStatement};
pub use set::join_path;
pub use show::{RowFilter, Show, Shown};

use crate::dialect::DialectName;
use crate::explain;
use crate::sqlparser_statement::sql_statement;
use crate::statement::{Read, Statement};
use crate::statement_tokens::StatementTokens;
use crate::tokens::word;
use bowshot_api::Result;
use sqlparser::ast::{Expr, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::TokenWithSpan;

/// A statement about the server or the session.
#[derive(Debug, Clone)]
pub enum Utility {
    /// `SHOW …`
    Show(Show),
    /// The columns of a query.
    DescribeQuery(Box<Statement>),
    /// The columns of a table, or those that have this name.
    DescribeTable { table: ObjectName, column: Option<String> },
    /// `SUMMARIZE`: statistics of the columns of a query, which is `SELECT * FROM table` of a table.
    Summarize {
        /// The table, which has to be there.
        table: Option<ObjectName>,
        query: Box<Statement>,
    },
    /// `PRAGMA …`
    Pragma(Pragma),
    /// What the session itself does.
    Session(SessionStatement),
    /// `USE name`
    Use(ObjectName),
    /// What is done with a cursor.
    Cursor(CursorStatement),
    /// `EXECUTE name (values)`
    Execute { name: String, values: Vec<Expr> },
    /// `ANALYZE t`: there is nothing to do for a table that is there.
    Analyze(ObjectName),
    /// `CREATE INDEX … ON t`: the same.
    CreateIndex(ObjectName),
    /// `CHECK TABLE t, …`
    CheckTables(Vec<ObjectName>),
}

/// Who reads the statement that begins so; `None` if it is none of these.
pub(crate) fn reader(words: &StatementTokens<'_>) -> Option<Read> {
    let [first, second, third] = [0, 1, 2].map(|n| words.peek_nth(n).unwrap_or_default());
    let dialect = words.dialect().name();
    Some(match first.as_str() {
        "show" if second == "create" && !show::CREATED.contains(&third.as_str()) => return None,
        "show" => show::read,
        "use" => use_schema,
        "set" => set::read,
        "reset" => set::read_reset,
        "describe" | "desc" => describe::read,
        "explain" => explain::read,
        "summarize" => describe::read_summarize,
        "pragma" => pragma::read,
        "prepare" => prepare::read,
        "execute" => prepare::read_execute,
        "deallocate" => prepare::read_deallocate,
        "drop" if second == "prepare" => prepare::read_deallocate,
        "discard" => prepare::read_discard,
        "kill" => kill::read,
        "declare" | "fetch" | "move" | "close" => cursors::read,
        "analyze" | "analyse" | "checkpoint" => no_op::read,
        "check" if second == "table" && dialect == DialectName::MySql => no_op::read_check,
        "create" if second == "index" => no_op::read_create_index,
        "drop" if second == "index" => no_op::read_drop_index,
        // Expressions that are computed: there are no procedural languages.
        "do" if dialect == DialectName::MySql => computed,
        // Nobody listens. Pools of connections say it when one is given back.
        "unlisten" if dialect == DialectName::Postgres => nothing,
        _ => return None,
    })
}

/// `USE schema`, `USE catalog`, `USE catalog.schema`.
fn use_schema(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("use");
    // A word before the name, unless it is the name.
    if words.peek_nth(1).is_some() {
        let _ = words.take_any(&["catalog", "database", "schema"]);
    }
    let name = words.name()?;
    words.end()?;
    Ok(Statement::Utility(Utility::Use(name)))
}

fn computed(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("do");
    let (rest, text) = words.into_rest();
    let select = TokenWithSpan::wrap(word("SELECT", Keyword::SELECT));
    sql_statement(std::iter::once(select).chain(rest).collect(), text).map(Statement::Sql)
}

fn nothing(_: StatementTokens<'_>) -> Result<Statement> {
    Ok(session(SessionStatement::Nothing))
}

fn session(statement: SessionStatement) -> Statement {
    Statement::Utility(Utility::Session(statement))
}
