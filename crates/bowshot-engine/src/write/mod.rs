//! Statements that change tables.
//!
//! ```text
//! text ─► parse ─► recognise ─┬─► DDL: a change of the catalog, no rows          (define, ddl, external, functions, models, secrets)
//!                             ├─► INSERT, CTAS: a query that gives the new rows   (DataFusion's own planning)
//!                             ├─► UPDATE, DELETE, MERGE: a query over the target with the addresses of its rows
//!                             │                                                   (change, merge)
//!                             └─► COPY: a query whose rows go into a file, or a file of rows for a table   (copy)
//!          ─► enforce, as every plan ─► apply: run the query, fit its rows to the table, make the next state; rows of
//!             literals and scalar expressions need no query (literal, scalar_rows), keys are looked up (key)
//!          ─► returning: a query over the rows that were changed ─► commit, which the session does
//! ```
//!
//! DataFusion's hooks for DELETE and UPDATE hand a provider the filters that are left in the optimised plan. A subquery
//! has become a join by then and `WHERE false` an empty relation, so that the list is empty and means "all rows"
//! (apache/datafusion#24654). No hook is used here: a statement that changes rows is planned as the query that finds
//! them, and what that query does not return is not touched.

pub(crate) mod access;
pub(crate) mod alter;
mod alter_table_operations;
pub(crate) mod apply;
pub(crate) mod batch_insert;
pub(crate) mod change;
mod columns;
mod conflict;
pub(crate) mod constraints;
pub(crate) mod copy;
pub(crate) mod create_table;
mod create_view;
pub(crate) mod data_modifying_with;
pub(crate) mod ddl;
mod enums;
mod external;
pub(crate) mod external_database;
pub(crate) mod external_definition;
mod external_merge;
pub(crate) mod external_rewrite;
pub(crate) mod functions;
mod hidden_columns;
mod insert;
pub(crate) mod insertion;
mod key;
pub(crate) mod literal;
pub(crate) mod maintenance;
pub(crate) mod merge;
pub(crate) mod models;
mod not_in;
pub(crate) mod notices;
pub(crate) mod pipes;
pub(crate) mod recognise;
pub(crate) mod refresh;
mod returned_states;
pub(crate) mod returning;
pub(crate) mod rows;
pub(crate) mod scalar_rows;
pub(crate) mod secrets;
mod sequences;
mod table_clauses;
mod tuple_assignment;
pub(crate) mod values;

use bowshot_policy::Touched;
use bowshot_tables::{Definition, EntryName, External, View};
use copy::{CopyIn, CopyOut};
use ddl::Ddl;
use external_database::DatabaseInsert;
use external_definition::DatabaseDefine;
use external_rewrite::DatabaseRewrite;
use pipes::Load;
use refresh::Refresh;

/// What a statement changes. The plan beside it gives the rows.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    /// Changes the catalog; the plan gives nothing but the file of a model that is sent along.
    Ddl(Ddl),
    /// Makes a table of the rows.
    CreateAs(NewTable),
    /// Adds the rows, whose columns are those of the table in order.
    Insert(Affected),
    /// Puts the rows in the place of all that are there.
    Overwrite(EntryName),
    /// Makes the rows of a materialized view those of its query.
    Refresh(Refresh),
    /// Takes the rows out: one column, the address.
    Delete(EntryName),
    /// Puts rows in the place of others: the address, then the columns of the table in order.
    Update(Affected),
    /// The address or null, what to do (see [`merge`]), then the columns of the table in order.
    Merge(Affected),
    /// Writes the rows to a file, and changes no table.
    CopyOut(CopyOut),
    /// Adds the rows of a file; the plan gives nothing.
    CopyIn(CopyIn),
    /// Adds the rows of files that a pipe has found; the plan gives nothing.
    Load(Load),
    /// Adds the rows to a table of another database.
    DatabaseInsert(DatabaseInsert),
    /// Makes or drops something in another database.
    DatabaseDefine(DatabaseDefine),
    /// Changes rows of a table of another database: whether each is new, what happens to it, and what its columns become.
    DatabaseRewrite(DatabaseRewrite),
    /// Changes nothing: the rows are those of a query beside changes in WITH.
    Query,
}

/// A table whose rows a statement changes, and what it does to them.
#[derive(Debug, Clone)]
pub(crate) struct Affected {
    pub(crate) name: EntryName,
    pub(crate) touched: Touched,
}

/// A table to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewTable {
    pub(crate) name: EntryName,
    /// For `CREATE TABLE … AS` the columns are those of the rows.
    pub(crate) definition: Definition,
    pub(crate) when_there: WhenThere,
}

/// A view to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewView {
    pub(crate) name: EntryName,
    pub(crate) view: View,
    pub(crate) when_there: WhenThere,
}

/// An external table to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewExternal {
    pub(crate) name: EntryName,
    pub(crate) external: External,
    pub(crate) when_there: WhenThere,
}

/// What `CREATE` does with a name that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenThere {
    Fail,
    /// `IF NOT EXISTS`
    Keep,
    /// `OR REPLACE`
    Replace,
}

impl WhenThere {
    pub(crate) fn new(replace: bool, if_not_exists: bool) -> Self {
        match (replace, if_not_exists) {
            (true, _) => Self::Replace,
            (false, true) => Self::Keep,
            (false, false) => Self::Fail,
        }
    }
}

impl Write {
    /// The table whose rows it changes.
    pub(crate) fn target(&self) -> Option<&EntryName> {
        match self {
            Self::CreateAs(new) => Some(&new.name),
            Self::Insert(rows) | Self::Update(rows) | Self::Merge(rows) => Some(&rows.name),
            Self::Overwrite(name) | Self::Delete(name) => Some(name),
            Self::Refresh(refresh) => Some(&refresh.name),
            Self::CopyIn(copy) => Some(copy.table()),
            Self::Load(load) => Some(&load.table),
            Self::DatabaseInsert(insert) => Some(&insert.name),
            Self::DatabaseRewrite(rewrite) => Some(&rewrite.name),
            Self::Ddl(_) | Self::CopyOut(_) | Self::DatabaseDefine(_) | Self::Query => None,
        }
    }

    /// Whether the result tells a number of rows.
    pub(crate) fn counts(&self) -> bool {
        match self {
            Self::Ddl(ddl) => ddl.counts(),
            Self::DatabaseDefine(define) => define.has_rows,
            _ => true,
        }
    }
}
