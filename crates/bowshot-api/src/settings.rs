//! Session options: the one list of what a client may set with Flight `SetSessionOptions`, SQL `SET` or request
//! headers.

/// A value of a session option, in the types of Flight's session options.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// Text.
    String(String),
    /// Truth value.
    Bool(bool),
    /// Whole number.
    Int64(i64),
    /// Real number.
    Double(f64),
    /// List of texts.
    StringList(Vec<String>),
}

/// One row of the table of session options.
#[derive(Debug, Clone, Copy)]
pub struct SessionOption {
    /// Name as clients write it.
    pub name: &'static str,
    /// Type, for documentation and error messages.
    pub kind: &'static str,
    /// Default, as text.
    pub default: &'static str,
    /// One sentence on its effect.
    pub text: &'static str,
}

/// Rows of options: `"name" "type" = "default" => "what it does";`.
macro_rules! options {
    ($($name:literal $kind:literal = $default:literal => $text:literal;)+) => {
        &[$(SessionOption { name: $name, kind: $kind, default: $default, text: $text }),+]
    };
}

/// All options that a client may set.
pub const SESSION_OPTIONS: &[SessionOption] = options! {
    "catalog" "string" = "bowshot" => "catalog of names that do not say theirs";
    "schema" "string" = "main" => "schema of names that do not say theirs";
    "dialect" "string" = "ansi" => "SQL dialect: ansi, postgres or mysql";
    "time_zone" "string" = "+00:00" => "time zone of timestamps that do not say theirs";
    "endpoints" "string" = "1" => "endpoints of one result: a number, or auto";
    "views" "bool" = "false" => "send string and binary views as they are";
    "dictionaries" "bool" = "false" => "send dictionary-encoded columns as they are";
    "wide_numbers" "bool" = "false" =>
        "send unsigned numbers, 16-bit floats and decimals below 128 bits in wider signed types; JDBC drivers of Flight SQL begin with true";
    "json_variants" "bool" = "false" =>
        "send VARIANT columns as JSON text; JDBC drivers of Flight SQL begin with true";
    "compression" "string" = "none" => "compression of record batch bodies: none, lz4 or zstd";
    "retryable_results" "bool" = "false" => "keep results until they expire so that DoGet can be repeated";
    "statement_timeout_ms" "int64" = "0" =>
        "longest run of a statement in milliseconds, from its arrival on; 0 for the limit of the server";
    "join_cache" "bool" = "true" =>
        "use joins that were computed before or ahead, and let others use those of this session";
    "result_cache" "bool" = "true" =>
        "answer queries with results that are kept of the same query over the same rows, and keep those of this session";
    "key_lookups" "bool" = "true" =>
        "find the rows of a statement that names them by a key of one table (`WHERE key = value`) by an index in memory, instead of a scan";
    "plan_cache" "bool" = "true" =>
        "run a statement by the plan of an earlier run, where the definitions of tables and all that it was planned with are the same";
    "materialized_view_rewrite" "bool" = "true" =>
        "answer queries from materialized views that they do not name, where these show the rows that the query reads";
    "max_staleness_ms" "int64" = "0" =>
        "age in milliseconds of a materialized view that may answer a query without being named; 0 for none that is out of date";
    "join_order" "string" = "statistics" =>
        "order of inner joins: statistics for the one that seems cheapest, or query for that of the text";
    "common_subplans" "bool" = "true" =>
        "compute equal parts of a query once, such as a query of WITH that is read twice";
    "grouping_set_cascade" "bool" = "true" =>
        "compute coarser grouping sets of ROLLUP and CUBE from the finest one";
    "eager_aggregation" "bool" = "true" =>
        "group rows before they are joined, where statistics say that far fewer of them go into the join then";
    "ranked_windows" "bool" = "true" =>
        "drop rows before they are sorted for `rank`, `dense_rank` or `row_number` that a filter of it drops afterwards";
    "hashed_windows" "bool" = "true" =>
        "compute aggregates over whole partitions, such as `sum(x) OVER (PARTITION BY y)`, by a hash table instead of a sort";
    "query_tag" "string" = "" =>
        "mark of the session's statements in `system.queries`, the audit trail, the log and traces: at most 256 characters, none of them a control character";
};
