//! Tasks on the query runtime that end when their caller is dropped.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_query_task::QueryRuntime;
use std::future::Future;
use tokio::task::{AbortHandle, JoinError};

#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a fallible future on the query runtime; dropping the returned future stops it.
pub(crate) async fn run<T, F>(runtime: &QueryRuntime, work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let task = runtime.spawn(work);
    let _guard = AbortOnDrop(task.abort_handle());
    task.await.unwrap_or_else(|error| Err(broken(error)))
}

pub(crate) fn broken(error: JoinError) -> Error {
    if error.is_cancelled() {
        Error::new(ErrorKind::Cancelled, "the query was cancelled")
    } else {
        panicked().with_source(error)
    }
}

pub(crate) fn panicked() -> Error {
    Error::internal("a query task panicked")
}
