//! Statements that begin and end transactions.

use crate::statement_tokens::name_of;
use sqlparser::ast::{Statement, TransactionAccessMode, TransactionMode};

/// A statement about transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStatement {
    /// `BEGIN`, `START TRANSACTION`, and the isolation level if it names one
    Begin { read_only: bool, isolation: Option<String> },
    /// `COMMIT`, `END`; AND CHAIN begins another transaction like the one that ends
    Commit { chain: bool },
    /// `ROLLBACK`, `ABORT`; the same
    Rollback { chain: bool },
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE SAVEPOINT name`
    Release(String),
    /// `ROLLBACK TO SAVEPOINT name`
    RollbackTo(String),
}

impl TransactionStatement {
    /// Whether it ends a transaction.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback { .. })
    }
}

/// Such a statement; `None` for another one.
pub(crate) fn read(statement: &Statement) -> Option<TransactionStatement> {
    Some(match statement {
        Statement::StartTransaction { modes, .. } => begin(modes),
        Statement::Commit { chain, .. } => TransactionStatement::Commit { chain: *chain },
        Statement::Rollback { chain, savepoint: None } => TransactionStatement::Rollback { chain: *chain },
        Statement::Rollback { savepoint: Some(name), .. } => TransactionStatement::RollbackTo(name_of(name)),
        Statement::Savepoint { name } => TransactionStatement::Savepoint(name_of(name)),
        Statement::ReleaseSavepoint { name } => TransactionStatement::Release(name_of(name)),
        _ => return None,
    })
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
