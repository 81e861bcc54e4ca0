//! What a text says, before it is planned: forms that the parser does not know are spelled as it knows them ([`forms`],
//! [`composed_types`], [`table_hints`]), statements that it reads otherwise are read here ([`copy`]), and those that are no
//! plan have a word for themselves ([`session`], [`TransactionStatement`]).
//!
//! Nothing here knows tables or plans.

pub(crate) mod composed_types;
pub(crate) mod copy;
pub(crate) mod forms;
pub(crate) mod session;
pub(crate) mod table_hints;

/// A statement about transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN`, `START TRANSACTION`, and the isolation level if it names one
    Begin { read_only: bool, isolation: Option<String> },
    /// `COMMIT`, `END`
    Commit,
    /// `ROLLBACK`, `ABORT`
    Rollback,
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE SAVEPOINT name`
    Release(String),
    /// `ROLLBACK TO SAVEPOINT name`
    RollbackTo(String),
}
