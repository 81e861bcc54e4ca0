//! One transaction: the state that it sees, the state that its statements have made of that, and the way back to savepoints.
//!
//! All of it is immutable snapshots, so that a savepoint is a pointer and a rollback forgets one. What changed is found out
//! at commit, where the stores compare the two states.

use crate::session::EngineSession;
use bowshot_api::{Error, ErrorKind, Reason, Result, SavepointId};
use bowshot_policy::snapshot::{Isolation, Pinned};

/// The snapshots and savepoints of one transaction.
#[derive(Debug)]
pub struct Transaction {
    /// None before its first statement.
    states: Option<States>,
    read_only: bool,
    /// Of the session where the transaction was begun without one, from its first statement on.
    isolation: Option<Isolation>,
    has_run: bool,
    /// Whether the server has rolled it back, which its client may not know.
    has_failed: bool,
    savepoints: Vec<Savepoint>,
}

#[derive(Debug, Clone)]
struct States {
    /// The tables of everybody as it sees them.
    base: Pinned,
    current: Pinned,
}

#[derive(Debug)]
struct Savepoint {
    id: SavepointId,
    name: String,
    /// None if there had been no statement.
    states: Option<States>,
}

/// Savepoints of one transaction.
const MAX_SAVEPOINTS: usize = 1_000;

impl Transaction {
    /// A transaction that has seen nothing yet.
    pub fn new(read_only: bool) -> Self {
        let (has_run, has_failed) = (false, false);
        Self { states: None, read_only, isolation: None, has_run, has_failed, savepoints: Vec::new() }
    }

    /// Says whether the statements from now on only read.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.read_only = read_only;
    }

    /// Chooses the level before the first statement that reads or writes.
    ///
    /// # Errors
    /// `Invalid` afterwards.
    pub fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        if self.isolation == Some(isolation) {
            return Ok(());
        }
        if self.has_run || !self.savepoints.is_empty() {
            return Err(Error::invalid(
                "the isolation level must be set before any query of the transaction",
            )
            .with_reason(Reason::ActiveTransaction)
            .with_hint("end the transaction, and begin another one"));
        }
        // What was pinned for the statement that chooses the level notes no reads.
        (self.isolation, self.states) = (Some(isolation), None);
        Ok(())
    }

    /// Notes that one of its statements reads or writes.
    pub fn begin_statement(&mut self) {
        self.has_run = true;
    }

    /// What its next statement sees. The first one decides: drivers begin a transaction long before they use it, right
    /// after the one before. `of_session` is the level of a transaction that was begun without one.
    pub fn current(&mut self, of_session: Isolation, now: impl FnOnce() -> Pinned) -> &Pinned {
        let isolation = *self.isolation.get_or_insert(of_session);
        let states = self.states.get_or_insert_with(|| {
            let base = now().isolated(isolation);
            States { current: base.clone(), base }
        });
        &states.current
    }

    /// Moves what it sees of the tables to their newest state: at READ COMMITTED with what it has changed, at other levels only before
    /// its first statement has run.
    ///
    /// # Errors
    /// `Conflict` when it has changed what another one has changed since.
    pub fn advance(&mut self, session: &EngineSession) -> Result<()> {
        let (Some(states), Some(isolation)) = (&self.states, self.isolation) else { return Ok(()) };
        let [base, current] = if isolation == Isolation::ReadCommitted {
            session.rebased(&states.base, &states.current)?
        } else if self.has_run {
            return Ok(());
        } else {
            let newest = session.pin().isolated(isolation);
            // Nothing had run before its savepoints either, and it sees one state.
            self.savepoints.iter_mut().for_each(|savepoint| savepoint.states = None);
            [newest.clone(), newest]
        };
        self.states = Some(States { base, current });
        Ok(())
    }

    /// Whether each of its statements sees what is committed by then.
    pub fn is_read_committed(&self) -> bool {
        self.isolation == Some(Isolation::ReadCommitted)
    }

    /// Rolls it back before its client does.
    pub fn fail(&mut self) {
        (self.states, self.has_failed) = (None, true);
        self.savepoints.clear();
    }

    /// Checks that the server has not rolled it back.
    ///
    /// # Errors
    /// `Conflict` if it has.
    pub fn check(&self) -> Result<()> {
        if self.has_failed {
            let message = "the transaction was rolled back because of a deadlock or a conflict with another \
                one";
            return Err(
                Error::new(ErrorKind::Conflict, message).with_hint("end it with ROLLBACK, and run it again")
            );
        }
        Ok(())
    }

    /// What it sees of the tables of everybody and what it has made of that, if it has seen anything.
    pub fn change(&self) -> Option<(&Pinned, &Pinned)> {
        self.states.as_ref().map(|states| (&states.base, &states.current))
    }

    /// Checks that its statements may change and lock rows.
    ///
    /// # Errors
    /// `Invalid` in a transaction that only reads.
    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::invalid("the transaction is read-only")
                .with_reason(Reason::ReadOnlyTransaction)
                .with_hint("end it, and begin one without READ ONLY"));
        }
        Ok(())
    }

    /// Takes what a statement has made of [`Transaction::current`].
    ///
    /// # Errors
    /// As [`Transaction::check_writable`].
    pub fn keep(&mut self, state: Pinned) -> Result<()> {
        self.check_writable()?;
        self.has_run = true;
        if let Some(states) = &mut self.states {
            states.current = state;
        }
        Ok(())
    }

    /// Marks the current state.
    ///
    /// # Errors
    /// `LimitReached` with too many savepoints.
    pub fn savepoint(&mut self, name: &str) -> Result<SavepointId> {
        if self.savepoints.len() >= MAX_SAVEPOINTS {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("the transaction has {MAX_SAVEPOINTS} savepoints, which is the limit"),
            )
            .with_hint("release some of them"));
        }
        let id = SavepointId::random();
        self.savepoints.push(Savepoint { id, name: name.to_owned(), states: self.states.clone() });
        Ok(id)
    }

    /// The latest savepoint of a name.
    ///
    /// # Errors
    /// `NotFound` without one.
    pub fn find_savepoint(&self, name: &str) -> Result<SavepointId> {
        let found = self.savepoints.iter().rev().find(|savepoint| savepoint.name == name);
        found.map(|savepoint| savepoint.id).ok_or_else(|| unknown(name))
    }

    /// Whether this savepoint is there.
    pub fn has_savepoint(&self, id: SavepointId) -> bool {
        self.savepoints.iter().any(|savepoint| savepoint.id == id)
    }

    /// How many savepoints it has.
    pub fn savepoint_count(&self) -> usize {
        self.savepoints.len()
    }

    /// Forgets a savepoint and those after it.
    ///
    /// # Errors
    /// `NotFound` when it is not there.
    pub fn release(&mut self, id: SavepointId) -> Result<()> {
        let position = self.position(id)?;
        self.savepoints.truncate(position);
        Ok(())
    }

    /// Returns to a savepoint, which stays; those after it go.
    ///
    /// # Errors
    /// `NotFound` when it is not there.
    pub fn roll_back_to(&mut self, id: SavepointId) -> Result<()> {
        let position = self.position(id)?;
        self.savepoints.truncate(position + 1);
        if let (Some(savepoint), Some(states)) = (self.savepoints.last(), &mut self.states) {
            // What was changed before it was changed of the state that was seen by then.
            let before = States { base: states.base.clone(), current: states.base.clone() };
            *states = savepoint.states.clone().unwrap_or(before);
        }
        Ok(())
    }

    fn position(&self, id: SavepointId) -> Result<usize> {
        let found = self.savepoints.iter().position(|savepoint| savepoint.id == id);
        found.ok_or_else(|| unknown(&id.to_string()))
    }
}

fn unknown(savepoint: &str) -> Error {
    Error::not_found(format!("savepoint `{savepoint}` not found"))
        .with_reason(Reason::UndefinedSavepoint)
        .with_hint("savepoints end with their transaction, and with those before them")
}
