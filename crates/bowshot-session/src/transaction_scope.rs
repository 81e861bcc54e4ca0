//! The transaction that a statement runs in: its own, or an open one, which it locks until it ends.

use bowshot_api::{Delivery, Error, Result};
use bowshot_engine::{AuthorizedPlan, EngineSession, Transaction, first_word};
use bowshot_policy::snapshot::{Isolation, Pinned};
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// Time of the last use.
#[derive(Debug)]
pub(crate) struct LastUse(Mutex<Instant>);

impl LastUse {
    pub(crate) fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(crate) fn touch(&self) {
        *self.0.lock() = Instant::now();
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.lock().elapsed()
    }
}

/// A transaction locked by its running statement. It is idle only from the end of that statement.
#[derive(Debug)]
pub(crate) struct LockedTransaction {
    transaction: OwnedMutexGuard<Transaction>,
    used: Arc<LastUse>,
}

impl LockedTransaction {
    pub(crate) fn new(transaction: OwnedMutexGuard<Transaction>, used: Arc<LastUse>) -> Self {
        Self { transaction, used }
    }
}

impl Deref for LockedTransaction {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl DerefMut for LockedTransaction {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }
}

impl Drop for LockedTransaction {
    fn drop(&mut self) {
        // Before unlocking: the sweep checks the time without the lock.
        self.used.touch();
    }
}

/// The transaction of a statement.
#[derive(Debug)]
pub(crate) enum Scope {
    /// A transaction of its own.
    Alone,
    /// Within an open transaction, locked until the statement ends.
    Within(LockedTransaction),
}

impl Scope {
    /// The snapshot for the statement. `isolation` is the session's level.
    pub(crate) fn pin(&mut self, engine: &EngineSession, isolation: Isolation) -> Pinned {
        match self {
            Self::Alone => engine.pin().isolated(isolation),
            Self::Within(transaction) => transaction.current(isolation, || engine.pin()).clone(),
        }
    }

    /// Whether the rows of a query have no end. Those are no part of a transaction, whose state of the tables they would leave, and
    /// are not stored.
    ///
    /// # Errors
    /// `Unsupported` where they would be.
    pub(crate) fn check_endless(&self, plan: &AuthorizedPlan, delivery: Delivery) -> Result<bool> {
        let refused = |place: &str, hint: &str| {
            Err(Error::unsupported(format!("changes are not followed {place}")).with_hint(hint))
        };
        match (self, delivery) {
            _ if !plan.is_endless() => Ok(false),
            (Self::Within(_), _) => {
                refused("in a transaction", "end it; a cursor outside of one is WITH HOLD")
            }
            (Self::Alone, Delivery::Spool) => {
                refused("into a stored result", "switch the session option `retryable_results` off")
            }
            (Self::Alone, Delivery::Stream) => Ok(true),
        }
    }

    /// Marks that the transaction has read or written, which fixes its isolation level.
    pub(crate) fn begin_statement(&mut self, sql: &str) {
        if let Self::Within(transaction) = self
            && first_word(sql) != "show"
        {
            transaction.begin_statement();
        }
    }

    /// Stores the changes of a statement on `base`: commits them, or adds them to the transaction.
    ///
    /// # Errors
    /// `Conflict` when another writer was first.
    pub(crate) async fn keep(
        &mut self,
        engine: &EngineSession,
        base: &Pinned,
        changed: Pinned,
    ) -> Result<()> {
        match self {
            Self::Alone => engine.commit(base, &changed).await,
            // The client's rows belong to this statement only.
            Self::Within(transaction) => transaction.keep(changed.with_input(None)),
        }
    }

    /// Whether conflicts are retried.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Self::Alone)
    }
}
