//! All limits of the server. Reaching one is an error of kind [`LimitReached`](crate::ErrorKind::LimitReached), never
//! silent loss.

use std::time::Duration;

/// Limits of one server process; the configuration's `[limits]` table has a key for each field.
#[derive(Debug, Clone)]
pub struct Limits {
    pub max_sessions: usize,
    /// Client connections of all front ends.
    pub max_connections: usize,
    /// Client connections of one address.
    pub max_connections_per_address: usize,
    /// Running queries; more are queued.
    pub max_running_queries: usize,
    /// Queries that one user runs at once.
    pub max_running_queries_per_user: usize,
    /// Queries that one session runs at once.
    pub max_running_queries_per_session: usize,
    /// Queued queries; more are refused.
    pub max_queued_queries: usize,
    /// Queries of one user that may wait in the queue.
    pub max_queued_queries_per_user: usize,
    /// Longest time in the queue.
    pub queue_timeout: Duration,
    /// Longest run of one statement, from its arrival to its last batch, queueing and planning included; zero for no
    /// limit.
    pub statement_timeout: Duration,
    /// Longest planning of one statement, constant folding included; zero for no limit.
    pub planning_timeout: Duration,
    /// How long an unread result is stored; reading it extends that.
    pub result_timeout: Duration,
    /// How long a reader may leave available rows unread before the query fails and frees its slot; zero for no
    /// limit.
    pub reader_timeout: Duration,
    /// How long an idle session without a connection stays open.
    pub session_timeout: Duration,
    /// Idle transactions are rolled back after this time.
    pub transaction_timeout: Duration,
    /// Prepared statements of one session.
    pub max_prepared_statements: usize,
    /// Bytes of texts and parameters of the prepared statements of one session.
    pub max_prepared_bytes: usize,
    /// Rows of parameters in one bind.
    pub max_parameter_rows: usize,
    /// Bytes of batches that one partition of a result buffers in memory before it waits or spills.
    pub result_buffer_bytes: usize,
    /// Disk space of all spilled results and uploads.
    pub result_spill_bytes: u64,
    /// Memory of all running queries (sorts, joins, aggregates).
    pub query_memory_bytes: usize,
    /// Memory of the process. Beyond it, statements that use more than their share fail; zero for no limit.
    pub memory_bytes: u64,
    /// Endpoints of one result.
    pub max_endpoints: usize,
    /// Longest SQL text, in bytes.
    pub max_sql_bytes: usize,
    /// Largest accepted message, in bytes.
    pub max_message_bytes: usize,
    /// Target size of sent data messages, in bytes; many clients refuse more than 4 MiB.
    pub message_bytes: usize,
    /// Size of one early message of a long result on each connection, in bytes, for clients that accept messages of
    /// any size (Arrow C++ and its wrappers).
    pub large_message_bytes: usize,
    /// How long running queries may finish after SIGTERM.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sessions: 10_000,
            max_connections: 10_000,
            max_connections_per_address: 9_000,
            max_running_queries: 64,
            max_running_queries_per_user: 60,
            max_running_queries_per_session: 56,
            max_queued_queries: 1_024,
            max_queued_queries_per_user: 896,
            queue_timeout: Duration::from_secs(60),
            statement_timeout: Duration::from_secs(6 * 60 * 60),
            planning_timeout: Duration::from_secs(60),
            result_timeout: Duration::from_secs(60),
            reader_timeout: Duration::from_secs(10 * 60),
            session_timeout: Duration::from_secs(30 * 60),
            transaction_timeout: Duration::from_secs(10 * 60),
            max_prepared_statements: 1_000,
            max_prepared_bytes: 512 << 20,
            max_parameter_rows: 100_000,
            result_buffer_bytes: 16 << 20,
            result_spill_bytes: 32 << 30,
            query_memory_bytes: 8 << 30,
            memory_bytes: 0,
            max_endpoints: 64,
            max_sql_bytes: 4 << 20,
            max_message_bytes: 256 << 20,
            message_bytes: 2 << 20,
            large_message_bytes: 16 << 20,
            drain_timeout: Duration::from_secs(30),
        }
    }
}
