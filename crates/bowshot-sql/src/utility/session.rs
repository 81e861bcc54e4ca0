//! Statements about the session itself and its cursors, which the session above the engine carries out.

use bowshot_api::Notice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStatement {
    /// `SET name = value`, for each name; the default where there is no value.
    Set(Vec<Assignment>),
    /// `SET LOCAL`: until the transaction ends.
    SetLocal(Vec<Assignment>),
    /// `RESET ALL`
    ResetAll,
    /// `USE`: catalog and schema of names that do not say theirs.
    Use { catalog: String, schema: String },
    /// `DISCARD ALL`, `DISCARD TEMP`, `DISCARD PLANS`
    Discard(Discarded),
    /// `PREPARE name AS …`; the types of its parameters as SQL.
    Prepare { name: String, sql: String, types: Vec<String> },
    /// `DEALLOCATE name`, `DEALLOCATE ALL`
    Deallocate(Option<String>),
    /// `KILL`
    Kill(Killed),
    /// Accepted, and nothing to do.
    Nothing,
    /// The same, and its client is told why.
    Notice(Notice),
}

/// A statement about the cursors of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CursorStatement {
    /// `DECLARE name CURSOR FOR query`; one that is held is there after the commit of its transaction, too.
    Declare {
        name: String,
        is_held: bool,
        /// The query, in its place in the text.
        sql: String,
    },
    /// `FETCH`: so many rows; `None` for all that are left.
    Fetch { name: String, rows: Option<u64> },
    /// `MOVE`: leaves them out.
    Move { name: String, rows: Option<u64> },
    /// `CLOSE name`, `CLOSE ALL`
    Close(Option<String>),
}

/// One assignment of `SET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Name as written, dots and all.
    pub name: String,
    /// Text of the value; `None` for the default.
    pub value: Option<String>,
}

/// What `DISCARD` throws away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discarded {
    /// Settings, named statements and temporary tables.
    All,
    /// Temporary tables.
    Temporary,
    /// Nothing that is kept.
    Plans,
}

/// What `KILL` ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Killed {
    /// A query by its id, or what a session runs by the number of the session.
    Query(String),
    /// A session with all that it runs, by its id or its number.
    Session(String),
}
