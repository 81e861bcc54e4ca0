//! The threads of the caches.

use bowshot_query_task::QueryRuntime;
use std::io;

/// Starts one ordinary thread for short background work.
pub(crate) fn beside() -> io::Result<QueryRuntime> {
    QueryRuntime::start_thread("beside", || {})
}

/// Starts one thread of the lowest priority.
pub(crate) fn background() -> io::Result<QueryRuntime> {
    QueryRuntime::start_thread("background", || {
        if let Err(error) = bowshot_ipc::os::lower_thread_priority() {
            tracing::warn!(%error, "background work competes with queries");
        }
    })
}
