//! tidy: long because it is one table.
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

const fn flag(
    name: &'static str,
    flag: &'static str,
    slot: fn(&mut Config) -> Slot<'_>,
    text: &'static str,
) -> Setting {
    Setting { name, flag: Some(flag), slot, text }
}

const fn key(name: &'static str, slot: fn(&mut Config) -> Slot<'_>, text: &'static str) -> Setting {
    Setting { name, flag: None, slot, text }
}

/// All settings, in the order of the reference page.
pub(crate) const SETTINGS: &[Setting] = &[
    flag(
        "paths",
        "PATH…",
        |c| Slot::Sources(&mut c.sources),
        "files and folders to serve, also in object stores (s3://bucket/prefix, gs://, az://, https://); each is a path or NAME=PATH, with options as in NAME=PATH?header=false&delim=;",
    ),
    flag("flight", "--flight", |c| Slot::Listen(&mut c.flight), "address of the Arrow Flight SQL front end"),
    flag(
        "http",
        "--http",
        |c| Slot::Listen(&mut c.http),
        "address of the HTTP front end: SQL, health, readiness, metrics; the last three need no credentials",
    ),
    key(
        "http_cleartext",
        |c| Slot::Truth(&mut c.http_cleartext),
        "let other machines send credentials to the HTTP front end over connections that are not encrypted",
    ),
    key(
        "http_origins",
        |c| Slot::Text(&mut c.http_origins),
        "origins whose web pages may use the HTTP front end (CORS), such as https://example.org, with commas between",
    ),
    flag(
        "pg",
        "--pg",
        |c| Slot::Listen(&mut c.pg),
        "address of the PostgreSQL front end, for clients that speak its protocol",
    ),
    key(
        "pg_cleartext",
        |c| Slot::Truth(&mut c.pg_cleartext),
        "let the PostgreSQL front end ask for passwords over connections of other machines that are not encrypted",
    ),
    flag(
        "mysql",
        "--mysql",
        |c| Slot::Listen(&mut c.mysql),
        "address of the MySQL front end, for clients that speak its protocol",
    ),
    key(
        "mysql_cleartext",
        |c| Slot::Truth(&mut c.mysql_cleartext),
        "let the MySQL front end ask for passwords over connections of other machines that are not encrypted",
    ),
    flag(
        "data",
        "--data",
        |c| Slot::Data(&mut c.data),
        "folder of durable tables, made if need be; `memory`, or nothing: tables end with the server",
    ),
    flag("dialect", "--dialect", |c| Slot::Dialect(&mut c.dialect), "SQL dialect of new sessions"),
    flag(
        "ports_file",
        "--ports-file",
        |c| Slot::Path(&mut c.ports_file),
        "file that is written when the server is ready: its addresses and process id as JSON; removed at the end",
    ),
    flag(
        "insecure",
        "--insecure",
        |c| Slot::Truth(&mut c.insecure),
        "listen beyond this machine although no users are configured",
    ),
    flag(
        "log",
        "--log",
        |c| Slot::Text(&mut c.log),
        "what is logged: a level, or TARGET=LEVEL pairs with commas between",
    ),
    flag("log_format", "--log-format", |c| Slot::LogFormat(&mut c.log_format), "how the log looks on stderr"),
    flag(
        "tls.certificate",
        "--tls-certificate",
        |c| Slot::Path(&mut c.tls.certificate),
        "file with the server's certificate and those that lead to its authority (PEM): Flight SQL, PostgreSQL and MySQL speak TLS only, HTTP with other machines for SQL; read again when it changes",
    ),
    flag(
        "tls.key",
        "--tls-key",
        |c| Slot::Path(&mut c.tls.key),
        "file with the private key of that certificate (PEM, without a password)",
    ),
    flag(
        "tls.client_authority",
        "--tls-client-authority",
        |c| Slot::Path(&mut c.tls.client_authority),
        "file with the certificates of the authorities (PEM) whose certificates say who a client is, at every front end; read again when it changes",
    ),
    key(
        "tls.client_revoked",
        |c| Slot::Path(&mut c.tls.client_revoked),
        "file with the lists of certificates that these authorities have revoked (PEM); with it, a certificate that no list in date covers is refused; read again when it changes",
    ),
    key(
        "tls.client_certificates",
        |c| Slot::Text(&mut c.tls.client_certificates),
        "whether clients need a certificate: `optional`, so that passwords and tokens do too, or `required`, so that nobody connects without one",
    ),
    key(
        "tls.client_name",
        |c| Slot::Text(&mut c.tls.client_name),
        "which name of a certificate is the user's: `common_name` of its subject, or `email` or `dns` of its alternative names; there must be exactly one",
    ),
    flag(
        "cluster.listen",
        "--cluster",
        |c| Slot::Listen(&mut c.cluster.listen),
        "address of the internal port, over which the nodes of a cluster reach one another; off: the server is alone",
    ),
    flag(
        "cluster.join",
        "--join",
        |c| Slot::Text(&mut c.cluster.join),
        "HOST:PORT of nodes of the cluster that are asked first, with commas between; they tell of the others",
    ),
    flag(
        "cluster.advertise",
        "--advertise",
        |c| Slot::Text(&mut c.cluster.advertise),
        "HOST:PORT under which other nodes reach the internal port; where it listens, when empty",
    ),
    key(
        "cluster.public",
        |c| Slot::Text(&mut c.cluster.public),
        "URI under which clients reach this node's Flight SQL front end, such as grpc+tls://one.example.org:50051; when empty, the host of `cluster.advertise` or `cluster.listen` with that front end's port",
    ),
    key(
        "cluster.tls.authority",
        |c| Slot::Path(&mut c.cluster.authority),
        "file with the certificate of the cluster's own authority (PEM): whoever has a certificate of it for a node is one",
    ),
    key(
        "cluster.tls.certificate",
        |c| Slot::Path(&mut c.cluster.certificate),
        "file with this node's certificate (PEM), as `bowshot cluster init` and `bowshot cluster add-node` make it",
    ),
    key(
        "cluster.tls.key",
        |c| Slot::Path(&mut c.cluster.key),
        "file with the private key of that certificate (PEM, without a password)",
    ),
    key(
        "cluster.secret",
        |c| Slot::Secret(&mut c.cluster.secret),
        "instead of certificates, for nodes on one machine: what all of them know, 16 bytes or more; not on the command line",
    ),
    key(
        "cluster.heartbeat",
        |c| Slot::Duration(&mut c.cluster.heartbeat),
        "how often each node asks every other one",
    ),
    key(
        "cluster.suspect_after",
        |c| Slot::Duration(&mut c.cluster.suspect_after),
        "how long a node may be silent before it gets no more work",
    ),
    key(
        "cluster.dead_after",
        |c| Slot::Duration(&mut c.cluster.dead_after),
        "how long a node may be silent before it counts as gone",
    ),
    key(
        "cluster.bytes_per_thread",
        |c| Slot::LongSize(&mut c.cluster.bytes_per_thread),
        "bytes of files for each thread of a node from which on a query is worth another node",
    ),
    flag(
        "same_host.socket",
        "--local-socket",
        |c| Slot::Text(&mut c.same_host.socket),
        "Unix socket over which Flight SQL clients on this machine get and send rows in shared memory: a path, `none`, or `auto`, which is a place of the server's own (below `XDG_RUNTIME_DIR` where that is set) while Flight SQL listens on this machine alone",
    ),
    key(
        "same_host.connection_bytes",
        |c| Slot::LongSize(&mut c.same_host.connection_bytes),
        "shared memory that one connection may have mapped and not given back; further rows come through the socket; nothing is mapped when 0",
    ),
    key(
        "same_host.user_bytes",
        |c| Slot::LongSize(&mut c.same_host.user_bytes),
        "the same for all connections of a user",
    ),
    key(
        "same_host.total_bytes",
        |c| Slot::LongSize(&mut c.same_host.total_bytes),
        "the same for all, at most a quarter of the machine's memory and of `limits.memory_bytes`",
    ),
    flag(
        "access.users_file",
        "--users-file",
        |c| Slot::Path(&mut c.users_file),
        "TOML file with [[users]] (name, password_hash; roles, admin, attributes), [[tokens]] (user, sha256; roles, admin), [[jwt]] (issuer, audiences …) and [[ldap]] (url …); the configuration file may hold them too, as [[access.users]] and so on",
    ),
    key(
        "access.enforced",
        |c| Slot::Truth(&mut c.enforced),
        "whether users need rights even before there is any rule: nobody but admins sees a table then",
    ),
    key(
        "access.token_timeout",
        |c| Slot::Duration(&mut c.access_options.token_timeout),
        "how long a token is valid that the server issued at login",
    ),
    key(
        "access.max_tokens_per_user",
        |c| Slot::Count(&mut c.access_options.max_tokens_per_user, 1),
        "issued tokens that a user may hold; one more ends the oldest",
    ),
    key(
        "access.max_password_checks",
        |c| Slot::Count(&mut c.access_options.max_password_checks, 1),
        "passwords checked at once; each check takes a core and 19 MiB for tens of milliseconds",
    ),
    key(
        "access.decision_url",
        |c| Slot::Text(&mut c.decider.url),
        "address of a service that decides on each statement beside the rules (https, or http on this machine); without a decision nothing runs",
    ),
    key(
        "access.decision_timeout",
        |c| Slot::Duration(&mut c.decider.timeout),
        "how long that decision may take; later there is none",
    ),
    key(
        "access.decision_connections",
        |c| Slot::Count(&mut c.decider.max_connections, 1),
        "decisions that are asked for at once; more wait, within the timeout",
    ),
    key(
        "access.decision_cache",
        |c| Slot::Duration(&mut c.decider.cache),
        "how long a decision holds for the very same question, of the same user about the same things; 0 asks each time",
    ),
    key(
        "access.decision_ca_file",
        |c| Slot::Path(&mut c.decider.ca_file),
        "authorities that vouch for that service (PEM), in place of those of this machine",
    ),
    key(
        "access.decision_token",
        |c| Slot::Secret(&mut c.decider.token),
        "bearer token that is shown to that service",
    ),
    key(
        "audit.file",
        |c| Slot::Path(&mut c.audit_file),
        "file of the audit trail, one JSON object a line with the hash of the one before: who, what, which tables, whether it was allowed, rows, time; none is written without it",
    ),
    key(
        "audit.max_bytes",
        |c| Slot::LongSize(&mut c.audit_max_bytes),
        "size of that file at which it is set aside under a number and the next one begun",
    ),
    key(
        "audit.required",
        |c| Slot::Truth(&mut c.audit_required),
        "whether no statement is taken while the audit trail cannot be written",
    ),
    key(
        "engine.threads",
        |c| Slot::Auto(&mut c.threads),
        "threads that run queries, and partitions of a plan; auto means one for each core",
    ),
    key("engine.batch_rows", |c| Slot::Count(&mut c.batch_rows, 1), "rows of one batch between operators"),
    key(
        "engine.metadata_cache_bytes",
        |c| Slot::Size(&mut c.metadata_cache_bytes),
        "memory for Parquet footers",
    ),
    key(
        "engine.spill_folder",
        |c| Slot::Path(&mut c.spill_folder),
        "folder for what running queries spill, on disk; `spill` in the data folder when empty, `/var/tmp` without one",
    ),
    key(
        "engine.spill_bytes",
        |c| Slot::LongSize(&mut c.spill_bytes),
        "disk that running queries may spill to, all together",
    ),
    key(
        "engine.scratch",
        |c| Slot::Truth(&mut c.scratch),
        "give each session an empty catalog of its own in memory, in which it may create and change tables, in place of the served files",
    ),
    key(
        "storage.refresh",
        |c| Slot::Duration(&mut c.storage.refresh),
        "how often a table in use is checked for new, changed and deleted files",
    ),
    key(
        "storage.sample_rows",
        |c| Slot::Count(&mut c.storage.sample_rows, 1),
        "rows of each CSV or JSON file from which its column types are taken",
    ),
    key(
        "storage.max_files_per_table",
        |c| Slot::Count(&mut c.storage.max_files_per_table, 1),
        "files of one table",
    ),
    key(
        "storage.max_depth",
        |c| Slot::Count(&mut c.storage.max_depth, 1),
        "folders below the folder of a table",
    ),
    key(
        "storage.max_open_files",
        |c| Slot::Count(&mut c.storage.max_open_files, 1),
        "file handles kept open over all tables",
    ),
    key(
        "storage.scan_threads",
        |c| Slot::Count(&mut c.storage.scan_threads, 1),
        "threads that read headers and footers of files",
    ),
    key(
        "storage.memory_bytes",
        |c| Slot::LongSize(&mut c.table_bytes),
        "memory for the rows of tables that are kept in memory",
    ),
    key(
        "storage.temporary_bytes",
        |c| Slot::LongSize(&mut c.temporary_bytes),
        "memory for the rows of the temporary tables of one session",
    ),
    key(
        "storage.column_cache_bytes",
        |c| Slot::LongSize(&mut c.column_cache_bytes),
        "memory for decoded columns of Parquet files that are scanned repeatedly, at most a quarter of the machine's and of `limits.memory_bytes`; nothing is kept when 0",
    ),
    key(
        "storage.tables",
        |c| Slot::Text(&mut c.tables.address),
        "place in an object store for the files of durable tables, such as s3://bucket/prefix; the catalog stays in the data folder, which has copies; the data folder alone when empty",
    ),
    key(
        "storage.tables_cache_bytes",
        |c| Slot::LongSize(&mut c.tables.cache_bytes),
        "disk in the data folder for copies of files of tables that are in an object store; those that nobody has read for the longest time go first",
    ),
    key(
        "storage.exchange_folder",
        |c| Slot::Path(&mut c.exchange_folder),
        "the one folder whose files COPY may read and write, for every user; COPY is refused when empty",
    ),
    key(
        "storage.read_by_path",
        |c| Slot::Truth(&mut c.storage.read_by_path),
        "let statements read files by their path: `FROM 'orders/*.csv'`, `read_csv(…)`",
    ),
    key(
        "storage.read_folder",
        |c| Slot::Path(&mut c.storage.read_folder),
        "the one folder whose files statements may read by their path; the served files and folders when empty",
    ),
    key(
        "models.onnx_runtime",
        |c| Slot::Path(&mut c.onnx_runtime),
        "the library of ONNX Runtime (`libonnxruntime.so`), which computes ONNX models that are no tree ensembles; without it they are refused",
    ),
    key(
        "object_store.refresh",
        |c| Slot::Duration(&mut c.remote.refresh),
        "how often what is in use of an object store is listed again",
    ),
    key(
        "object_store.timeout",
        |c| Slot::Duration(&mut c.remote.timeout),
        "longest wait for one read, listing or part of an upload, with all attempts",
    ),
    key(
        "object_store.request_timeout",
        |c| Slot::Duration(&mut c.remote.request_timeout),
        "longest single request to an object store",
    ),
    key(
        "object_store.max_retries",
        |c| Slot::Count(&mut c.remote.max_retries, 0),
        "attempts after the first, of requests that failed in a way that may pass",
    ),
    key(
        "object_store.max_requests",
        |c| Slot::Count(&mut c.remote.max_requests, 1),
        "requests that are open at once to one bucket",
    ),
    key(
        "object_store.cache_bytes",
        |c| Slot::LongSize(&mut c.remote.cache_bytes),
        "disk for parts of files in object stores that were read; nothing is kept when 0",
    ),
    key(
        "object_store.cache_folder",
        |c| Slot::Path(&mut c.remote.cache_folder),
        "folder for them, for this server alone; `object_cache` in the data folder when empty, and without one a folder that goes with the server",
    ),
    key(
        "object_store.read",
        |c| Slot::Addresses(&mut c.remote.read),
        "places in object stores whose files statements of administrators may read by their address: `FROM 's3://bucket/prefix/*.parquet'`, `read_csv(…)`; none when empty, whatever is served",
    ),
    key(
        "object_store.exchange",
        |c| Slot::Addresses(&mut c.remote.exchange),
        "places in object stores whose files COPY may read and write, for every user; none when empty",
    ),
    key(
        "object_store.endpoints",
        |c| Slot::Addresses(&mut c.remote.endpoints),
        "endpoints of object stores that secrets (CREATE SECRET) may name, beside those of `[[object_store.places]]` and of the environment",
    ),
    key(
        "secrets.key",
        |c| Slot::Text(&mut c.secrets_key),
        "where the key is that seals the values of secrets: `env:NAME` or `file:PATH`, 32 bytes in Base64 or as hexadecimal digits; when empty, a file `secrets.key` in the data folder, made when it is needed",
    ),
    key(
        "attach.places",
        |c| Slot::Places(&mut c.databases.attach),
        "places of other databases that admins may open with ATTACH: `postgres://host:port/`, `mysql://host:port/`, `grpc://host:port`, `sqlite:///folder`, `ducklake:///folder`; none when empty",
    ),
    key(
        "drivers.postgres",
        |c| Slot::Path(&mut c.drivers.postgres),
        "the ADBC driver (a shared library) of databases of PostgreSQL that name none",
    ),
    key("drivers.sqlite", |c| Slot::Path(&mut c.drivers.sqlite), "the same of SQLite"),
    key(
        "drivers.duckdb",
        |c| Slot::Path(&mut c.drivers.duckdb),
        "the same of DuckDB, whose library is its own driver",
    ),
    key(
        "drivers.flightsql",
        |c| Slot::Path(&mut c.drivers.flightsql),
        "the same of servers that speak Flight SQL",
    ),
    key(
        "join_cache.enabled",
        |c| Slot::Truth(&mut c.reuse.joins.enabled),
        "keep joins that are asked for repeatedly, and compute those that come next before they are asked for",
    ),
    key(
        "join_cache.memory_bytes",
        |c| Slot::LongSize(&mut c.reuse.joins.memory_bytes),
        "memory for the rows of cached joins; computing them may take as much again",
    ),
    key(
        "join_cache.disk_bytes",
        |c| Slot::LongSize(&mut c.reuse.joins.disk_bytes),
        "disk for cached joins that have left memory or are to survive a restart",
    ),
    key(
        "join_cache.folder",
        |c| Slot::Path(&mut c.reuse.joins.folder),
        "folder for cached joins on disk, for this server alone; `join_cache` in the data folder when empty, none without a data folder",
    ),
    key(
        "join_cache.fill_after",
        |c| Slot::LongCount(&mut c.reuse.joins.fill_after, 1),
        "how often a join, or one like it, is asked for before it is cached; 1 means at once",
    ),
    key(
        "join_cache.wait",
        |c| Slot::Duration(&mut c.reuse.joins.wait),
        "how long a query waits for its join if that is being computed for the cache just then; 0 means that it goes ahead by itself",
    ),
    key(
        "join_cache.forecast",
        |c| Slot::Truth(&mut c.reuse.joins.forecast),
        "compute joins ahead when a table appears or changes",
    ),
    key(
        "join_cache.history",
        |c| Slot::Count(&mut c.reuse.joins.history, 1),
        "templates of joins that are remembered",
    ),
    key(
        "join_cache.fill_timeout",
        |c| Slot::Duration(&mut c.reuse.joins.fill_timeout),
        "longest computation of one join for the cache, without the time in which it steps aside",
    ),
    key(
        "join_cache.busy_percent",
        |c| Slot::Count(&mut c.reuse.joins.busy_percent, 1),
        "percent of one processor that computing ahead takes at most while queries run; 100 and more is no restriction",
    ),
    key(
        "result_cache.memory_bytes",
        |c| Slot::LongSize(&mut c.reuse.results.memory_bytes),
        "memory for whole results, which are given again to whoever asks the same over unchanged tables; one result takes an eighth of it at most; nothing is kept when 0",
    ),
    key(
        "result_cache.disk_bytes",
        |c| Slot::LongSize(&mut c.reuse.results.disk_bytes),
        "disk for results that were given again once, in the folder of the tables: they survive a restart; nothing is written when 0",
    ),
    key(
        "traces.endpoint",
        |c| Slot::Text(&mut c.traces.endpoint),
        "collector that gets traces by OTLP over gRPC, such as http://127.0.0.1:4317; none are made when empty",
    ),
    key(
        "traces.sample_ratio",
        |c| Slot::Share(&mut c.traces.sample_ratio),
        "share of the calls that are traced whose callers do not say it in their `traceparent`",
    ),
    key(
        "traces.ca_file",
        |c| Slot::Path(&mut c.traces.ca_file),
        "authorities that may vouch for a collector at https, in PEM form; those of this machine when empty",
    ),
    key(
        "traces.headers_file",
        |c| Slot::Path(&mut c.traces.headers_file),
        "file with headers for the collector, one `name: value` on each line",
    ),
    key(
        "traces.timeout",
        |c| Slot::Duration(&mut c.traces.timeout),
        "how long the collector may take for one delivery, which no statement waits for",
    ),
    key(
        "traces.service_name",
        |c| Slot::Text(&mut c.traces.service_name),
        "name of this server among those that the collector knows",
    ),
    key(
        "traces.statements",
        |c| Slot::Truth(&mut c.traces.statements),
        "whether traces have the texts of statements, without passwords",
    ),
    key("limits.max_sessions", |c| Slot::Count(&mut c.limits.max_sessions, 1), "sessions open at once"),
    key(
        "limits.max_connections",
        |c| Slot::Count(&mut c.limits.max_connections, 1),
        "client connections open at once",
    ),
    key(
        "limits.max_connections_per_address",
        |c| Slot::Count(&mut c.limits.max_connections_per_address, 1),
        "client connections that one address (of IPv6, one /64 network) has open at once",
    ),
    key(
        "limits.max_running_queries",
        |c| Slot::Count(&mut c.limits.max_running_queries, 1),
        "queries that run at once; more wait in line",
    ),
    key(
        "limits.max_running_queries_per_user",
        |c| Slot::Count(&mut c.limits.max_running_queries_per_user, 1),
        "queries that one user runs at once; the rest is left to other users",
    ),
    key(
        "limits.max_running_queries_per_session",
        |c| Slot::Count(&mut c.limits.max_running_queries_per_session, 1),
        "queries that one session runs at once",
    ),
    key(
        "limits.max_queued_queries",
        |c| Slot::Count(&mut c.limits.max_queued_queries, 0),
        "queries that may wait in line; more are refused",
    ),
    key(
        "limits.max_queued_queries_per_user",
        |c| Slot::Count(&mut c.limits.max_queued_queries_per_user, 0),
        "queries of one user that may wait in line",
    ),
    key("limits.queue_timeout", |c| Slot::Duration(&mut c.limits.queue_timeout), "longest wait in line"),
    key(
        "limits.statement_timeout",
        |c| Slot::Duration(&mut c.limits.statement_timeout),
        "longest run of one statement, from its arrival to its last batch, or to its commit if it writes, with waiting in line and planning; 0 means no limit",
    ),
    key(
        "limits.planning_timeout",
        |c| Slot::Duration(&mut c.limits.planning_timeout),
        "longest planning of one statement, with what is computed of constants then; 0 means no limit of its own",
    ),
    key(
        "limits.result_timeout",
        |c| Slot::Duration(&mut c.limits.result_timeout),
        "how long a result may lie unread before it is freed; while somebody reads it, it stays",
    ),
    key(
        "limits.reader_timeout",
        |c| Slot::Duration(&mut c.limits.reader_timeout),
        "how long a reader may leave rows lying that are ready for it; then the query ends and frees its place; 0 means no limit",
    ),
    key(
        "limits.session_timeout",
        |c| Slot::Duration(&mut c.limits.session_timeout),
        "how long a session may stay unused",
    ),
    key(
        "limits.transaction_timeout",
        |c| Slot::Duration(&mut c.limits.transaction_timeout),
        "an open transaction without a statement for this long is rolled back",
    ),
    key(
        "limits.max_prepared_statements",
        |c| Slot::Count(&mut c.limits.max_prepared_statements, 1),
        "prepared statements open at once in one session",
    ),
    key(
        "limits.max_prepared_bytes",
        |c| Slot::Size(&mut c.limits.max_prepared_bytes),
        "statement texts and bound parameters that the prepared statements of one session hold together",
    ),
    key(
        "limits.max_parameter_rows",
        |c| Slot::Count(&mut c.limits.max_parameter_rows, 1),
        "rows of parameters in one bind",
    ),
    key(
        "limits.result_buffer_bytes",
        |c| Slot::Size(&mut c.limits.result_buffer_bytes),
        "memory for the batches of one partition of a result before it waits or spills",
    ),
    key(
        "limits.result_spill_bytes",
        |c| Slot::LongSize(&mut c.limits.result_spill_bytes),
        "disk for results that wait to be read and Parquet files that are being sent, over all queries",
    ),
    key(
        "limits.query_memory_bytes",
        |c| Slot::Size(&mut c.limits.query_memory_bytes),
        "memory of all running queries together (sorts, joins, aggregates)",
    ),
    key(
        "limits.memory_bytes",
        |c| Slot::LongSize(&mut c.limits.memory_bytes),
        "memory of the whole process: when it is used up, statements that have more than their share end; 0 means seven eighths of what the machine or its control group has",
    ),
    key("limits.max_endpoints", |c| Slot::Count(&mut c.limits.max_endpoints, 1), "endpoints of one result"),
    key("limits.max_sql_bytes", |c| Slot::Size(&mut c.limits.max_sql_bytes), "longest SQL text"),
    key(
        "limits.max_message_bytes",
        |c| Slot::Size(&mut c.limits.max_message_bytes),
        "largest message that a client may send",
    ),
    key(
        "limits.message_bytes",
        |c| Slot::Size(&mut c.limits.message_bytes),
        "target size of the data messages that go out; many clients refuse messages above 4 MiB",
    ),
    key(
        "limits.large_message_bytes",
        |c| Slot::Size(&mut c.limits.large_message_bytes),
        "size of one message on each connection, early in a long result, for clients that accept any size: Arrow C++ and \
         what is built on it (pyarrow, R, ODBC)",
    ),
    key(
        "limits.drain_timeout",
        |c| Slot::Duration(&mut c.limits.drain_timeout),
        "how long SIGTERM lets running queries finish",
    ),
];

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

    /// The type, for people.
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
