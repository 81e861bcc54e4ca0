//! `SHOW …`: which kind of thing is asked for, and which rows of it.

use super::Utility;
use crate::dialect::DialectName;
use crate::statement::Statement;
use crate::statement_tokens::StatementTokens;
use bowshot_api::Result;
use sqlparser::ast::{Expr, ObjectName};
use sqlparser::tokenizer::Token;

/// A SHOW statement.
#[derive(Debug, Clone)]
pub struct Show {
    pub shown: Shown,
    /// The schema or catalog in which they are; the one in force without it.
    pub within: Option<ObjectName>,
    pub filter: RowFilter,
}

/// Which rows are wanted.
#[derive(Debug, Clone)]
pub enum RowFilter {
    All,
    /// `LIKE 'pattern'`, in any case as MySQL has it.
    Like(String),
    /// `WHERE condition` over the columns that are shown.
    Where(Box<Expr>),
}

/// Kinds of things that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    Databases,
    Schemas,
    /// Tables of a schema, with their types if `full`.
    Tables {
        full: bool,
    },
    Views,
    Models,
    MaterializedViews,
    Pipes,
    AllTables,
    TableStatus,
    /// Columns of a table, with rights and comments if `full`.
    Columns {
        table: ObjectName,
        full: bool,
    },
    Keys(ObjectName),
    Functions,
    /// `SHOW ALL`
    Settings,
    Variables,
    Status,
    /// `SHOW WARNINGS`, `SHOW ERRORS`
    Warnings,
    /// `SHOW GRANTS`, of this user.
    Grants(Option<String>),
    /// `SHOW PROCESSLIST`
    Processes,
    Engines,
    Collations,
    /// `SHOW CHARACTER SET`
    CharacterSets,
    /// `SHOW CREATE TABLE`, `SHOW CREATE VIEW`
    CreateTable(ObjectName),
    /// `SHOW CREATE SCHEMA`
    CreateSchema(ObjectName),
    /// A setting, and what its column is called.
    Setting {
        name: &'static str,
        column: &'static str,
    },
    /// A setting, else a table, as DuckDB has it.
    Name(String),
}

impl Show {
    /// What is in force of them.
    pub(super) fn all(shown: Shown, filter: RowFilter) -> Self {
        Self { shown, within: None, filter }
    }
}

impl From<Show> for Statement {
    fn from(show: Show) -> Self {
        Self::Utility(Utility::Show(show))
    }
}

/// Kinds of things whose statements are shown.
pub(super) const CREATED: [&str; 4] = ["table", "view", "schema", "database"];

/// Reads a statement that begins with SHOW.
pub(super) fn read(mut words: StatementTokens<'_>) -> Result<Statement> {
    words.take("show");
    if words.take("create") {
        let is_table = words.take_any(&["table", "view"]);
        if !is_table {
            words.token();
            let _ = words.take_all(&["if", "not", "exists"]);
        }
        let name = words.name()?;
        words.end()?;
        let shown = if is_table { Shown::CreateTable(name) } else { Shown::CreateSchema(name) };
        return Ok(Show::all(shown, RowFilter::All).into());
    }
    let full = words.take_any(&["extended", "full"]);
    let _ = full && words.take("full");
    if !full && words.take_any(&["global", "session"]) && words.peek().as_deref() == Some("authorization") {
        let shown = Shown::Setting { name: "session_authorization", column: "session authorization" };
        return Ok(Show::all(shown, RowFilter::All).into());
    }
    let Some(shown) = words.word() else { return Err(words.unexpected()) };
    let shown = match shown.as_str() {
        "databases" | "catalogs" if words.dialect().name() == DialectName::MySql => Shown::Schemas,
        "databases" | "catalogs" => Shown::Databases,
        "schemas" => Shown::Schemas,
        "tables" => Shown::Tables { full },
        "views" => Shown::Views,
        "models" => Shown::Models,
        "materialized" if words.take("views") => Shown::MaterializedViews,
        "pipes" => Shown::Pipes,
        "all" if words.take("tables") => Shown::AllTables,
        "table" if words.take("status") => Shown::TableStatus,
        "columns" | "fields" => {
            Shown::Columns { table: table(&mut words, "write `SHOW COLUMNS FROM table`")?, full }
        }
        "index" | "indexes" | "indices" | "keys" => {
            Shown::Keys(table(&mut words, "write `SHOW INDEX FROM table`")?)
        }
        "functions" => Shown::Functions,
        "all" => Shown::Settings,
        "variables" => Shown::Variables,
        "status" => Shown::Status,
        "warnings" | "errors" => Shown::Warnings,
        "grants" => Shown::Grants(None),
        "processlist" => Shown::Processes,
        "engines" => Shown::Engines,
        "collation" => Shown::Collations,
        "charset" => Shown::CharacterSets,
        "character" if words.take("set") => Shown::CharacterSets,
        _ => return name(&shown, words).map(|shown| Show::all(shown, RowFilter::All).into()),
    };
    rows(shown, words).map(Statement::from)
}

/// What stands behind the kind of thing.
fn rows(mut shown: Shown, mut words: StatementTokens<'_>) -> Result<Show> {
    let mut within = None;
    match &mut shown {
        Shown::Schemas
        | Shown::Tables { .. }
        | Shown::Views
        | Shown::Models
        | Shown::MaterializedViews
        | Shown::TableStatus
            if words.take_any(&["from", "in"]) =>
        {
            within = Some(words.name()?);
        }
        // `SHOW FUNCTIONS 'pattern'` and `SHOW FUNCTIONS LIKE 'pattern'` are the same.
        Shown::Functions => {
            if let Some(pattern) = words.string() {
                words.end()?;
                return Ok(Show::all(shown, RowFilter::Like(pattern)));
            }
        }
        Shown::Warnings if words.take("limit") => words.skip_to_end(),
        Shown::Grants(about) if words.take("for") => {
            *about = grantee(&mut words);
            words.skip_to_end();
        }
        _ => {}
    }
    if matches!(shown, Shown::Warnings | Shown::Grants(_)) {
        words.end()?;
        return Ok(Show { shown, within, filter: RowFilter::All });
    }
    Ok(Show { shown, within, filter: filter(&mut words)? })
}

/// `FROM t [FROM s]`
fn table(words: &mut StatementTokens<'_>, form: &str) -> Result<ObjectName> {
    if !words.take_any(&["from", "in"]) {
        return Err(words.unexpected().with_hint(form));
    }
    let mut name = words.name()?;
    if words.take_any(&["from", "in"]) {
        let mut full = words.name()?;
        full.0.append(&mut name.0);
        name = full;
    }
    Ok(name)
}

/// A user. `CURRENT_USER` is who asks; what is behind a name is a host.
fn grantee(words: &mut StatementTokens<'_>) -> Option<String> {
    if words.take("current_user") {
        return None;
    }
    words.string().or_else(|| words.single().ok())
}

/// `SHOW name`: a setting, which may be called by several words, or a table.
fn name(first: &str, mut words: StatementTokens<'_>) -> Result<Shown> {
    let known = match first {
        "time" if words.take("zone") => Some(("time_zone", "time zone")),
        "transaction" if words.take_all(&["isolation", "level"]) => {
            Some(("transaction_isolation", "transaction_isolation"))
        }
        "names" => Some(("client_encoding", "client_encoding")),
        _ => None,
    };
    if let Some((name, column)) = known {
        words.end()?;
        return Ok(Shown::Setting { name, column });
    }
    let mut full = first.to_owned();
    while words.take_token(&Token::Period) {
        full.push('.');
        full.push_str(&words.single()?);
    }
    if words.at_end() {
        return Ok(Shown::Name(full));
    }
    Err(words.unexpected().with_hint(
        "SHOW takes DATABASES, SCHEMAS, TABLES, VIEWS, MODELS, PIPES, COLUMNS FROM t, FUNCTIONS, ALL, or the name of a setting",
    ))
}

/// `LIKE` and `WHERE` at the end of the statement.
fn filter(words: &mut StatementTokens<'_>) -> Result<RowFilter> {
    let filter = if words.take_any(&["like", "ilike"]) {
        RowFilter::Like(words.string().ok_or_else(|| words.unexpected())?)
    } else if words.take("where") {
        RowFilter::Where(Box::new(words.expression()?))
    } else {
        RowFilter::All
    };
    words.end().map(|()| filter)
}
