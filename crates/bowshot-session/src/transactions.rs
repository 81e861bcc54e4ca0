//! The open transactions of one session. Statements of one transaction run one after the other; transactions see
//! nothing of each other before commit.

use crate::cursors::Cursors;
use crate::transaction_scope::{LastUse, LockedTransaction, OpenTransaction, Scope};
use bowshot_api::{Error, ErrorKind, Reason, Result, SavepointId, TransactionEnd, TransactionId};
use bowshot_engine::{EngineSession, TransactionStatement};
use bowshot_policy::snapshot::Isolation;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

const MAX_OPEN: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<TransactionId, Open>>,
    /// Transactions rolled back when idle, whose owners have not been told yet.
    timed_out: Mutex<VecDeque<TransactionId>>,
    /// The current transaction, for statements that name none.
    current: Mutex<Option<Current>>,
    cursors: Cursors,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Current {
    id: TransactionId,
    block: Block,
    read_only: bool,
}

/// How the current transaction began (PostgreSQL manual, "Multiple Statements in a Simple Query").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// A statement, `BEGIN`.
    Explicit,
    /// By the front end, around a script.
    Implicit,
}

#[derive(Debug, Clone)]
struct Open {
    state: Arc<tokio::sync::Mutex<OpenTransaction>>,
    used: Arc<LastUse>,
    /// Savepoints by id: ending one waits for no other transaction.
    savepoints: Arc<Mutex<HashSet<SavepointId>>>,
}

impl Transactions {
    /// The transaction that a statement names, else the current one, else none.
    pub(crate) async fn scope(&self, named: Option<TransactionId>) -> Result<Scope> {
        let Some(id) = named.or_else(|| self.current()) else { return Ok(Scope::Alone(None)) };
        let held = self.hold(id).await?;
        // It may have ended during the wait.
        self.find(id)?;
        Ok(Scope::Within(held))
    }

    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    pub(crate) fn is_open(&self, id: TransactionId) -> bool {
        self.open.lock().contains_key(&id)
    }

    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Begins a transaction; its snapshot is taken at its first statement.
    pub(crate) fn begin(&self, read_only: bool) -> Result<TransactionId> {
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("the session has {MAX_OPEN} open transactions, which is the limit"),
            )
            .with_hint("commit or roll back some of them"));
        }
        let id = TransactionId::random();
        let state = Arc::new(tokio::sync::Mutex::new(OpenTransaction::new(read_only)));
        open.insert(id, Open { state, used: Arc::new(LastUse::now()), savepoints: Arc::default() });
        Ok(id)
    }

    pub(crate) fn begin_implicit(&self) -> Result<()> {
        if self.current().is_none() {
            let id = self.begin(false)?;
            self.set_current(Current { id, block: Block::Implicit, read_only: false });
        }
        Ok(())
    }

    pub(crate) async fn end_implicit(&self, end: TransactionEnd, engine: &EngineSession) -> Result<()> {
        let Some(Current { id, block: Block::Implicit, .. }) = self.current_block() else { return Ok(()) };
        match end {
            TransactionEnd::Commit => self.end(id, end, engine).await,
            // Running statements change nothing visible: do not wait for them.
            TransactionEnd::Rollback => {
                self.open.lock().remove(&id);
                self.forget_current(id);
                self.cursors.transaction_ended(id, end);
                Ok(())
            }
        }
    }

    /// Ends a transaction, even if its commit fails.
    pub(crate) async fn end(
        &self,
        id: TransactionId,
        end: TransactionEnd,
        engine: &EngineSession,
    ) -> Result<()> {
        if end == TransactionEnd::Rollback && self.forget_timed_out(id) {
            // Already done.
            return Ok(());
        }
        // Waits for a running statement.
        let mut transaction = self.hold(id).await?;
        if self.open.lock().remove(&id).is_none() {
            return Err(unknown(id));
        }
        self.forget_current(id);
        let ended = match end {
            TransactionEnd::Commit => transaction.commit(engine).await,
            TransactionEnd::Rollback => Ok(()),
        };
        transaction.release_locks();
        let end = if ended.is_ok() { end } else { TransactionEnd::Rollback };
        self.cursors.transaction_ended(id, end);
        ended
    }

    pub(crate) async fn savepoint(&self, id: TransactionId, name: &str) -> Result<SavepointId> {
        let savepoints = self.find(id)?.savepoints;
        match self.scope(Some(id)).await? {
            Scope::Within(mut transaction) => {
                let savepoint = transaction.savepoint(name)?;
                savepoints.lock().insert(savepoint);
                Ok(savepoint)
            }
            Scope::Alone(_) => Err(unknown(id)),
        }
    }

    pub(crate) async fn end_savepoint(&self, savepoint: SavepointId, end: TransactionEnd) -> Result<()> {
        let holds = |open: &Open| open.savepoints.lock().contains(&savepoint);
        let owner = self.open.lock().iter().find(|(_, open)| holds(open)).map(|(id, _)| *id);
        if let Some(id) = owner
            && let Ok(Scope::Within(mut transaction)) = self.scope(Some(id)).await
        {
            return self.end_within((id, &mut transaction), savepoint, end);
        }
        Err(Error::not_found(format!("savepoint `{savepoint}` not found"))
            .with_reason(Reason::UndefinedSavepoint)
            .with_hint("savepoints end with their transaction, and with those before them"))
    }

    /// Gives back the row locks that the current transaction has no use for after an error.
    pub(crate) async fn release_after_error(&self) {
        if let Some(id) = self.current()
            && let Ok(mut transaction) = self.hold(id).await
        {
            transaction.release_recent_locks();
        }
    }

    /// Runs a transaction statement in the named transaction, or in the current one begun with SQL. A named
    /// transaction belongs to the holder of its id, and only that holder ends it.
    pub(crate) async fn run(
        &self,
        statement: &TransactionStatement,
        named: Option<TransactionId>,
        engine: &EngineSession,
    ) -> Result<()> {
        match (statement, named, self.current()) {
            (TransactionStatement::Begin { .. }, Some(_), _) => {
                Err(open_already("commit it or roll it back as it was begun"))
            }
            (TransactionStatement::Begin { .. }, None, Some(_)) if self.is_begun() => {
                Err(open_already("end it with COMMIT or ROLLBACK"))
            }
            (TransactionStatement::Begin { read_only, .. }, None, current) => {
                let id = match current {
                    // Statements before BEGIN in a script join the transaction, as in PostgreSQL.
                    Some(id) => {
                        self.hold(id).await?.set_read_only(*read_only);
                        id
                    }
                    None => self.begin(*read_only)?,
                };
                self.set_current(Current { id, block: Block::Explicit, read_only: *read_only });
                Ok(())
            }
            (TransactionStatement::Commit { .. } | TransactionStatement::Rollback { .. }, Some(id), _) => {
                self.find(id)?;
                Err(not_by_text())
            }
            // As in PostgreSQL, which only warns.
            (TransactionStatement::Commit { .. } | TransactionStatement::Rollback { .. }, None, None) => {
                Ok(())
            }
            (TransactionStatement::Commit { .. }, None, Some(id)) => {
                self.end(id, TransactionEnd::Commit, engine).await
            }
            (TransactionStatement::Rollback { .. }, None, Some(id)) => {
                self.end(id, TransactionEnd::Rollback, engine).await
            }
            (TransactionStatement::Savepoint(name), named, _) => {
                self.savepoint(self.block_of(named)?, name).await.map(drop)
            }
            (TransactionStatement::Release(name), named, _) => {
                self.named(self.block_of(named)?, name, TransactionEnd::Commit).await
            }
            (TransactionStatement::RollbackTo(name), named, _) => {
                self.named(self.block_of(named)?, name, TransactionEnd::Rollback).await
            }
        }
    }

    /// Sets the isolation of the named transaction, else of the current one.
    ///
    /// # Errors
    /// `Invalid` once a statement has read or written in it, or while one runs.
    pub(crate) fn set_isolation(&self, named: Option<TransactionId>, isolation: Isolation) -> Result<()> {
        let Some(id) = named.or_else(|| self.current()) else { return Ok(()) };
        let state = self.find(id)?.state;
        let busy =
            |_| Error::invalid("cannot change the isolation level: a statement has run in the transaction");
        state.try_lock().map_err(busy)?.transaction.set_isolation(isolation)
    }

    /// Ends a savepoint; a rollback closes the cursors declared after it.
    fn end_within(
        &self,
        (id, transaction): (TransactionId, &mut LockedTransaction),
        savepoint: SavepointId,
        end: TransactionEnd,
    ) -> Result<()> {
        match end {
            TransactionEnd::Commit => transaction.release(savepoint)?,
            TransactionEnd::Rollback => transaction.roll_back_to(savepoint)?,
        }
        if let Some(open) = self.open.lock().get(&id) {
            let mut savepoints = open.savepoints.lock();
            savepoints.retain(|savepoint| transaction.has_savepoint(*savepoint));
        }
        self.cursors.savepoint_ended(id, transaction.savepoint_count(), end);
        Ok(())
    }

    pub(crate) async fn savepoint_count(&self, id: TransactionId) -> Result<usize> {
        Ok(self.hold(id).await?.savepoint_count())
    }

    /// The savepoint count of the current transaction, if any. Waits for no statement.
    pub(crate) fn current_savepoints(&self) -> Option<usize> {
        let id = self.current()?;
        let open = self.open.lock().get(&id)?.clone();
        Some(open.savepoints.lock().len())
    }

    async fn named(&self, id: TransactionId, name: &str, end: TransactionEnd) -> Result<()> {
        match self.scope(Some(id)).await? {
            Scope::Within(mut transaction) => {
                let savepoint = transaction.find_savepoint(name)?;
                self.end_within((id, &mut transaction), savepoint, end)
            }
            Scope::Alone(_) => Err(unknown(id)),
        }
    }

    pub(crate) fn end_idle(&self, timeout: Duration) {
        let mut open = self.open.lock();
        // A locked one is running a statement.
        let idle = |open: &Open| open.used.elapsed() >= timeout && open.state.try_lock().is_ok();
        let ended: Vec<TransactionId> =
            open.iter().filter(|(_, open)| idle(open)).map(|(id, _)| *id).collect();
        ended.iter().for_each(|id| drop(open.remove(id)));
        drop(open);
        ended.iter().for_each(|id| self.cursors.transaction_ended(*id, TransactionEnd::Rollback));
        let mut remembered = self.timed_out.lock();
        remembered.extend(ended);
        while remembered.len() > MAX_OPEN {
            remembered.pop_front();
        }
    }

    fn forget_timed_out(&self, id: TransactionId) -> bool {
        let mut remembered = self.timed_out.lock();
        let before = remembered.len();
        remembered.retain(|ended| *ended != id);
        remembered.len() < before
    }

    /// The only open transaction, if there is exactly one. Drivers need it where the protocol names none: bulk
    /// ingest, and prepared statements that outlive their transaction.
    pub(crate) fn only(&self) -> Option<TransactionId> {
        let open = self.open.lock();
        let mut ids = open.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    /// The transaction while it is open, else the only open one.
    pub(crate) fn successor(&self, id: TransactionId) -> TransactionId {
        if self.open.lock().contains_key(&id) { id } else { self.only().unwrap_or(id) }
    }

    /// Rolls back all transactions and closes all cursors.
    pub(crate) fn clear(&self) {
        self.open.lock().clear();
        self.cursors.clear();
    }

    /// Whether the current transaction was begun with SQL.
    pub(crate) fn is_begun(&self) -> bool {
        self.current_block().is_some_and(|current| current.block == Block::Explicit)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.current_block().is_some_and(|current| current.read_only)
    }

    pub(crate) fn current(&self) -> Option<TransactionId> {
        self.current_block().map(|current| current.id)
    }

    fn current_block(&self) -> Option<Current> {
        *self.current.lock()
    }

    fn set_current(&self, current: Current) {
        *self.current.lock() = Some(current);
    }

    /// The transaction of a savepoint statement: the named one, else the current one.
    fn block_of(&self, named: Option<TransactionId>) -> Result<TransactionId> {
        let begun = self.current().filter(|_| self.is_begun());
        named.or(begun).ok_or_else(|| {
            Error::invalid("no transaction is open")
                .with_reason(Reason::NoTransaction)
                .with_hint("begin one with BEGIN")
        })
    }

    /// Locks the transaction, waiting for its running statement.
    async fn hold(&self, id: TransactionId) -> Result<LockedTransaction> {
        let Open { state, used, .. } = self.find(id)?;
        Ok(LockedTransaction::new(state.lock_owned().await, used))
    }

    fn find(&self, id: TransactionId) -> Result<Open> {
        let open = self.open.lock();
        if let Some(transaction) = open.get(&id) {
            transaction.used.touch();
            return Ok(transaction.clone());
        }
        drop(open);
        // It was rolled back when idle: this statement fails, the next one may run.
        self.forget_current(id);
        Err(unknown(id))
    }

    fn forget_current(&self, id: TransactionId) {
        let mut current = self.current.lock();
        if current.is_some_and(|current| current.id == id) {
            *current = None;
        }
    }
}

fn open_already(hint: &'static str) -> Error {
    Error::invalid("a transaction is open already").with_reason(Reason::ActiveTransaction).with_hint(hint)
}

fn not_by_text() -> Error {
    Error::invalid("the transaction was not begun with BEGIN, so a statement cannot end it")
        .with_reason(Reason::ActiveTransaction)
        .with_hint("commit it or roll it back as it was begun: in Flight SQL by the action `EndTransaction`, which drivers call `commit` and `rollback`")
}

fn unknown(id: TransactionId) -> Error {
    Error::not_found(format!("transaction `{id}` not found: it has ended, or was rolled back for being idle"))
        .with_reason(Reason::NoTransaction)
        .with_hint("begin a new transaction")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::time::Instant;

    #[tokio::test]
    async fn a_transaction_is_idle_from_the_end_of_its_statement() {
        let transactions = Transactions::default();
        let id = transactions.begin(false).expect("begins");
        let scope = transactions.scope(Some(id)).await.expect("open");
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        transactions.end_idle(begun.elapsed());
        assert_eq!(transactions.count(), 1, "a statement runs in it");
        drop(scope);
        transactions.end_idle(begun.elapsed());
        assert_eq!(transactions.count(), 1, "it was just used");
        transactions.end_idle(Duration::ZERO);
        assert_eq!(transactions.count(), 0);
    }

    #[tokio::test]
    async fn a_savepoint_ends_while_another_transaction_runs_a_statement() {
        let transactions = Transactions::default();
        let (busy, own) =
            (transactions.begin(false).expect("begins"), transactions.begin(false).expect("begins"));
        let savepoint = transactions.savepoint(own, "a").await.expect("marks");
        let _running = transactions.scope(Some(busy)).await.expect("open");
        let end = transactions.end_savepoint(savepoint, TransactionEnd::Rollback);
        end.now_or_never().expect("waits for nobody").expect("is there");
        let unknown = transactions.end_savepoint(SavepointId::random(), TransactionEnd::Commit);
        let error = unknown.now_or_never().expect("waits for nobody").expect_err("is nowhere");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
