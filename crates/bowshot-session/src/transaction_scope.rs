//! The transaction that a statement runs in: its own, or an open one, which it locks until it ends.

use crate::row_locks::{HeldLocks, LocksMark, RowLocks};
use bowshot_api::{Delivery, Error, Result, SavepointId};
use bowshot_engine::{AuthorizedPlan, EngineSession, Transaction, first_word};
use bowshot_policy::snapshot::{Isolation, Pinned};
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

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

#[derive(Debug)]
pub(crate) struct OpenTransaction {
    pub(crate) transaction: Transaction,
    locks: Option<HeldLocks>,
    /// Of its savepoints, and perhaps of some after them that are no more.
    marks: Vec<LocksMark>,
}

impl OpenTransaction {
    pub(crate) fn new(read_only: bool) -> Self {
        Self { transaction: Transaction::new(read_only), locks: None, marks: Vec::new() }
    }
}

/// A transaction locked by its running statement. It is idle only from the end of that statement.
#[derive(Debug)]
pub(crate) struct LockedTransaction {
    open: OwnedMutexGuard<OpenTransaction>,
    used: Arc<LastUse>,
}

impl LockedTransaction {
    pub(crate) fn new(open: OwnedMutexGuard<OpenTransaction>, used: Arc<LastUse>) -> Self {
        Self { open, used }
    }

    /// Commits what it has changed.
    ///
    /// # Errors
    /// `Conflict` where another one was first.
    pub(crate) async fn commit(&mut self, engine: &EngineSession) -> Result<()> {
        self.check()?;
        let OpenTransaction { transaction, locks, .. } = &mut *self.open;
        let Some((base, made)) = transaction.change().filter(|(base, made)| !base.is_same(made)) else {
            return Ok(());
        };
        match locks {
            Some(locks) => engine.commit_watched((base, made), locks.watched()).await,
            None => engine.commit(base, made).await,
        }
    }

    /// Marks what it has changed and locked.
    ///
    /// # Errors
    /// As [`Transaction::savepoint`].
    pub(crate) fn savepoint(&mut self, name: &str) -> Result<SavepointId> {
        let OpenTransaction { transaction, locks, marks } = &mut *self.open;
        marks.truncate(transaction.savepoint_count());
        let savepoint = transaction.savepoint(name)?;
        marks.push(locks.as_ref().map(HeldLocks::mark).unwrap_or_default());
        Ok(savepoint)
    }

    /// Takes back what it has changed since a savepoint, and gives back what it has locked since.
    ///
    /// # Errors
    /// As [`Transaction::roll_back_to`].
    pub(crate) fn roll_back_to(&mut self, savepoint: SavepointId) -> Result<()> {
        self.open.transaction.roll_back_to(savepoint)?;
        self.release_recent_locks();
        Ok(())
    }

    /// Gives back what it has locked since its last savepoint, or all: where it has failed, it can return to none behind that one.
    pub(crate) fn release_recent_locks(&mut self) {
        let OpenTransaction { transaction, locks, marks } = &mut *self.open;
        marks.truncate(transaction.savepoint_count());
        if let Some(locks) = locks {
            locks.return_to(marks.last().copied().unwrap_or_default());
        }
    }

    /// Gives its locks to those that wait for them.
    pub(crate) fn release_locks(&mut self) {
        self.open.locks = None;
    }
}

impl Deref for LockedTransaction {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.open.transaction
    }
}

impl DerefMut for LockedTransaction {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.open.transaction
    }
}

impl Drop for LockedTransaction {
    fn drop(&mut self) {
        // Before unlocking: the sweep checks the time without the lock.
        self.used.touch();
    }
}

#[derive(Debug)]
pub(crate) enum Scope {
    /// A transaction of its own, with its locks.
    Alone(Option<HeldLocks>),
    /// Within an open transaction, locked until the statement ends.
    Within(LockedTransaction),
}

impl Scope {
    /// The snapshot for the statement. `isolation` is the session's level.
    pub(crate) fn pin(&mut self, engine: &EngineSession, isolation: Isolation) -> Pinned {
        match self {
            Self::Alone(_) => engine.pin().isolated(isolation),
            Self::Within(transaction) => {
                transaction.current(isolation, || engine.pin());
                if transaction.is_read_committed()
                    && let Err(error) = transaction.advance(engine)
                {
                    // Whoever only reads sees what was there; the commit fails.
                    tracing::debug!(%error, "cannot move the transaction to the newest table versions; its \
                        commit will fail");
                }
                transaction.current(isolation, || engine.pin()).clone()
            }
        }
    }

    /// The same, as new as its level allows.
    ///
    /// # Errors
    /// `Conflict` where the transaction has changed what another one has changed since.
    pub(crate) fn pin_newest(&mut self, engine: &EngineSession, isolation: Isolation) -> Result<Pinned> {
        match self {
            Self::Alone(_) => Ok(engine.pin().isolated(isolation)),
            Self::Within(transaction) => {
                transaction.advance(engine)?;
                Ok(transaction.current(isolation, || engine.pin()).clone())
            }
        }
    }

    /// What an open transaction sees of the tables of everybody.
    pub(crate) fn seen(&self) -> Option<&Pinned> {
        match self {
            Self::Alone(_) => None,
            Self::Within(transaction) => transaction.change().map(|(base, _)| base),
        }
    }

    pub(crate) fn locks(&mut self, all: &Arc<RowLocks>) -> &mut HeldLocks {
        let held = match self {
            Self::Alone(held) => held,
            Self::Within(transaction) => &mut transaction.open.locks,
        };
        held.get_or_insert_with(|| all.owner())
    }

    /// Rolls an open transaction back, which its client is to be told.
    pub(crate) fn fail(&mut self) {
        if let Self::Within(transaction) = self {
            transaction.fail();
            transaction.release_locks();
        }
    }

    /// Checks that the transaction was not rolled back by the server.
    ///
    /// # Errors
    /// `Conflict` if it was.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Alone(_) => Ok(()),
            Self::Within(transaction) => transaction.check(),
        }
    }

    /// Checks that it may change and lock rows.
    ///
    /// # Errors
    /// `Invalid` in a transaction that only reads.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self {
            Self::Alone(_) => Ok(()),
            Self::Within(transaction) => transaction.check_writable(),
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
            (Self::Alone(_), Delivery::Spool) => {
                refused("into a stored result", "switch the session option `retryable_results` off")
            }
            (Self::Alone(_), Delivery::Stream) => Ok(true),
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
            Self::Alone(_) => engine.commit(base, &changed).await,
            // The client's rows belong to this statement only.
            Self::Within(transaction) => transaction.keep(changed.with_input(None)),
        }
    }

    /// Whether conflicts are retried.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Self::Alone(_))
    }
}
