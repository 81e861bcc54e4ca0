//! Parameters that clients of PostgreSQL, MySQL and DuckDB set and read. They are stored per session and have no
//! effect; a parameter that would need one accepts only the value that Bowshot implements. Options with an effect are
//! in [`SESSION_OPTIONS`](crate::SESSION_OPTIONS).

/// The values that a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Any text.
    Text,
    /// A boolean.
    Boolean,
    /// An integer in a range.
    Integer(i64, i64),
    /// One of these words, ignoring case.
    OneOf(&'static [&'static str]),
    /// None: the parameter is read-only.
    Fixed,
}

/// A compatibility parameter.
#[derive(Debug, Clone, Copy)]
pub struct CompatibilityParameter {
    /// Display name; lookups ignore case.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// The values that it accepts.
    pub accepted: Accepted,
    /// One sentence on its meaning in Bowshot.
    pub text: &'static str,
}

impl CompatibilityParameter {
    /// The value in its stored spelling; `None` if it is not accepted.
    pub fn accept(&self, value: &str) -> Option<String> {
        let value = value.trim();
        match self.accepted {
            Accepted::Text => (value.len() <= MAX_BYTES).then(|| value.to_owned()),
            Accepted::Boolean => truth(value).map(|on| if on { "on" } else { "off" }.to_owned()),
            Accepted::Integer(least, greatest) => {
                let number: i64 = value.parse().ok()?;
                (least..=greatest).contains(&number).then(|| number.to_string())
            }
            Accepted::OneOf(words) => one_of(words, value),
            Accepted::Fixed => value.eq_ignore_ascii_case(self.default).then(|| self.default.to_owned()),
        }
    }

    /// The accepted values in words.
    pub fn takes(&self) -> String {
        match self.accepted {
            Accepted::Text => "any text".to_owned(),
            Accepted::Boolean => "on or off".to_owned(),
            Accepted::Integer(least, i64::MAX) => format!("a number from {least}"),
            Accepted::Integer(least, greatest) => format!("a number from {least} to {greatest}"),
            Accepted::OneOf(words) => words.join(", "),
            Accepted::Fixed => "nothing else".to_owned(),
        }
    }
}

/// Longest accepted text, in bytes.
const MAX_BYTES: usize = 1 << 10;

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Some(true),
        "false" | "off" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// A word of the list; booleans match in all spellings.
fn one_of(words: &[&str], value: &str) -> Option<String> {
    let same = |word: &&&str| {
        word.eq_ignore_ascii_case(value) || truth(word).is_some_and(|on| truth(value) == Some(on))
    };
    words.iter().find(same).map(|word| (*word).to_owned())
}

/// Rows of parameters: `"name" = "default", what it accepts => "what it means here";`.
macro_rules! parameters {
    ($($name:literal = $default:literal, $accepted:expr => $text:literal;)+) => {
        &[$(CompatibilityParameter { name: $name, default: $default, accepted: $accepted, text: $text }),+]
    };
}

const UTF8: Accepted = Accepted::OneOf(&["UTF8", "utf8", "UTF-8", "utf8mb4", "utf8mb3", "unicode", "binary"]);
const ONLY_ON: Accepted = Accepted::OneOf(&["on"]);
const ONLY_OFF: Accepted = Accepted::OneOf(&["off"]);
const LEVELS: Accepted = Accepted::OneOf(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "info", "warning", "error", "fatal",
    "panic",
]);
const ISOLATION: Accepted = Accepted::OneOf(&[
    "repeatable read",
    "read committed",
    "read uncommitted",
    "repeatable-read",
    "read-committed",
    "read-uncommitted",
    "snapshot",
    "serializable",
]);
const SECONDS: Accepted = Accepted::Integer(0, i64::MAX);
const NEVER: Accepted = Accepted::OneOf(&["0"]);

/// All compatibility parameters, sorted by name, ignoring case.
pub const COMPATIBILITY_PARAMETERS: &[CompatibilityParameter] = parameters! {
    "application_name" = "", Accepted::Text => "name of the client's program";
    "array_nulls" = "on", ONLY_ON => "`NULL` in the text form of an array is a null element";
    "autocommit" = "on", ONLY_ON => "each statement outside of BEGIN is its own transaction";
    "backslash_quote" = "safe_encoding", Accepted::Text => "a backslash in '…' is a backslash";
    "block_size" = "8192", Accepted::Fixed => "files have no blocks";
    "bytea_output" = "hex", Accepted::OneOf(&["hex"]) => "how bytes become text";
    "character_set_client" = "utf8mb4", UTF8 => "texts are UTF-8";
    "character_set_connection" = "utf8mb4", UTF8 => "texts are UTF-8";
    "character_set_database" = "utf8mb4", UTF8 => "texts are UTF-8";
    "character_set_results" = "utf8mb4", UTF8 => "texts are UTF-8";
    "character_set_server" = "utf8mb4", UTF8 => "texts are UTF-8";
    "check_function_bodies" = "on", Accepted::Boolean => "there are no functions to check";
    "client_encoding" = "UTF8", UTF8 => "texts are UTF-8";
    "client_min_messages" = "notice", LEVELS => "the notices that PostgreSQL's clients get";
    "collation_connection" = "utf8mb4_bin", Accepted::Text => "texts are compared by their bytes";
    "collation_database" = "utf8mb4_bin", Accepted::Text => "texts are compared by their bytes";
    "collation_server" = "utf8mb4_bin", Accepted::Text => "texts are compared by their bytes";
    "constraint_exclusion" = "partition", Accepted::Text => "the optimiser decides";
    "cursor_tuple_fraction" = "0.1", Accepted::Text => "cursors are read as they are computed";
    "DateStyle" = "ISO, MDY",
        Accepted::OneOf(&["ISO, MDY", "ISO", "ISO, DMY", "ISO, YMD", "ISO,MDY", "ISO,DMY", "ISO,YMD"]) =>
        "dates are written and read in ISO 8601 format";
    "debug_assertions" = "off", Accepted::Fixed => "assertions are always checked";
    "default_statistics_target" = "100", SECONDS => "statistics are kept with the rows";
    "default_table_access_method" = "heap", Accepted::Text => "there is one table access method";
    "default_tablespace" = "", Accepted::OneOf(&[""]) => "there are no tablespaces";
    "default_text_search_config" = "pg_catalog.simple", Accepted::Text => "there is no text search";
    "default_transaction_deferrable" = "off", ONLY_OFF => "transactions are never deferred";
    "default_transaction_isolation" = "repeatable read", ISOLATION =>
        "read committed in the dialect `postgres`; repeatable read is snapshot isolation, serializable is checked at the commit";
    "default_transaction_read_only" = "off", ONLY_OFF => "BEGIN READ ONLY begins such a transaction";
    "effective_cache_size" = "4GB", Accepted::Text => "the operator sets the memory of caches";
    "enable_bitmapscan" = "on", Accepted::Boolean => "there are no indexes";
    "enable_hashagg" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_hashjoin" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_indexscan" = "on", Accepted::Boolean => "there are no indexes";
    "enable_material" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_mergejoin" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_nestloop" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_profile" = "off", Accepted::Boolean => "EXPLAIN ANALYZE shows where the time went";
    "enable_progress_bar" = "off", Accepted::Boolean => "no progress is drawn";
    "enable_seqscan" = "on", Accepted::Boolean => "the optimiser decides";
    "enable_sort" = "on", Accepted::Boolean => "the optimiser decides";
    "escape_string_warning" = "on", Accepted::Boolean => "no warnings are sent";
    "exec_mem_limit" = "0", SECONDS => "the operator sets the memory of queries";
    "extra_float_digits" = "1", Accepted::Integer(-15, 3) =>
        "floating-point numbers are always shown exactly";
    "foreign_key_checks" = "on", Accepted::Boolean => "foreign keys are never enforced";
    "geqo" = "on", Accepted::Boolean => "the optimiser decides";
    "group_concat_max_len" = "9223372036854775807", SECONDS => "results of GROUP_CONCAT are never truncated";
    "hot_standby" = "off", Accepted::Fixed => "there are no standby servers";
    "idle_in_transaction_session_timeout" = "0", NEVER => "the operator sets `limits.transaction_timeout`";
    "idle_session_timeout" = "0", NEVER => "the operator sets `limits.session_timeout`";
    "in_hot_standby" = "off", Accepted::Fixed => "there are no standby servers";
    "information_schema_stats_expiry" = "0", SECONDS =>
        "table statistics are always current";
    "innodb_lock_wait_timeout" = "50", SECONDS => "seconds that a statement waits for a row that another transaction has locked, in the dialect `mysql`";
    "integer_datetimes" = "on", Accepted::Fixed => "times are whole numbers";
    "interactive_timeout" = "28800", SECONDS => "the operator sets `limits.session_timeout`";
    "IntervalStyle" = "postgres", Accepted::OneOf(&["postgres"]) => "how intervals become text";
    "is_superuser" = "off", Accepted::Fixed => "there is no superuser";
    "jit" = "off", Accepted::Boolean => "nothing is compiled";
    "lc_collate" = "C", Accepted::Fixed => "texts are compared by their bytes";
    "lc_ctype" = "C", Accepted::Fixed => "letters are those of Unicode";
    "lc_messages" = "C", Accepted::Text => "messages are in English";
    "lc_monetary" = "C", Accepted::Text => "there is no locale for amounts of money";
    "lc_numeric" = "C", Accepted::Text => "there is no locale for numbers";
    "lc_time" = "C", Accepted::Text => "names of days and months are English";
    "license" = "Apache-2.0", Accepted::Fixed => "license of the server";
    "lock_timeout" = "0", SECONDS => "milliseconds that a statement waits for a row that another transaction has locked; 0 for no limit";
    "log_statement" = "none", Accepted::Text => "the operator decides what is logged";
    "lower_case_table_names" = "0", Accepted::Fixed => "quoted names keep their case";
    "maintenance_work_mem" = "64MB", Accepted::Text => "the operator sets the memory of queries";
    "max_allowed_packet" = "67108864", SECONDS => "the operator sets `limits.max_sql_bytes`";
    "max_function_args" = "100", Accepted::Fixed => "functions take many arguments";
    "max_identifier_length" = "63", Accepted::Fixed => "names may be longer";
    "max_index_keys" = "32", Accepted::Fixed => "keys may have more columns";
    "max_parallel_workers_per_gather" = "2", SECONDS => "the operator sets the processors of queries";
    "net_read_timeout" = "30", SECONDS => "the operator sets the timeouts of connections";
    "net_write_timeout" = "60", SECONDS => "the operator sets the timeouts of connections";
    "optimizer_switch" = "", Accepted::Text => "the optimiser has no switches";
    "parallel_fragment_exec_instance_num" = "0", SECONDS => "the operator sets the processors of queries";
    "password_encryption" = "argon2id", Accepted::Fixed => "how passwords are kept";
    "performance_schema" = "off", Accepted::Fixed => "there is schema `system`";
    "pipeline_dop" = "0", SECONDS => "the operator sets the processors of queries";
    "preserve_insertion_order" = "on", Accepted::Boolean => "rows come in the order of ORDER BY";
    "profiling" = "off", ONLY_OFF => "EXPLAIN ANALYZE shows where the time went";
    "query_cache_size" = "0", Accepted::Integer(0, i64::MAX) => "the operator sets the cache of results";
    "query_cache_type" = "off", ONLY_OFF => "the session option is `result_cache`";
    "quote_all_identifiers" = "off", Accepted::Boolean => "names are quoted only where necessary";
    "random_page_cost" = "4", Accepted::Text => "the optimiser decides";
    "restrict_nonsystem_relation_kind" = "", Accepted::Text => "the catalog is read alone";
    "row_security" = "on", Accepted::Boolean => "policies for rows always hold";
    "seq_page_cost" = "1", Accepted::Text => "the optimiser decides";
    "server_encoding" = "UTF8", Accepted::Fixed => "texts are UTF-8";
    "server_version" = "", Accepted::Fixed => "version of the server";
    "server_version_num" = "", Accepted::Fixed => "version of the server as a number";
    "session_authorization" = "", Accepted::Fixed => "name of the user";
    "session_replication_role" = "origin", Accepted::OneOf(&["origin"]) => "there is no replication";
    "sql_auto_is_null" = "off", ONLY_OFF => "`IS NULL` means null";
    "sql_big_selects" = "on", Accepted::Boolean => "large joins are not refused";
    "sql_log_bin" = "on", Accepted::Boolean => "there is no replication";
    "sql_mode" = "", Accepted::Text =>
        "statements are always strict; of its words NO_AUTO_VALUE_ON_ZERO alone has an effect";
    "sql_notes" = "on", Accepted::Boolean => "no notes are sent";
    "sql_quote_show_create" = "on", Accepted::Boolean => "names are quoted only where necessary";
    "sql_safe_updates" = "off", Accepted::Boolean =>
        "over MySQL's protocol, UPDATE and DELETE need WHERE or LIMIT while it is on";
    "sql_select_limit" = "18446744073709551615", Accepted::OneOf(&["18446744073709551615"]) =>
        "results have all their rows";
    "sql_warnings" = "off", Accepted::Boolean => "no warnings are sent";
    "ssl_renegotiation_limit" = "0", Accepted::Integer(0, i64::MAX) => "TLS does not renegotiate";
    "standard_conforming_strings" = "on", ONLY_ON => "a backslash in '…' is a backslash";
    "synchronize_seqscans" = "on", Accepted::Boolean => "rows come in the order of ORDER BY";
    "synchronous_commit" = "on", ONLY_ON => "a commit is on disk before it is acknowledged";
    "system_time_zone" = "UTC", Accepted::Fixed => "time zone of the server";
    "temp_buffers" = "8MB", Accepted::Text => "the operator sets the memory of queries";
    "timezone_abbreviations" = "Default", Accepted::Text => "zones have their full names";
    "transaction_deferrable" = "off", ONLY_OFF => "transactions are never deferred";
    "transaction_isolation" = "repeatable read", ISOLATION =>
        "read committed in the dialect `postgres`; repeatable read is snapshot isolation, serializable is checked at the commit";
    "transaction_read_only" = "off", ONLY_OFF => "BEGIN READ ONLY begins such a transaction";
    "transaction_timeout" = "0", NEVER => "the operator sets `limits.transaction_timeout`";
    "transform_null_equals" = "off", ONLY_OFF => "`= NULL` is null";
    "unique_checks" = "on", Accepted::Boolean => "keys are always checked";
    "version_comment" = "Bowshot", Accepted::Fixed => "name of the server";
    "wait_timeout" = "28800", SECONDS => "the operator sets `limits.session_timeout`";
    "wal_level" = "minimal", Accepted::Fixed => "there is no replication";
    "work_mem" = "4MB", Accepted::Text => "the operator sets the memory of queries";
    "xmloption" = "content", Accepted::Text => "there is no XML";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_take_their_defaults() {
        let names: Vec<String> =
            COMPATIBILITY_PARAMETERS.iter().map(|known| known.name.to_ascii_lowercase()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        for known in COMPATIBILITY_PARAMETERS {
            assert_eq!(known.accept(known.default).as_deref(), Some(known.default), "{}", known.name);
        }
    }

    #[test]
    fn values_without_effect_are_taken_and_others_are_not() {
        for (name, value, kept) in [
            ("autocommit", "1", Some("on")),
            ("autocommit", "OFF", None),
            ("unique_checks", "0", Some("off")),
            ("standard_conforming_strings", "true", Some("on")),
            ("client_encoding", "utf-8", Some("UTF-8")),
            ("client_encoding", "latin1", None),
            ("extra_float_digits", "3", Some("3")),
            ("extra_float_digits", "4", None),
            ("DateStyle", "iso", Some("ISO")),
            ("DateStyle", "German", None),
            ("server_encoding", "LATIN1", None),
        ] {
            let known = COMPATIBILITY_PARAMETERS.iter().find(|known| known.name == name).expect(name);
            assert_eq!(known.accept(value).as_deref(), kept, "{name} = {value}");
        }
    }
}
