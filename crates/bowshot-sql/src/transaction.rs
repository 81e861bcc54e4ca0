//! Statements that begin and end transactions.

use crate::statement_parser::name_of;
use bowshot_api::{Error, Result};
use sqlparser::ast::{Statement, TransactionAccessMode, TransactionMode};

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

/// Such a statement; `None` for another one.
///
/// # Errors
/// `Unsupported` for AND CHAIN.
pub(crate) fn read(statement: &Statement) -> Result<Option<TransactionStatement>> {
    Ok(Some(match statement {
        Statement::StartTransaction { modes, .. } => begin(modes),
        Statement::Commit { chain: false, .. } => TransactionStatement::Commit,
        Statement::Rollback { chain: false, savepoint: None } => TransactionStatement::Rollback,
        Statement::Rollback { chain: false, savepoint: Some(name) } => {
            TransactionStatement::RollbackTo(name_of(name))
        }
        Statement::Savepoint { name } => TransactionStatement::Savepoint(name_of(name)),
        Statement::ReleaseSavepoint { name } => TransactionStatement::Release(name_of(name)),
        Statement::Commit { .. } | Statement::Rollback { .. } => {
            return Err(Error::unsupported("AND CHAIN is not supported").with_hint("send BEGIN afterwards"));
        }
        _ => return Ok(None),
    }))
}

/// What a transaction is begun with.
fn begin(modes: &[TransactionMode]) -> TransactionStatement {
    let (mut read_only, mut isolation) = (false, None);
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(access) => read_only = *access == TransactionAccessMode::ReadOnly,
            TransactionMode::IsolationLevel(level) => {
                isolation = Some(level.to_string().to_ascii_lowercase());
            }
        }
    }
    TransactionStatement::Begin { read_only, isolation }
}
