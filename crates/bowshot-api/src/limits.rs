//! All limits of the server. Reaching one is an error of kind [`LimitReached`](crate::ErrorKind::LimitReached), never
//! silent loss.

use std::time::Duration;

/// Limits of one server process; the configuration's `[limits]` table has a key for each field.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Sessions open at once.
    pub max_sessions: usize,
    /// Client connections open at once, over all front ends that hold connections.
    pub max_connections: usize,
    /// Client connections that one address has open at once.
    pub max_connections_per_address: usize,
    /// Queries that run at once; more wait in line.
    pub max_running_queries: usize,
    /// Queries that one user runs at once.
    pub max_running_queries_per_user: usize,
    /// Queries that one session runs at once.
    pub max_running_queries_per_session: usize,
    /// Queries that may wait in line; more are refused.
    pub max_queued_queries: usize,
    /// Queries of one user that may wait in the queue.
    pub max_queued_queries_per_user: usize,
    /// Longest wait in line.
    pub queue_timeout: Duration,
    /// Longest run of one statement, from its arrival to its last batch, with waiting in line and planning; zero means no
    /// limit.
    pub statement_timeout: Duration,
    /// Longest planning of one statement, constant folding included; zero for no limit.
    pub planning_timeout: Duration,
    /// How long a result may lie unread before it is freed; while somebody reads it, it stays.
    pub result_timeout: Duration,
    /// How long a reader may leave rows lying that are ready for it; then the query ends and frees its slot. Zero means no
    /// limit.
    pub reader_timeout: Duration,
    /// How long an idle session without a connection stays open.
    pub session_timeout: Duration,
    /// An open transaction without a statement for this long is rolled back.
    pub transaction_timeout: Duration,
    /// Prepared statements open at once in one session.
    pub max_prepared_statements: usize,
    /// Bytes of statement texts and bound parameters that the prepared statements of one session hold together.
    pub max_prepared_bytes: usize,
    /// Rows of parameters in one bind.
    pub max_parameter_rows: usize,
    /// Bytes of batches that one partition of a result buffers in memory before it waits or spills.
    pub result_buffer_bytes: usize,
    /// Bytes on disk of results, over all queries, and of files of clients that are being sent.
    pub result_spill_bytes: u64,
    /// Memory of all running queries together (sorts, joins, aggregates).
    pub query_memory_bytes: usize,
    /// Memory of the whole process. When it is used up, statements that have more than their share end. Zero means no
    /// limit.
    pub memory_bytes: u64,
    /// Endpoints of one result.
    pub max_endpoints: usize,
    /// Longest SQL text, in bytes.
    pub max_sql_bytes: usize,
    /// Largest message that a front end accepts, in bytes.
    pub max_message_bytes: usize,
    /// Target size of the data messages that go out, in bytes; many clients refuse messages above 4 MiB.
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
