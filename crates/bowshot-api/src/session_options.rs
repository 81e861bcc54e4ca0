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
    "catalog" "string" = "bowshot" => "default catalog of unqualified names";
    "schema" "string" = "main" => "default schema of unqualified names";
    "dialect" "string" = "ansi" => "SQL dialect: ansi, postgres or mysql";
    "time_zone" "string" = "+00:00" => "time zone of timestamps without one";
    "endpoints" "string" = "1" => "number of endpoints of a result, or auto";
    "views" "bool" = "false" => "send string and binary views as they are";
    "dictionaries" "bool" = "false" => "send dictionary-encoded columns as they are";
    "wide_numbers" "bool" = "false" =>
        "send unsigned numbers, 16-bit floats and decimals below 128 bits in wider signed types; true by \
         default for Flight SQL's JDBC drivers";
    "json_variants" "bool" = "false" =>
        "send VARIANT columns as JSON text; true by default for Flight SQL's JDBC drivers";
    "compression" "string" = "none" => "compression of record batch bodies: none, lz4 or zstd";
    "retryable_results" "bool" = "false" => "keep results until they expire so that DoGet can be repeated";
    "statement_timeout_ms" "int64" = "0" =>
        "statement timeout in milliseconds, from its arrival; 0: the server's limit";
    "join_cache" "bool" = "true" =>
        "read joins from the join cache, and add this session's joins to it";
    "result_cache" "bool" = "true" =>
        "answer queries from the result cache, and add this session's results to it";
    "key_lookups" "bool" = "true" =>
        "look up rows of one table by key (`WHERE key = value`) in an index in memory instead of scanning";
    "plan_cache" "bool" = "true" =>
        "reuse the plan of an earlier run while table definitions and all other inputs of planning are \
         unchanged";
    "materialized_view_rewrite" "bool" = "true" =>
        "answer queries from materialized views that they do not name, if the views contain the rows that \
         the query reads";
    "max_staleness_ms" "int64" = "0" =>
        "greatest age in milliseconds of a materialized view that answers a query without being named; 0: \
         only views that are up to date";
    "join_order" "string" = "statistics" =>
        "order of inner joins: statistics (the cheapest by estimate) or query (as written)";
    "common_subplans" "bool" = "true" =>
        "compute common parts of a query once, such as a CTE that is read twice";
    "grouping_set_cascade" "bool" = "true" =>
        "compute coarser grouping sets of ROLLUP and CUBE from the finest one";
    "eager_aggregation" "bool" = "true" =>
        "aggregate before joins where statistics predict far fewer rows in the join";
    "ranked_windows" "bool" = "true" =>
        "drop rows before the sort of `rank`, `dense_rank` or `row_number` that a filter on its value drops \
         afterwards";
    "hashed_windows" "bool" = "true" =>
        "compute aggregates over whole partitions, such as `sum(x) OVER (PARTITION BY y)`, by a hash table instead of a sort";
    "query_tag" "string" = "" =>
        "tag of the session's statements in `system.queries`, the audit trail, the log and traces: at most \
         256 characters, no control characters";
};
