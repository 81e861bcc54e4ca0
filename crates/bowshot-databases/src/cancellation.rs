//! Cancels a statement of another database from outside of the thread that it runs on.

use adbc_core::CancelHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;

/// How far a statement has come, and what cancels it.
pub(crate) struct Cancellation(Mutex<State>);

enum State {
    /// Nothing runs yet.
    Idle,
    /// Handles of the statement, then of its connection.
    Running(Vec<Box<dyn CancelHandle>>),
    Finished,
    Cancelled,
}

impl Cancellation {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Idle)))
    }

    /// Sets the handles of a statement that begins. `false` if it was cancelled before.
    pub(crate) fn arm(&self, handles: Vec<Box<dyn CancelHandle>>) -> bool {
        let mut state = self.0.lock();
        let may_run = !matches!(*state, State::Cancelled);
        if may_run {
            *state = State::Running(handles);
        }
        may_run
    }

    pub(crate) fn arm_with(&self, handle: Box<dyn CancelHandle>) -> bool {
        self.arm(vec![handle])
    }

    /// The statement has ended, so the next one on its connection is not cancelled. `false` if it was cancelled.
    pub(crate) fn finish(&self) -> bool {
        let mut state = self.0.lock();
        let finished = !matches!(*state, State::Cancelled);
        if finished {
            *state = State::Finished;
        }
        finished
    }

    /// Cancels the statement, on another thread: the driver may have to call the server.
    pub(crate) fn cancel(&self) {
        let mut state = self.0.lock();
        let handles = match &mut *state {
            State::Running(handles) => std::mem::take(handles),
            State::Finished | State::Cancelled => return,
            State::Idle => Vec::new(),
        };
        *state = State::Cancelled;
        drop(state);
        if !handles.is_empty() {
            let cancel = move || {
                let _ = handles.iter().any(|handle| handle.try_cancel().is_ok());
            };
            let _ = thread::Builder::new().name("database-cancel".to_owned()).spawn(cancel);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(*self.0.lock(), State::Cancelled)
    }
}

/// Cancels a statement when its reader is dropped.
pub(crate) struct CancelOnDrop(pub(crate) Arc<Cancellation>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
