//! Ctrl-C: the first press cancels the statement, the second ends the program, even while it is blocked on a pipe.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Listens as long as it lives.
#[derive(Debug)]
pub(super) struct Interrupts {
    state: Arc<State>,
    _listener: JoinSet<()>,
}

#[derive(Debug, Default)]
struct State {
    presses: AtomicUsize,
    pressed: Notify,
}

impl Interrupts {
    pub(super) fn listen() -> Self {
        let state = Arc::<State>::default();
        let listener = JoinSet::from_iter([listen(Arc::clone(&state))]);
        Self { state, _listener: listener }
    }

    /// A new statement begins: earlier presses do not count.
    pub(super) fn reset(&self) {
        self.state.presses.store(0, Ordering::SeqCst);
    }

    /// Resolves at the first press since [`Interrupts::reset`].
    pub(super) async fn pressed(&self) {
        loop {
            let notified = self.state.pressed.notified();
            if self.state.presses.load(Ordering::SeqCst) > 0 {
                return;
            }
            notified.await;
        }
    }
}

async fn listen(state: Arc<State>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if state.presses.fetch_add(1, Ordering::SeqCst) > 0 {
            process::exit(1);
        }
        state.pressed.notify_waiters();
    }
}
