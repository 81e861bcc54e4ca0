//! The system variables, each with its type and the source of its value. A variable that is not in this table is an error: a
//! made-up value would mislead drivers.

use crate::auth::ListenPort;
use crate::handshake::SERVER_VERSION;
use crate::status::Failure;
use bowshot_api::{COMPATIBILITY_PARAMETERS, Limits, OptionValue, Session};
use bowshot_sql::mysql::quoted_text;

/// The type of a variable in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    /// 1 or 0.
    Truth,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// An option of the session with this name.
    Session(&'static str),
    /// A constant.
    Always(&'static str),
    /// NULL.
    Null,
    Autocommit,
    ReadOnly,
    /// An isolation level, which MySQL writes in capitals.
    Isolation,
    SelectLimit,
    ConnectionId,
    /// The last number generated for a row by this connection.
    Generated,
    /// The port of the listener.
    Port,
    /// Whether connections are encrypted.
    Encryption,
    /// The name of the host.
    Hostname,
    /// Bytes that a statement may have.
    MaxPacket,
    MaxConnections,
    InTransaction,
    /// The number of conditions of the last statement, and of its errors.
    Warnings,
    Errors,
    /// An expression that the engine computes.
    Computed(&'static str),
}

struct Variable {
    name: &'static str,
    form: Form,
    source: Source,
}

const fn text(name: &'static str, value: &'static str) -> Variable {
    Variable { name, form: Form::Text, source: Source::Always(value) }
}

const fn number(name: &'static str, value: &'static str) -> Variable {
    Variable { name, form: Form::Number, source: Source::Always(value) }
}

const fn stored(name: &'static str, form: Form) -> Variable {
    Variable { name, form, source: Source::Session(name) }
}

const fn other(name: &'static str, form: Form, source: Source) -> Variable {
    Variable { name, form, source }
}

const VARIABLES: &[Variable] = &[
    number("auto_increment_increment", "1"),
    number("auto_increment_offset", "1"),
    other("autocommit", Form::Truth, Source::Autocommit),
    text("basedir", ""),
    text("binlog_format", "ROW"),
    text("block_encryption_mode", "aes-128-ecb"),
    stored("character_set_client", Form::Text),
    stored("character_set_connection", Form::Text),
    stored("character_set_database", Form::Text),
    text("character_set_filesystem", "binary"),
    stored("character_set_results", Form::Text),
    stored("character_set_server", Form::Text),
    text("character_set_system", "utf8mb4"),
    other("character_sets_dir", Form::Text, Source::Null),
    stored("collation_connection", Form::Text),
    stored("collation_database", Form::Text),
    stored("collation_server", Form::Text),
    number("cte_max_recursion_depth", "0"),
    other("datadir", Form::Text, Source::Null),
    text("default_authentication_plugin", "caching_sha2_password"),
    text("default_storage_engine", "Bowshot"),
    text("default_tmp_storage_engine", "Bowshot"),
    number("default_week_format", "0"),
    number("div_precision_increment", "4"),
    stored("enable_profile", Form::Truth),
    other("error_count", Form::Number, Source::Errors),
    text("event_scheduler", "OFF"),
    stored("exec_mem_limit", Form::Number),
    number("explicit_defaults_for_timestamp", "1"),
    stored("foreign_key_checks", Form::Truth),
    other("ft_min_word_len", Form::Number, Source::Null),
    number("general_log", "0"),
    stored("group_concat_max_len", Form::Number),
    text("gtid_mode", "OFF"),
    other("have_openssl", Form::Text, Source::Encryption),
    text("have_profiling", "NO"),
    text("have_query_cache", "NO"),
    other("have_ssl", Form::Text, Source::Encryption),
    other("hostname", Form::Text, Source::Hostname),
    other("identity", Form::Number, Source::Generated),
    other("in_transaction", Form::Truth, Source::InTransaction),
    stored("information_schema_stats_expiry", Form::Number),
    text("init_connect", ""),
    other("innodb_buffer_pool_size", Form::Number, Source::Null),
    number("innodb_file_per_table", "1"),
    stored("innodb_lock_wait_timeout", Form::Number),
    number("innodb_read_only", "0"),
    other("innodb_version", Form::Text, Source::Null),
    number("insert_id", "0"),
    stored("interactive_timeout", Form::Number),
    other("join_buffer_size", Form::Number, Source::Null),
    other("key_buffer_size", Form::Number, Source::Null),
    other("last_insert_id", Form::Number, Source::Generated),
    text("lc_messages", "en_US"),
    text("lc_time_names", "en_US"),
    stored("license", Form::Text),
    number("local_infile", "1"),
    number("log_bin", "0"),
    other("log_error", Form::Text, Source::Null),
    number("long_query_time", "10"),
    number("lower_case_file_system", "0"),
    stored("lower_case_table_names", Form::Number),
    other("max_allowed_packet", Form::Number, Source::MaxPacket),
    other("max_connections", Form::Number, Source::MaxConnections),
    other("max_execution_time", Form::Number, Source::Session("statement_timeout_ms")),
    other("max_heap_table_size", Form::Number, Source::Null),
    number("max_user_connections", "0"),
    number("net_buffer_length", "16384"),
    stored("net_read_timeout", Form::Number),
    stored("net_write_timeout", Form::Number),
    stored("optimizer_switch", Form::Text),
    stored("parallel_fragment_exec_instance_num", Form::Number),
    stored("performance_schema", Form::Truth),
    stored("pipeline_dop", Form::Number),
    other("plugin_dir", Form::Text, Source::Null),
    other("port", Form::Number, Source::Port),
    stored("profiling", Form::Truth),
    number("protocol_version", "10"),
    other("pseudo_thread_id", Form::Number, Source::ConnectionId),
    stored("query_cache_size", Form::Number),
    stored("query_cache_type", Form::Text),
    number("rand_seed1", "0"),
    number("rand_seed2", "0"),
    number("read_only", "0"),
    other("secure_file_priv", Form::Text, Source::Null),
    number("server_id", "1"),
    other("server_uuid", Form::Text, Source::Null),
    number("skip_networking", "0"),
    number("slow_query_log", "0"),
    other("socket", Form::Text, Source::Null),
    other("sort_buffer_size", Form::Number, Source::Null),
    stored("sql_auto_is_null", Form::Truth),
    stored("sql_big_selects", Form::Truth),
    stored("sql_log_bin", Form::Truth),
    stored("sql_mode", Form::Text),
    stored("sql_notes", Form::Truth),
    stored("sql_quote_show_create", Form::Truth),
    stored("sql_safe_updates", Form::Truth),
    other("sql_select_limit", Form::Number, Source::SelectLimit),
    stored("sql_warnings", Form::Truth),
    other("ssl_cipher", Form::Text, Source::Null),
    text("storage_engine", "Bowshot"),
    number("super_read_only", "0"),
    stored("system_time_zone", Form::Text),
    other("table_open_cache", Form::Number, Source::Null),
    other("thread_cache_size", Form::Number, Source::Null),
    stored("time_zone", Form::Text),
    other("timestamp", Form::Number, Source::Computed("unix_timestamp()")),
    other("tmp_table_size", Form::Number, Source::Null),
    other("tmpdir", Form::Text, Source::Null),
    other("transaction_isolation", Form::Text, Source::Isolation),
    other("transaction_read_only", Form::Truth, Source::ReadOnly),
    other("tx_isolation", Form::Text, Source::Isolation),
    other("tx_read_only", Form::Truth, Source::ReadOnly),
    stored("unique_checks", Form::Truth),
    text("version", SERVER_VERSION),
    stored("version_comment", Form::Text),
    text("version_compile_machine", std::env::consts::ARCH),
    text("version_compile_os", std::env::consts::OS),
    stored("wait_timeout", Form::Number),
    other("warning_count", Form::Number, Source::Warnings),
    number("wsrep_on", "0"),
];

/// The state of a connection that the session does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionState {
    /// Whether each statement is a transaction, unless one is open.
    pub(crate) autocommit: bool,
    /// Whether transactions are read-only.
    pub(crate) read_only: bool,
    /// The most rows of a SELECT.
    pub(crate) select_limit: u64,
    pub(crate) connection: u32,
    pub(crate) listen_port: ListenPort,
    /// The last number generated for a row.
    pub(crate) generated: u64,
    /// Rows of the last result.
    pub(crate) found: u64,
    /// The number of conditions of the last statement, and of its errors.
    pub(crate) warnings: u16,
    pub(crate) errors: u16,
    pub(crate) max_connections: usize,
    pub(crate) max_packet: usize,
}

impl ConnectionState {
    /// The state of a new connection.
    pub(crate) fn new(connection: u32, listen_port: ListenPort, limits: &Limits) -> Self {
        Self {
            autocommit: true,
            read_only: false,
            select_limit: u64::MAX,
            connection,
            listen_port,
            generated: 0,
            found: 0,
            warnings: 0,
            errors: 0,
            max_connections: limits.max_connections,
            max_packet: limits.max_sql_bytes,
        }
    }
}

/// The error for an unknown variable.
pub(crate) fn unknown(name: &str) -> Failure {
    Failure::new(1193, "HY000", format!("unknown system variable '{name}'"))
}

/// The value of a variable as SQL writes it.
pub(crate) fn literal(name: &str, session: &dyn Session, state: ConnectionState) -> Result<String, Failure> {
    let found = VARIABLES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))?;
    if let Source::Computed(expression) = found.source {
        return Ok(expression.to_owned());
    }
    let Some(value) = current(found, session, state) else { return Ok("NULL".to_owned()) };
    Ok(match found.form {
        Form::Text => quoted_text(&value),
        Form::Truth => if is_on(&value) { "1" } else { "0" }.to_owned(),
        Form::Number if !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit()) => value,
        Form::Number => quoted_text(&value),
    })
}

/// The value of a variable as text; `None` for null.
pub(crate) fn value(
    name: &str,
    session: &dyn Session,
    state: ConnectionState,
) -> Result<Option<String>, Failure> {
    let found = VARIABLES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))?;
    Ok(current(found, session, state))
}

fn current(variable: &Variable, session: &dyn Session, state: ConnectionState) -> Option<String> {
    let truth = |on: bool| if on { "on" } else { "off" }.to_owned();
    match variable.source {
        Source::Always(value) => Some(value.to_owned()),
        // Expressions have values only within statements.
        Source::Null | Source::Computed(_) => None,
        Source::Generated => Some(state.generated.to_string()),
        Source::Warnings => Some(state.warnings.to_string()),
        Source::Errors => Some(state.errors.to_string()),
        Source::Port => Some(state.listen_port.port.to_string()),
        Source::Encryption => {
            Some(if state.listen_port.is_encrypted { "YES" } else { "DISABLED" }.to_owned())
        }
        Source::Hostname => Some(hostname()),
        Source::MaxPacket => Some(state.max_packet.to_string()),
        Source::MaxConnections => Some(state.max_connections.to_string()),
        Source::InTransaction => Some(truth(session.in_transaction())),
        Source::Autocommit => Some(truth(state.autocommit)),
        Source::ReadOnly => Some(truth(state.read_only)),
        Source::ConnectionId => Some(state.connection.to_string()),
        Source::SelectLimit => Some(state.select_limit.to_string()),
        Source::Isolation => {
            Some(of_session("transaction_isolation", session).to_ascii_uppercase().replace(' ', "-"))
        }
        Source::Session(name) => Some(of_session(name, session)),
    }
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// An option of the session, or the default of a compatibility parameter.
fn of_session(name: &str, session: &dyn Session) -> String {
    match session.option(name) {
        Some(value) => option_text(value),
        // A compatibility parameter, which has no effect in the engine.
        None => session.setting(name).unwrap_or_else(|| {
            let known = COMPATIBILITY_PARAMETERS.iter().find(|known| known.name.eq_ignore_ascii_case(name));
            known.map(|known| known.default.to_owned()).unwrap_or_default()
        }),
    }
}

fn option_text(value: OptionValue) -> String {
    match value {
        OptionValue::String(text) => text,
        OptionValue::Bool(on) => if on { "on" } else { "off" }.to_owned(),
        OptionValue::Int64(number) => number.to_string(),
        OptionValue::Double(number) => number.to_string(),
        OptionValue::StringList(list) => list.join(","),
    }
}

fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "on" | "1" | "true" | "yes")
}

/// A truth value as clients write it.
pub(crate) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" => Some(true),
        "off" | "0" | "false" => Some(false),
        _ => None,
    }
}

/// The session option of a variable; `None` if it cannot be set. A name that is not in the table may be an option of the
/// session.
pub(crate) fn session_name(name: &str) -> Option<&str> {
    match VARIABLES.iter().find(|known| known.name == name) {
        None => Some(name),
        Some(Variable { source: Source::Session(option), .. }) => Some(option),
        Some(Variable { source: Source::Isolation, .. }) => Some("transaction_isolation"),
        // Clients set it; the operator's limit stays.
        Some(Variable { source: Source::MaxPacket, .. }) => Some("max_allowed_packet"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_sorted_and_those_that_are_kept_are_known_to_the_session() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].name < pair[1].name));
        for variable in VARIABLES {
            if let Source::Session(name) = variable.source {
                let is_option = bowshot_api::SESSION_OPTIONS.iter().any(|known| known.name == name);
                let is_parameter = COMPATIBILITY_PARAMETERS.iter().any(|known| known.name == name);
                assert!(is_option || is_parameter, "{name}");
            }
        }
    }
}
