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
        "let other machines send credentials to the HTTP front end over connections that are not encrypted";
    "http_origins": Text(http_origins) =
        "origins whose web pages may use the HTTP front end (CORS), such as https://example.org, with commas between";
    "http_mcp": Text(http_mcp) =
        "whether agents may use the Model Context Protocol at `/mcp` of the HTTP front end: `auto` where only this machine reaches it or users log in, `on` for the same or an error at the start, `off`";
    "pg" "--pg": Listen(pg) = "address of the PostgreSQL front end, for clients that speak its protocol";
    "pg_cleartext": Truth(pg_cleartext) =
        "let the PostgreSQL front end ask for passwords over connections of other machines that are not encrypted";
    "mysql" "--mysql": Listen(mysql) = "address of the MySQL front end, for clients that speak its protocol";
    "mysql_cleartext": Truth(mysql_cleartext) =
        "let the MySQL front end ask for passwords over connections of other machines that are not encrypted";
    "data" "--data": Data(data) =
        "folder of durable tables, made if need be; `memory`, or nothing: tables end with the server";
    "dialect" "--dialect": Dialect(dialect) = "SQL dialect of new sessions";
    "ports_file" "--ports-file": Path(ports_file) =
        "file that is written when the server is ready: its addresses and process id as JSON; removed at the end";
    "insecure" "--insecure": Truth(insecure) = "listen beyond this machine although no users are configured";
    "log" "--log": Text(log) = "what is logged: a level, or TARGET=LEVEL pairs with commas between";
    "log_format" "--log-format": LogFormat(log_format) = "how the log looks";
    "log_file": Path(logged.file) =
        "file of the log; on stderr when empty; opened again at SIGHUP, and within a minute when it was moved";
    "log_max_bytes": LongSize(logged.max_bytes) =
        "size of that file at which it is set aside as `.1`, what was `.1` as `.2`, and the next one begun; at no size when 0";
    "log_daily": Truth(logged.daily) = "whether it is set aside at the end of each day (UTC), too";
    "log_keep": Count(logged.keep, 1) = "files that were set aside and stay; older ones are removed";
    "log_slow_after": Duration(logged.slow_after) =
        "the log has a line with the text, without passwords, of each statement that took this long from its arrival to its end; none when 0";
    "metrics_query_tags": Truth(logged.count_tags) =
        "count statements by their `query_tag` at `/metrics`, where everybody can read it: the first 100 tags, and `other`";
    "tls.certificate" "--tls-certificate": Path(tls.certificate) =
        "file with the server's certificate and those that lead to its authority (PEM): Flight SQL, PostgreSQL and MySQL speak TLS only, HTTP with other machines for SQL; read again when it changes";
    "tls.key" "--tls-key": Path(tls.key) =
        "file with the private key of that certificate (PEM, without a password)";
    "tls.client_authority" "--tls-client-authority": Path(tls.client_authority) =
        "file with the certificates of the authorities (PEM) whose certificates say who a client is, at every front end; read again when it changes";
    "tls.client_revoked": Path(tls.client_revoked) =
        "file with the lists of certificates that these authorities have revoked (PEM); with it, a certificate that no list in date covers is refused; read again when it changes";
    "tls.client_certificates": Text(tls.client_certificates) =
        "whether clients need a certificate: `optional`, so that passwords and tokens do too, or `required`, so that nobody connects without one";
    "tls.client_name": Text(tls.client_name) =
        "which name of a certificate is the user's: `common_name` of its subject, or `email` or `dns` of its alternative names; there must be exactly one";
    "cluster.listen" "--cluster": Listen(cluster.listen) =
        "address of the internal port, over which the nodes of a cluster reach one another; off: the server is alone";
    "cluster.join" "--join": Text(cluster.join) =
        "HOST:PORT of nodes of the cluster that are asked first, with commas between; they tell of the others";
    "cluster.advertise" "--advertise": Text(cluster.advertise) =
        "HOST:PORT under which other nodes reach the internal port; where it listens, when empty";
    "cluster.public": Text(cluster.public) =
        "URI under which clients reach this node's Flight SQL front end, such as grpc+tls://one.example.org:50051; when empty, the host of `cluster.advertise` or `cluster.listen` with that front end's port";
    "cluster.tls.authority": Path(cluster.authority) =
        "file with the certificate of the cluster's own authority (PEM): whoever has a certificate of it for a node is one";
    "cluster.tls.certificate": Path(cluster.certificate) =
        "file with this node's certificate (PEM), as `bowshot cluster init` and `bowshot cluster add-node` make it";
    "cluster.tls.key": Path(cluster.key) =
        "file with the private key of that certificate (PEM, without a password)";
    "cluster.secret": Secret(cluster.secret) =
        "instead of certificates, for nodes on one machine: what all of them know, 16 bytes or more; not on the command line";
    "cluster.heartbeat": Duration(cluster.heartbeat) = "how often each node asks every other one";
    "cluster.suspect_after": Duration(cluster.suspect_after) =
        "how long a node may be silent before it gets no more work";
    "cluster.dead_after": Duration(cluster.dead_after) =
        "how long a node may be silent before it counts as gone";
    "cluster.bytes_per_thread": LongSize(cluster.bytes_per_thread) =
        "bytes of files for each thread of a node from which on a query is worth another node";
    "same_host.socket" "--local-socket": Text(same_host.socket) =
        "Unix socket over which Flight SQL clients on this machine get and send rows in shared memory: a path, `none`, or `auto`, which is a place of the server's own (below `XDG_RUNTIME_DIR` where that is set) while Flight SQL listens on this machine alone";
    "same_host.connection_bytes": LongSize(same_host.connection_bytes) =
        "shared memory that one connection may have mapped and not given back; further rows come through the socket; nothing is mapped when 0";
    "same_host.user_bytes": LongSize(same_host.user_bytes) = "the same for all connections of a user";
    "same_host.total_bytes": LongSize(same_host.total_bytes) =
        "the same for all, at most a quarter of the machine's memory and of `limits.memory_bytes`";
    "access.users_file" "--users-file": Path(users_file) =
        "TOML file with [[users]] (name, password_hash; roles, admin, attributes), [[tokens]] (user, sha256; roles, admin), [[jwt]] (issuer, audiences …) and [[ldap]] (url …); the configuration file may hold them too, as [[access.users]] and so on";
    "access.enforced": Truth(enforced) =
        "whether users need rights even before there is any rule: nobody but admins sees a table then";
    "access.token_timeout": Duration(access_options.token_timeout) =
        "how long a token is valid that the server issued at login";
    "access.max_tokens_per_user": Count(access_options.max_tokens_per_user, 1) =
        "issued tokens that a user may hold; one more ends the oldest";
    "access.max_password_checks": Count(access_options.max_password_checks, 1) =
        "passwords checked at once; each check takes a core and 19 MiB for tens of milliseconds";
    "access.decision_url": Text(decider.url) =
        "address of a service that decides on each statement beside the rules (https, or http on this machine); without a decision nothing runs";
    "access.decision_timeout": Duration(decider.timeout) =
        "how long that decision may take; later there is none";
    "access.decision_connections": Count(decider.max_connections, 1) =
        "decisions that are asked for at once; more wait, within the timeout";
    "access.decision_cache": Duration(decider.cache) =
        "how long a decision holds for the very same question, of the same user about the same things; 0 asks each time";
    "access.decision_ca_file": Path(decider.ca_file) =
        "authorities that vouch for that service (PEM), in place of those of this machine";
    "access.decision_token": Secret(decider.token) = "bearer token that is shown to that service";
    "audit.file": Path(audit_file) =
        "file of the audit trail, one JSON object a line with the hash of the one before: who, what, which tables, whether it was allowed, rows, time; none is written without it";
    "audit.max_bytes": LongSize(audit_max_bytes) =
        "size of that file at which it is set aside under a number and the next one begun";
    "audit.required": Truth(audit_required) =
        "whether no statement is taken while the audit trail cannot be written";
    "engine.threads": Auto(threads) =
        "threads that run queries, and partitions of a plan; auto means one for each core";
    "engine.batch_rows": Count(batch_rows, 1) = "rows of one batch between operators";
    "engine.metadata_cache_bytes": Size(metadata_cache_bytes) = "memory for Parquet footers";
    "engine.plan_cache_entries": Count(plan_cache_entries, 0) =
        "plans of all sessions that are kept for the next run of their statement; none are when 0";
    "engine.spill_folder": Path(spill_folder) =
        "folder for what running queries spill, on disk; `spill` in the data folder when empty, `/var/tmp` without one";
    "engine.spill_bytes": LongSize(spill_bytes) = "disk that running queries may spill to, all together";
    "engine.scratch": Truth(scratch) =
        "give each session an empty catalog of its own in memory, in which it may create and change tables, in place of the served files";
    "storage.refresh": Duration(storage.refresh) =
        "how often a table in use is checked for new, changed and deleted files";
    "storage.sample_rows": Count(storage.sample_rows, 1) =
        "rows of each CSV or JSON file from which its column types are taken";
    "storage.max_files_per_table": Count(storage.max_files_per_table, 1) = "files of one table";
    "storage.max_depth": Count(storage.max_depth, 1) = "folders below the folder of a table";
    "storage.max_open_files": Count(storage.max_open_files, 1) = "file handles kept open over all tables";
    "storage.scan_threads": Count(storage.scan_threads, 1) = "threads that read headers and footers of files";
    "storage.memory_bytes": LongSize(table_bytes) = "memory for the rows of tables that are kept in memory";
    "storage.temporary_bytes": LongSize(temporary_bytes) =
        "memory for the rows of the temporary tables of one session";
    "storage.column_cache_bytes": LongSize(column_cache_bytes) =
        "memory for decoded columns of Parquet files that are scanned repeatedly, at most a quarter of the machine's and of `limits.memory_bytes`; nothing is kept when 0";
    "storage.tables": Text(tables.address) =
        "place in an object store for the files of durable tables, such as s3://bucket/prefix; the catalog stays in the data folder, which has copies; the data folder alone when empty";
    "storage.tables_cache_bytes": LongSize(tables.cache_bytes) =
        "disk in the data folder for copies of files of tables that are in an object store; those that nobody has read for the longest time go first";
    "storage.exchange_folder": Path(exchange_folder) =
        "the one folder whose files COPY may read and write, for every user; COPY is refused when empty";
    "storage.read_by_path": Truth(storage.read_by_path) =
        "let statements read files by their path: `FROM 'orders/*.csv'`, `read_csv(…)`";
    "storage.read_folder": Path(storage.read_folder) =
        "the one folder whose files statements may read by their path; the served files and folders when empty";
    "models.onnx_runtime": Path(onnx_runtime) =
        "the library of ONNX Runtime (`libonnxruntime.so`), which computes ONNX models that are no tree ensembles; without it they are refused";
    "object_store.refresh": Duration(remote.refresh) =
        "how often what is in use of an object store is listed again";
    "object_store.timeout": Duration(remote.timeout) =
        "longest wait for one read, listing or part of an upload, with all attempts";
    "object_store.request_timeout": Duration(remote.request_timeout) =
        "longest single request to an object store";
    "object_store.max_retries": Count(remote.max_retries, 0) =
        "attempts after the first, of requests that failed in a way that may pass";
    "object_store.max_requests": Count(remote.max_requests, 1) =
        "requests that are open at once to one bucket";
    "object_store.cache_bytes": LongSize(remote.cache_bytes) =
        "disk for parts of files in object stores that were read; nothing is kept when 0";
    "object_store.cache_folder": Path(remote.cache_folder) =
        "folder for them, for this server alone; `object_cache` in the data folder when empty, and without one a folder that goes with the server";
    "object_store.read": Addresses(remote.read) =
        "places in object stores whose files statements of administrators may read by their address: `FROM 's3://bucket/prefix/*.parquet'`, `read_csv(…)`; none when empty, whatever is served";
    "object_store.exchange": Addresses(remote.exchange) =
        "places in object stores whose files COPY may read and write, for every user; none when empty";
    "object_store.endpoints": Addresses(remote.endpoints) =
        "endpoints of object stores that secrets (CREATE SECRET) may name, beside those of `[[object_store.places]]` and of the environment";
    "secrets.key": Text(secrets_key) =
        "where the key is that seals the values of secrets: `env:NAME` or `file:PATH`, 32 bytes in Base64 or as hexadecimal digits; when empty, a file `secrets.key` in the data folder, made when it is needed";
    "attach.places": Places(databases.attach) =
        "places of other databases that admins may open with ATTACH: `postgres://host:port/`, `mysql://host:port/`, `grpc://host:port`, `sqlite:///folder`, `ducklake:///folder`; none when empty";
    "drivers.postgres": Path(drivers.postgres) =
        "the ADBC driver (a shared library) of databases of PostgreSQL that name none";
    "drivers.sqlite": Path(drivers.sqlite) = "the same of SQLite";
    "drivers.duckdb": Path(drivers.duckdb) = "the same of DuckDB, whose library is its own driver";
    "drivers.flightsql": Path(drivers.flightsql) = "the same of servers that speak Flight SQL";
    "join_cache.enabled": Truth(reuse.joins.enabled) =
        "keep joins that are asked for repeatedly, and compute those that come next before they are asked for";
    "join_cache.memory_bytes": LongSize(reuse.joins.memory_bytes) =
        "memory for the rows of cached joins; computing them may take as much again";
    "join_cache.disk_bytes": LongSize(reuse.joins.disk_bytes) =
        "disk for cached joins that have left memory or are to survive a restart";
    "join_cache.folder": Path(reuse.joins.folder) =
        "folder for cached joins on disk, for this server alone; `join_cache` in the data folder when empty, none without a data folder";
    "join_cache.fill_after": LongCount(reuse.joins.fill_after, 1) =
        "how often a join, or one like it, is asked for before it is cached; 1 means at once";
    "join_cache.wait": Duration(reuse.joins.wait) =
        "how long a query waits for its join if that is being computed for the cache just then; 0 means that it goes ahead by itself";
    "join_cache.forecast": Truth(reuse.joins.forecast) =
        "compute joins ahead when a table appears or changes";
    "join_cache.history": Count(reuse.joins.history, 1) = "templates of joins that are remembered";
    "join_cache.fill_timeout": Duration(reuse.joins.fill_timeout) =
        "longest computation of one join for the cache, without the time in which it steps aside";
    "join_cache.busy_percent": Count(reuse.joins.busy_percent, 1) =
        "percent of one processor that computing ahead takes at most while queries run; 100 and more is no restriction";
    "result_cache.memory_bytes": LongSize(reuse.results.memory_bytes) =
        "memory for whole results, which are given again to whoever asks the same over unchanged tables; one result takes an eighth of it at most; nothing is kept when 0";
    "result_cache.disk_bytes": LongSize(reuse.results.disk_bytes) =
        "disk for results that were given again once, in the folder of the tables: they survive a restart; nothing is written when 0";
    "views.suggest_every": Duration(views.suggest_every) =
        "how often the server looks in the query log for materialized views that would answer queries (`system.suggested_views`); never when 0";
    "views.automatic": Truth(views.automatic) =
        "whether it makes such views by itself, in memory, and drops those that are of no use any more";
    "views.memory_bytes": LongSize(views.memory_bytes) = "memory for the rows of the views that it has made";
    "views.refresh_percent": Count(views.refresh_percent, 1) =
        "percent of the time of one processor that refreshing them takes at most";
    "views.unused_after": Duration(views.unused_after) =
        "how long one of them stays that answers no query";
    "traces.endpoint": Text(traces.endpoint) =
        "collector that gets traces by OTLP over gRPC, such as http://127.0.0.1:4317; none are made when empty";
    "traces.sample_ratio": Share(traces.sample_ratio) =
        "share of the calls that are traced whose callers do not say it in their `traceparent`";
    "traces.ca_file": Path(traces.ca_file) =
        "authorities that may vouch for a collector at https, in PEM form; those of this machine when empty";
    "traces.headers_file": Path(traces.headers_file) =
        "file with headers for the collector, one `name: value` on each line";
    "traces.timeout": Duration(traces.timeout) =
        "how long the collector may take for one delivery, which no statement waits for";
    "traces.service_name": Text(traces.service_name) =
        "name of this server among those that the collector knows";
    "traces.statements": Truth(traces.statements) =
        "whether traces have the texts of statements, without passwords";
    "limits.max_sessions": Count(limits.max_sessions, 1) = "sessions open at once";
    "limits.max_connections": Count(limits.max_connections, 1) = "client connections open at once";
    "limits.max_connections_per_address": Count(limits.max_connections_per_address, 1) =
        "client connections that one address (of IPv6, one /64 network) has open at once";
    "limits.max_running_queries": Count(limits.max_running_queries, 1) =
        "queries that run at once; more wait in line";
    "limits.max_running_queries_per_user": Count(limits.max_running_queries_per_user, 1) =
        "queries that one user runs at once; the rest is left to other users";
    "limits.max_running_queries_per_session": Count(limits.max_running_queries_per_session, 1) =
        "queries that one session runs at once";
    "limits.max_queued_queries": Count(limits.max_queued_queries, 0) =
        "queries that may wait in line; more are refused";
    "limits.max_queued_queries_per_user": Count(limits.max_queued_queries_per_user, 0) =
        "queries of one user that may wait in line";
    "limits.queue_timeout": Duration(limits.queue_timeout) = "longest wait in line";
    "limits.statement_timeout": Duration(limits.statement_timeout) =
        "longest run of one statement, from its arrival to its last batch, or to its commit if it writes, with waiting in line and planning; 0 means no limit";
    "limits.planning_timeout": Duration(limits.planning_timeout) =
        "longest planning of one statement, with what is computed of constants then; 0 means no limit of its own";
    "limits.result_timeout": Duration(limits.result_timeout) =
        "how long a result may lie unread before it is freed; while somebody reads it, it stays";
    "limits.reader_timeout": Duration(limits.reader_timeout) =
        "how long a reader may leave rows lying that are ready for it; then the query ends and frees its place; 0 means no limit";
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
        "memory of the whole process: when it is used up, statements that have more than their share end; 0 means seven eighths of what the machine or its control group has";
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
