//! The threads of the caches.

use bowshot_query_task::QueryRuntime;
use std::io;

/// Starts one ordinary thread for what is neither a query nor long work in the background.
///
/// # Errors
/// When the operating system gives no thread.
pub(crate) fn beside() -> io::Result<QueryRuntime> {
    QueryRuntime::start_thread("beside", || {})
}

/// Starts one thread that leaves the processor to others for the most part when they want it.
///
/// # Errors
/// When the operating system gives no thread.
pub(crate) fn background() -> io::Result<QueryRuntime> {
    QueryRuntime::start_thread("background", || {
        if let Err(error) = bowshot_os::lower_thread_priority() {
            tracing::warn!(%error, "background work competes with queries");
        }
    })
}
