//! The statement that runs on a connection, so that another connection can cancel it.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The cancellation handle of the running statement.
#[derive(Debug, Default)]
pub struct RunningStatement(Mutex<Option<CancellationToken>>);

impl RunningStatement {
    /// A statement begins, which the token cancels.
    pub fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock() = Some(token.clone());
        token
    }

    /// The statement has ended: cancelling it later has no effect.
    pub fn end(&self) {
        *self.0.lock() = None;
    }

    /// Cancels the statement that runs; says whether there is one.
    pub fn cancel(&self) -> bool {
        let token = self.0.lock().clone();
        token.inspect(CancellationToken::cancel).is_some()
    }
}
