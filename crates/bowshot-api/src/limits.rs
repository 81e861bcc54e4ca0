//! All limits of the server. Reaching one is an error of kind [`LimitReached`](crate::ErrorKind::LimitReached), never
//! silent loss.

use std::time::Duration;

crate::defaults! {
    /// Limits of one server process; the configuration's `[limits]` table has a key for each field.
    #[derive(Debug, Clone)]
    pub struct Limits {
        pub max_sessions: usize = 10_000,
        /// Client connections of all front ends.
        pub max_connections: usize = 10_000,
        /// Client connections of one address.
        pub max_connections_per_address: usize = 9_000,
        /// Running queries; more are queued.
        pub max_running_queries: usize = 64,
        /// Queries that one user runs at once.
        pub max_running_queries_per_user: usize = 60,
        /// Queries that one session runs at once.
        pub max_running_queries_per_session: usize = 56,
        /// Queued queries; more are refused.
        pub max_queued_queries: usize = 1_024,
        /// Queries of one user that may wait in the queue.
        pub max_queued_queries_per_user: usize = 896,
        /// Longest time in the queue.
        pub queue_timeout: Duration = Duration::from_secs(60),
        /// Longest run of one statement, from its arrival to its last batch, queueing and planning included; zero for no
        /// limit.
        pub statement_timeout: Duration = Duration::from_secs(6 * 60 * 60),
        /// Longest planning of one statement, constant folding included; zero for no limit.
        pub planning_timeout: Duration = Duration::from_secs(60),
        /// How long an unread result is stored; reading it extends that.
        pub result_timeout: Duration = Duration::from_secs(60),
        /// How long a reader may leave available rows unread before the query fails and frees its slot; zero for no
        /// limit.
        pub reader_timeout: Duration = Duration::from_secs(10 * 60),
        /// How long an idle session without a connection stays open.
        pub session_timeout: Duration = Duration::from_secs(30 * 60),
        /// Idle transactions are rolled back after this time.
        pub transaction_timeout: Duration = Duration::from_secs(10 * 60),
        /// Prepared statements of one session.
        pub max_prepared_statements: usize = 1_000,
        /// Bytes of texts and parameters of the prepared statements of one session.
        pub max_prepared_bytes: usize = 512 << 20,
        /// Rows of parameters in one bind.
        pub max_parameter_rows: usize = 100_000,
        /// Bytes of batches that one partition of a result buffers in memory before it waits or spills.
        pub result_buffer_bytes: usize = 16 << 20,
        /// Disk space of all spilled results and uploads.
        pub result_spill_bytes: u64 = 32 << 30,
        /// Memory of all running queries (sorts, joins, aggregates).
        pub query_memory_bytes: usize = 8 << 30,
        /// Memory of the process. Beyond it, statements that use more than their share fail; zero for no limit.
        pub memory_bytes: u64 = 0,
        /// Endpoints of one result.
        pub max_endpoints: usize = 64,
        /// Longest SQL text, in bytes.
        pub max_sql_bytes: usize = 4 << 20,
        /// Largest accepted message, in bytes.
        pub max_message_bytes: usize = 256 << 20,
        /// Target size of sent data messages, in bytes; many clients refuse more than 4 MiB.
        pub message_bytes: usize = 2 << 20,
        /// Size of one early message of a long result on each connection, in bytes, for clients that accept messages of
        /// any size (Arrow C++ and its wrappers).
        pub large_message_bytes: usize = 16 << 20,
        /// How long running queries may finish after SIGTERM.
        pub drain_timeout: Duration = Duration::from_secs(30),
    }
}
