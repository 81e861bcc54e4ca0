//! The one table of settings. Reading files, environment variables and flags, checking values, `bowshot check` and the
//! reference page all go through it; a setting that is not here does not exist.

use super::Config;
use super::slot::{Raw, Slot};
use std::path::Path;

/// One setting: its name (`section.key`, or `key` for those that are flags too), where its value lives, what it does.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) flag: Option<&'static str>,
    slot: fn(&mut Config) -> Slot<'_>,
    pub(crate) text: &'static str,
}

/// A row for each setting: `"name" "--flag": Type(place) = "what it does";`. Functions in place of rows would have three times
/// as many lines.
macro_rules! settings {
    ($($name:literal $($flag:literal)?: $kind:ident($($place:ident).+ $(, $least:literal)?) = $text:literal;)+) => {
        &[$(Setting {
            name: $name,
            flag: settings!(@flag $($flag)?),
            slot: |config| Slot::$kind(&mut config.$($place).+ $(, $least)?),
            text: $text,
        }),+]
    };
    (@flag) => { None };
    (@flag $flag:literal) => { Some($flag) };
}

/// All settings, in the order of the reference page.
pub(crate) const SETTINGS: &[Setting] = settings! {
    "paths" "PATH…": Sources(sources) =
        "files and folders to serve, also in object stores (s3://bucket/prefix, gs://, az://, https://); each is a path or NAME=PATH, with options as in NAME=PATH?header=false&delim=;";
    "flight" "--flight": Listen(flight) = "address of the Arrow Flight SQL front end";
    "http" "--http": Listen(http) =
        "address of the HTTP front end: SQL, health, readiness, metrics; the last three need no credentials";
    "http_cleartext": Truth(http_cleartext) =
        "let other machines send credentials to the HTTP front end over unencrypted connections";
    "http_origins": Text(http_origins) =
        "origins whose web pages may use the HTTP front end (CORS), such as https://example.org, with commas between";
    "http_mcp": Text(http_mcp) =
        "whether agents may use the Model Context Protocol at `/mcp` of the HTTP front end: `auto` where only this machine reaches it or users log in, `on` for the same or an error at the start, `off`";
    "pg" "--pg": Listen(pg) = "address of the PostgreSQL front end, for clients that speak its protocol";
    "pg_cleartext": Truth(pg_cleartext) =
        "let the PostgreSQL front end ask for passwords over unencrypted connections from other machines";
    "mysql" "--mysql": Listen(mysql) = "address of the MySQL front end, for clients that speak its protocol";
    "mysql_cleartext": Truth(mysql_cleartext) =
        "let the MySQL front end ask for passwords over unencrypted connections from other machines";
    "data" "--data": Data(data) =
        "folder of durable tables, created if missing; without it, or with `memory`, tables are lost when \
         the server stops";
    "dialect" "--dialect": Dialect(dialect) = "SQL dialect of new sessions";
    "ports_file" "--ports-file": Path(ports_file) =
        "file with the addresses and the process id as JSON, written when the server is ready and removed \
         when it stops";
    "insecure" "--insecure": Truth(insecure) = "allow listening beyond the loopback interface without users";
    "log" "--log": Text(log) = "what is logged: a level, or TARGET=LEVEL pairs with commas between";
    "log_format" "--log-format": LogFormat(log_format) = "log format";
    "log_file": Path(logged.file) =
        "log file; empty: stderr; opened again at SIGHUP, and within a minute after it was moved";
    "log_max_bytes": LongSize(logged.max_bytes) =
        "size at which the log file is rotated to `.1` (`.1` to `.2` and so on); 0: never";
    "log_daily": Truth(logged.daily) = "also rotate the log file at the end of each day (UTC)";
    "log_keep": Count(logged.keep, 1) = "rotated log files to keep; older ones are removed";
    "log_slow_after": Duration(logged.slow_after) =
        "log each statement that takes at least this long from arrival to end, with its text but without \
         passwords; 0: none";
    "metrics_query_tags": Truth(logged.count_tags) =
        "count statements by their `query_tag` at `/metrics`, where everybody can read it: the first 100 tags, and `other`";
    "tls.certificate" "--tls-certificate": Path(tls.certificate) =
        "file with the server's certificate chain (PEM); with it, Flight SQL, PostgreSQL and MySQL accept \
         TLS only, and HTTP accepts SQL from other machines over TLS only; reloaded when it changes";
    "tls.key" "--tls-key": Path(tls.key) =
        "file with the private key of that certificate (PEM, without a password)";
    "tls.client_authority" "--tls-client-authority": Path(tls.client_authority) =
        "file with the CA certificates (PEM) that issue client certificates, for every front end; reloaded \
         when it changes";
    "tls.client_revoked": Path(tls.client_revoked) =
        "file with the certificate revocation lists (PEM) of these CAs; with it, a certificate that no \
         current list covers is refused; reloaded when it changes";
    "tls.client_certificates": Text(tls.client_certificates) =
        "`optional`: clients log in with a certificate, a password or a token; `required`: every client \
         needs a certificate";
    "tls.client_name": Text(tls.client_name) =
        "which name of a certificate is the user's: `common_name` of its subject, or `email` or `dns` of its alternative names; there must be exactly one";
    "cluster.listen" "--cluster": Listen(cluster.listen) =
        "address of the internal port for the nodes of a cluster; off: no cluster";
    "cluster.join" "--join": Text(cluster.join) =
        "seed nodes of the cluster, HOST:PORT, comma-separated; the other nodes are discovered through them";
    "cluster.advertise" "--advertise": Text(cluster.advertise) =
        "HOST:PORT under which other nodes reach the internal port; empty: the address that it listens on";
    "cluster.public": Text(cluster.public) =
        "URI under which clients reach this node's Flight SQL front end, such as grpc+tls://one.example.org:50051; when empty, the host of `cluster.advertise` or `cluster.listen` with that front end's port";
    "cluster.tls.authority": Path(cluster.authority) =
        "file with the CA certificate of the cluster (PEM): every holder of a node certificate of this CA \
         is a node";
    "cluster.tls.certificate": Path(cluster.certificate) =
        "file with this node's certificate (PEM), as `bowshot cluster init` and `bowshot cluster add-node` make it";
    "cluster.tls.key": Path(cluster.key) =
        "file with the private key of that certificate (PEM, without a password)";
    "cluster.secret": Secret(cluster.secret) =
        "shared secret of at least 16 bytes, instead of certificates, for nodes on one machine; refused on \
         the command line";
    "cluster.heartbeat": Duration(cluster.heartbeat) = "interval of heartbeats between nodes";
    "cluster.suspect_after": Duration(cluster.suspect_after) =
        "time without a heartbeat after which a node gets no new work";
    "cluster.dead_after": Duration(cluster.dead_after) =
        "time without a heartbeat after which a node counts as lost";
    "cluster.bytes_per_thread": LongSize(cluster.bytes_per_thread) =
        "bytes of files per thread of a node above which a query uses one more node";
    "same_host.socket" "--local-socket": Text(same_host.socket) =
        "Unix socket over which Flight SQL clients on this machine exchange rows in shared memory: a path, \
         `none`, or `auto` (a path that the server chooses, below `XDG_RUNTIME_DIR` if set, while Flight \
         SQL listens on the loopback interface only)";
    "same_host.connection_bytes": LongSize(same_host.connection_bytes) =
        "shared memory that one connection may hold; further rows are sent through the socket; 0: no shared \
         memory";
    "same_host.user_bytes": LongSize(same_host.user_bytes) = "shared memory that all connections of a user \
        may hold";
    "same_host.total_bytes": LongSize(same_host.total_bytes) =
        "shared memory that all connections may hold, at most a quarter of the machine's memory and of \
         `limits.memory_bytes`";
    "access.users_file" "--users-file": Path(users_file) =
        "TOML file with [[users]] (name, password_hash; roles, admin, attributes), [[tokens]] (user, sha256; roles, admin), [[jwt]] (issuer, audiences …) and [[ldap]] (url …); the configuration file may hold them too, as [[access.users]] and so on";
    "access.enforced": Truth(enforced) =
        "deny by default even before the first access rule exists: only admins see tables";
    "access.token_timeout": Duration(access_options.token_timeout) =
        "lifetime of tokens that the server issues at login";
    "access.max_tokens_per_user": Count(access_options.max_tokens_per_user, 1) =
        "issued tokens per user; one more revokes the oldest";
    "access.max_password_checks": Count(access_options.max_password_checks, 1) =
        "passwords checked at once; each check takes a core and 19 MiB for tens of milliseconds";
    "access.decision_url": Text(decider.url) =
        "address of a policy service that must also allow each statement (https, or http on this machine); \
         without its decision no statement runs";
    "access.decision_timeout": Duration(decider.timeout) =
        "timeout of one decision; a statement without a decision is refused";
    "access.decision_connections": Count(decider.max_connections, 1) =
        "concurrent requests to the policy service; more wait, within the timeout";
    "access.decision_cache": Duration(decider.cache) =
        "how long a decision is cached for the same user, action and objects; 0: not cached";
    "access.decision_ca_file": Path(decider.ca_file) =
        "file with the CA certificates (PEM) for the policy service, instead of those of this machine";
    "access.decision_token": Secret(decider.token) = "bearer token that is sent to the policy service";
    "audit.file": Path(audit_file) =
        "audit file, one JSON object a line with the hash of the line before: user, statement, tables, \
         decision, rows, time; empty: no audit trail";
    "audit.max_bytes": LongSize(audit_max_bytes) =
        "size at which the audit file is rotated under a number";
    "audit.required": Truth(audit_required) =
        "refuse statements while the audit trail cannot be written";
    "engine.threads": Auto(threads) =
        "partitions of a plan; twice as many threads run queries; auto: the number of cores";
    "engine.batch_rows": Count(batch_rows, 1) = "rows of one batch between operators";
    "engine.metadata_cache_bytes": Size(metadata_cache_bytes) = "memory for Parquet footers";
    "engine.plan_cache_entries": Count(plan_cache_entries, 0) =
        "plans in the plan cache, over all sessions; 0: no plan cache";
    "engine.spill_folder": Path(spill_folder) =
        "folder on disk for spilled data of running queries; empty: `spill` in the data folder, or \
         `/var/tmp` without one";
    "engine.spill_bytes": LongSize(spill_bytes) = "disk space for spilled data of all running queries";
    "engine.scratch": Truth(scratch) =
        "give each session an empty catalog of its own in memory, in which it may create and change tables, in place of the served files";
    "storage.refresh": Duration(storage.refresh) =
        "how often a table in use is checked for new, changed and deleted files";
    "storage.sample_rows": Count(storage.sample_rows, 1) =
        "rows of each CSV or JSON file from which its column types are taken";
    "storage.max_files_per_table": Count(storage.max_files_per_table, 1) = "files of one table";
    "storage.max_depth": Count(storage.max_depth, 1) = "greatest depth of folders below the folder of a \
        table";
    "storage.max_open_files": Count(storage.max_open_files, 1) = "file handles kept open over all tables";
    "storage.scan_threads": Count(storage.scan_threads, 1) = "threads that read headers and footers of files";
    "storage.memory_bytes": LongSize(table_bytes) = "memory for the rows of tables that are kept in memory";
    "storage.temporary_bytes": LongSize(temporary_bytes) =
        "memory for the rows of the temporary tables of one session";
    "storage.column_cache_bytes": LongSize(column_cache_bytes) =
        "memory for decoded columns of Parquet files that are scanned repeatedly, at most a quarter of the machine's and of `limits.memory_bytes`; 0: no column cache";
    "storage.tables": Text(tables.address) =
        "object store location for the files of durable tables, such as s3://bucket/prefix; the catalog and \
         cached copies stay in the data folder; empty: all files are in the data folder";
    "storage.tables_cache_bytes": LongSize(tables.cache_bytes) =
        "disk space in the data folder for cached copies of table files in an object store; the least \
         recently read ones are evicted first";
    "storage.exchange_folder": Path(exchange_folder) =
        "the only folder whose files COPY may read and write, for every user; empty: COPY is refused";
    "storage.read_by_path": Truth(storage.read_by_path) =
        "let statements read files by their path: `FROM 'orders/*.csv'`, `read_csv(…)`";
    "storage.read_folder": Path(storage.read_folder) =
        "the only folder whose files statements may read by path; empty: the served files and folders";
    "models.onnx_runtime": Path(onnx_runtime) =
        "library of ONNX Runtime (`libonnxruntime.so`) for ONNX models other than tree ensembles; without it they are refused";
    "object_store.refresh": Duration(remote.refresh) =
        "how often object store locations in use are listed again";
    "object_store.timeout": Duration(remote.timeout) =
        "timeout of one read, listing or upload part, over all attempts";
    "object_store.request_timeout": Duration(remote.request_timeout) =
        "timeout of one request to an object store";
    "object_store.max_retries": Count(remote.max_retries, 0) =
        "retries of requests that failed with a transient error";
    "object_store.max_requests": Count(remote.max_requests, 1) =
        "concurrent requests to one bucket";
    "object_store.cache_bytes": LongSize(remote.cache_bytes) =
        "disk space for the block cache of files in object stores; 0: no block cache";
    "object_store.cache_folder": Path(remote.cache_folder) =
        "folder of the block cache, used by this server only; empty: `object_cache` in the data folder, or \
         without one a folder that is removed when the server stops";
    "object_store.read": Addresses(remote.read) =
        "object store locations whose files administrators may name in statements: `FROM \
         's3://bucket/prefix/*.parquet'`, `read_csv(…)`; empty: none, whatever is served";
    "object_store.exchange": Addresses(remote.exchange) =
        "object store locations that COPY may read and write, for every user; empty: none";
    "object_store.endpoints": Addresses(remote.endpoints) =
        "endpoints of object stores that secrets (CREATE SECRET) may name, beside those of `[[object_store.places]]` and of the environment";
    "secrets.key": Text(secrets_key) =
        "key that encrypts the values of secrets: `env:NAME` or `file:PATH`, 32 bytes in Base64 or \
         hexadecimal digits; empty: the file `secrets.key` in the data folder, created when needed";
    "attach.places": Places(databases.attach) =
        "locations of other databases that admins may open with ATTACH: `postgres://host:port/`, \
         `mysql://host:port/`, `grpc://host:port`, `sqlite:///folder`, `ducklake:///folder`; empty: none";
    "drivers.postgres": Path(drivers.postgres) =
        "ADBC driver (a shared library) for PostgreSQL databases that name none";
    "drivers.sqlite": Path(drivers.sqlite) = "ADBC driver for SQLite databases that name none";
    "drivers.duckdb": Path(drivers.duckdb) = "ADBC driver for DuckDB databases that name none: DuckDB's own \
        shared library";
    "drivers.flightsql": Path(drivers.flightsql) = "ADBC driver for Flight SQL servers that name none";
    "join_cache.enabled": Truth(reuse.joins.enabled) =
        "cache repeated joins, and compute predicted ones ahead";
    "join_cache.memory_bytes": LongSize(reuse.joins.memory_bytes) =
        "memory for the rows of cached joins; computing them may take as much again";
    "join_cache.disk_bytes": LongSize(reuse.joins.disk_bytes) =
        "disk space for cached joins that were evicted from memory or are kept over a restart";
    "join_cache.folder": Path(reuse.joins.folder) =
        "folder for cached joins on disk, for this server only; empty: `join_cache` in the data folder, none without a data folder";
    "join_cache.fill_after": LongCount(reuse.joins.fill_after, 1) =
        "requests for a join, or a similar one, before it is cached; 1: at once";
    "join_cache.wait": Duration(reuse.joins.wait) =
        "how long a query waits for a join that is being computed for the cache; 0: it computes the join \
         itself";
    "join_cache.forecast": Truth(reuse.joins.forecast) =
        "compute joins ahead when a table appears or changes";
    "join_cache.history": Count(reuse.joins.history, 1) = "join templates in the history";
    "join_cache.fill_timeout": Duration(reuse.joins.fill_timeout) =
        "time limit for computing one join for the cache, without the time in which it is paused for queries";
    "join_cache.busy_percent": Count(reuse.joins.busy_percent, 1) =
        "percent of one processor for computing joins ahead while queries run; 100 or more: no limit";
    "result_cache.memory_bytes": LongSize(reuse.results.memory_bytes) =
        "memory for the result cache, which answers equal queries over unchanged tables; one result takes \
         an eighth of it at most; 0: no result cache";
    "result_cache.disk_bytes": LongSize(reuse.results.disk_bytes) =
        "disk space in the data folder for cached results that were used at least once; they survive a \
         restart; 0: none";
    "views.suggest_every": Duration(views.suggest_every) =
        "how often the server searches the query log for materialized views that would answer queries \
         (`system.suggested_views`); 0: never";
    "views.automatic": Truth(views.automatic) =
        "create suggested views automatically, in memory, and drop unused ones";
    "views.memory_bytes": LongSize(views.memory_bytes) = "memory for the rows of automatically created views";
    "views.refresh_percent": Count(views.refresh_percent, 1) =
        "percent of one processor for refreshing automatically created views";
    "views.unused_after": Duration(views.unused_after) =
        "how long an automatically created view is kept without answering a query";
    "traces.endpoint": Text(traces.endpoint) =
        "collector of traces, OTLP over gRPC, such as http://127.0.0.1:4317; empty: no traces";
    "traces.sample_ratio": Share(traces.sample_ratio) =
        "share of calls to trace where the caller's `traceparent` does not decide it";
    "traces.ca_file": Path(traces.ca_file) =
        "file with the CA certificates (PEM) for a collector at https; empty: those of this machine";
    "traces.headers_file": Path(traces.headers_file) =
        "file with headers for the collector, one `name: value` on each line";
    "traces.timeout": Duration(traces.timeout) =
        "timeout of one export to the collector; statements do not wait for it";
    "traces.service_name": Text(traces.service_name) =
        "service name of this server in traces";
    "traces.statements": Truth(traces.statements) =
        "include the texts of statements in traces, without passwords";
    "limits.max_sessions": Count(limits.max_sessions, 1) = "sessions open at once";
    "limits.max_connections": Count(limits.max_connections, 1) = "client connections open at once";
    "limits.max_connections_per_address": Count(limits.max_connections_per_address, 1) =
        "client connections that one address (of IPv6, one /64 network) has open at once";
    "limits.max_running_queries": Count(limits.max_running_queries, 1) =
        "queries that run at once; more wait in the queue";
    "limits.max_running_queries_per_user": Count(limits.max_running_queries_per_user, 1) =
        "queries that one user runs at once";
    "limits.max_running_queries_per_session": Count(limits.max_running_queries_per_session, 1) =
        "queries that one session runs at once";
    "limits.max_queued_queries": Count(limits.max_queued_queries, 0) =
        "queries that may wait in the queue; more are refused";
    "limits.max_queued_queries_per_user": Count(limits.max_queued_queries_per_user, 0) =
        "queries of one user that may wait in the queue";
    "limits.queue_timeout": Duration(limits.queue_timeout) = "longest wait in the queue";
    "limits.statement_timeout": Duration(limits.statement_timeout) =
        "statement timeout, from arrival to the last batch or the commit, with queueing and planning; 0: no \
         limit";
    "limits.planning_timeout": Duration(limits.planning_timeout) =
        "planning timeout of one statement, with the evaluation of constants; 0: no separate limit";
    "limits.result_timeout": Duration(limits.result_timeout) =
        "how long an unread result is kept; one that is being read is not freed";
    "limits.reader_timeout": Duration(limits.reader_timeout) =
        "how long a client may leave available rows unread before its query is ended and its slot freed; 0: \
         no limit";
    "limits.session_timeout": Duration(limits.session_timeout) = "how long a session may stay unused";
    "limits.transaction_timeout": Duration(limits.transaction_timeout) =
        "an open transaction without a statement for this long is rolled back";
    "limits.max_prepared_statements": Count(limits.max_prepared_statements, 1) =
        "prepared statements open at once in one session";
    "limits.max_prepared_bytes": Size(limits.max_prepared_bytes) =
        "statement texts and bound parameters that the prepared statements of one session hold together";
    "limits.max_parameter_rows": Count(limits.max_parameter_rows, 1) = "rows of parameters in one bind";
    "limits.result_buffer_bytes": Size(limits.result_buffer_bytes) =
        "memory for the batches of one partition of a result before it waits or spills";
    "limits.result_spill_bytes": LongSize(limits.result_spill_bytes) =
        "disk for results that wait to be read and Parquet files that are being sent, over all queries";
    "limits.query_memory_bytes": Size(limits.query_memory_bytes) =
        "memory of all running queries together (sorts, joins, aggregates)";
    "limits.memory_bytes": LongSize(limits.memory_bytes) =
        "memory of the whole process: when it is used up, statements above their share are ended; 0: seven \
         eighths of the memory of the machine or its control group";
    "limits.max_endpoints": Count(limits.max_endpoints, 1) = "endpoints of one result";
    "limits.max_sql_bytes": Size(limits.max_sql_bytes) = "longest SQL text";
    "limits.max_message_bytes": Size(limits.max_message_bytes) = "largest message that a client may send";
    "limits.message_bytes": Size(limits.message_bytes) =
        "target size of the data messages that go out; many clients refuse messages above 4 MiB";
    "limits.large_message_bytes": Size(limits.large_message_bytes) =
        "size of one message on each connection, early in a long result, for clients that accept any size: Arrow C++ and what is built on it (pyarrow, R, ODBC)";
    "limits.drain_timeout": Duration(limits.drain_timeout) = "how long SIGTERM lets running queries finish";
};

impl Setting {
    /// The environment variable: `BOWSHOT_` and the name in capitals, dots as underscores.
    pub(crate) fn variable(&self) -> String {
        format!("BOWSHOT_{}", self.name.to_ascii_uppercase().replace('.', "_"))
    }

    /// Puts a value in its place. Relative paths start at `base`, if there is one.
    pub(super) fn set(&self, config: &mut Config, raw: &Raw, base: Option<&Path>) -> Result<(), String> {
        (self.slot)(config).set(raw, base)
    }

    /// The value in the form in which it can be set.
    pub(crate) fn show(&self, config: &mut Config) -> String {
        (self.slot)(config).show()
    }

    pub(crate) fn kind(&self) -> &'static str {
        // Only the variant counts, so any configuration will do.
        (self.slot)(&mut Config::default()).kind()
    }

    /// Whether the value is shown to nobody.
    pub(super) fn is_secret(&self) -> bool {
        matches!((self.slot)(&mut Config::default()), Slot::Secret(_))
    }

    /// Whether a number with a fraction can be a value.
    pub(super) fn is_share(&self) -> bool {
        matches!((self.slot)(&mut Config::default()), Slot::Share(_))
    }

    /// Whether the setting takes a list; its environment variable then separates the entries with `:`.
    pub(super) fn is_list(&self) -> bool {
        matches!((self.slot)(&mut Config::default()), Slot::Sources(_) | Slot::Addresses(_) | Slot::Places(_))
    }
}
