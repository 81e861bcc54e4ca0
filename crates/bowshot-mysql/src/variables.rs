//! The system variables that clients ask for and set, each with its type and with where its value comes from. What is not in
//! this table is unknown, and said to be: a value that is made up would lead drivers astray.

use crate::handshake::SERVER_VERSION;
use crate::lex::quoted_text;
use crate::status::Failure;
use bowshot_api::{COMPATIBILITY_PARAMETERS, OptionValue, Session};

/// What a variable is to a client that selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    /// 1 or 0.
    Truth,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The session keeps it, under this name.
    Kept(&'static str),
    /// It never changes.
    Always(&'static str),
    /// It is null.
    Null,
    Autocommit,
    ReadOnly,
    /// An isolation level, which MySQL writes in capitals.
    Isolation,
    SelectLimit,
    ConnectionId,
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

const fn kept(name: &'static str, form: Form) -> Variable {
    Variable { name, form, source: Source::Kept(name) }
}

const fn other(name: &'static str, form: Form, source: Source) -> Variable {
    Variable { name, form, source }
}

const VARIABLES: &[Variable] = &[
    number("auto_increment_increment", "1"),
    number("auto_increment_offset", "1"),
    other("autocommit", Form::Truth, Source::Autocommit),
    kept("character_set_client", Form::Text),
    kept("character_set_connection", Form::Text),
    kept("character_set_database", Form::Text),
    kept("character_set_results", Form::Text),
    kept("character_set_server", Form::Text),
    text("character_set_system", "utf8mb4"),
    kept("collation_connection", Form::Text),
    kept("collation_database", Form::Text),
    kept("collation_server", Form::Text),
    text("default_storage_engine", "Bowshot"),
    kept("enable_profile", Form::Truth),
    number("error_count", "0"),
    kept("exec_mem_limit", Form::Number),
    kept("foreign_key_checks", Form::Truth),
    text("gtid_mode", "OFF"),
    number("identity", "0"),
    text("init_connect", ""),
    kept("innodb_lock_wait_timeout", Form::Number),
    number("innodb_read_only", "0"),
    kept("interactive_timeout", Form::Number),
    number("last_insert_id", "0"),
    kept("license", Form::Text),
    number("local_infile", "1"),
    kept("lower_case_table_names", Form::Number),
    kept("max_allowed_packet", Form::Number),
    other("max_execution_time", Form::Number, Source::Kept("statement_timeout_ms")),
    number("net_buffer_length", "16384"),
    kept("net_read_timeout", Form::Number),
    kept("net_write_timeout", Form::Number),
    kept("optimizer_switch", Form::Text),
    kept("parallel_fragment_exec_instance_num", Form::Number),
    kept("performance_schema", Form::Truth),
    kept("pipeline_dop", Form::Number),
    kept("profiling", Form::Truth),
    number("protocol_version", "10"),
    other("pseudo_thread_id", Form::Number, Source::ConnectionId),
    kept("query_cache_size", Form::Number),
    kept("query_cache_type", Form::Text),
    number("read_only", "0"),
    other("socket", Form::Text, Source::Null),
    kept("sql_auto_is_null", Form::Truth),
    kept("sql_mode", Form::Text),
    kept("sql_notes", Form::Truth),
    kept("sql_quote_show_create", Form::Truth),
    kept("sql_safe_updates", Form::Truth),
    other("sql_select_limit", Form::Number, Source::SelectLimit),
    kept("sql_warnings", Form::Truth),
    text("storage_engine", "Bowshot"),
    number("super_read_only", "0"),
    kept("system_time_zone", Form::Text),
    kept("time_zone", Form::Text),
    other("transaction_isolation", Form::Text, Source::Isolation),
    other("transaction_read_only", Form::Truth, Source::ReadOnly),
    other("tx_isolation", Form::Text, Source::Isolation),
    other("tx_read_only", Form::Truth, Source::ReadOnly),
    kept("unique_checks", Form::Truth),
    text("version", SERVER_VERSION),
    kept("version_comment", Form::Text),
    text("version_compile_machine", std::env::consts::ARCH),
    text("version_compile_os", std::env::consts::OS),
    kept("wait_timeout", Form::Number),
    number("warning_count", "0"),
];

/// What a connection keeps of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Own {
    /// Each statement is a transaction, unless one has been begun.
    pub(crate) autocommit: bool,
    /// Transactions change nothing.
    pub(crate) read_only: bool,
    /// Rows that a SELECT gives at most.
    pub(crate) select_limit: u64,
    pub(crate) connection: u32,
}

impl Own {
    /// That of a new connection.
    pub(crate) fn new(connection: u32) -> Self {
        Self { autocommit: true, read_only: false, select_limit: u64::MAX, connection }
    }
}

/// What is told of a name that no variable has.
pub(crate) fn unknown(name: &str) -> Failure {
    Failure::new(1193, "HY000", format!("unknown system variable '{name}'"))
}

/// A name without what is before it: `@@session.sql_mode` is `sql_mode`.
pub(crate) fn bare(variable: &str) -> String {
    let name = variable.trim_start_matches('@').replace('`', "").to_ascii_lowercase();
    match name.split_once('.') {
        Some(("session" | "global" | "local" | "persist" | "persist_only", name)) => name.to_owned(),
        _ => name,
    }
}

/// The value of a variable as SQL writes it.
pub(crate) fn literal(name: &str, session: &dyn Session, own: Own) -> Result<String, Failure> {
    let found = VARIABLES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))?;
    let Some(value) = current(found, session, own) else { return Ok("NULL".to_owned()) };
    Ok(match found.form {
        Form::Text => quoted_text(&value),
        Form::Truth => if is_on(&value) { "1" } else { "0" }.to_owned(),
        Form::Number if !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit()) => value,
        Form::Number => quoted_text(&value),
    })
}

/// The value of a variable as text; `None` for null.
pub(crate) fn value(name: &str, session: &dyn Session, own: Own) -> Result<Option<String>, Failure> {
    let found = VARIABLES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))?;
    Ok(current(found, session, own))
}

fn current(variable: &Variable, session: &dyn Session, own: Own) -> Option<String> {
    let truth = |on: bool| if on { "on" } else { "off" }.to_owned();
    match variable.source {
        Source::Always(value) => Some(value.to_owned()),
        Source::Null => None,
        Source::Autocommit => Some(truth(own.autocommit)),
        Source::ReadOnly => Some(truth(own.read_only)),
        Source::ConnectionId => Some(own.connection.to_string()),
        Source::SelectLimit => Some(own.select_limit.to_string()),
        Source::Isolation => {
            Some(of_session("transaction_isolation", session).to_ascii_uppercase().replace(' ', "-"))
        }
        Source::Kept(name) => Some(of_session(name, session)),
    }
}

/// What the session keeps, or the default of what it does not list.
fn of_session(name: &str, session: &dyn Session) -> String {
    let options = session.options();
    match options.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some((_, value)) => shown(value),
        None => COMPATIBILITY_PARAMETERS
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name))
            .map(|known| known.default.to_owned())
            .unwrap_or_default(),
    }
}

fn shown(value: OptionValue) -> String {
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

/// The truth value that a client writes.
pub(crate) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" => Some(true),
        "off" | "0" | "false" => Some(false),
        _ => None,
    }
}

/// Under which name the session keeps a variable; `None` if it cannot be set, and the name itself if the table has none, since
/// the session has options of its own.
pub(crate) fn kept_as(name: &str) -> Option<&str> {
    match VARIABLES.iter().find(|known| known.name == name) {
        None => Some(name),
        Some(Variable { source: Source::Kept(kept), .. }) => Some(kept),
        Some(Variable { source: Source::Isolation, .. }) => Some("transaction_isolation"),
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
            if let Source::Kept(name) = variable.source {
                let is_option = bowshot_api::SESSION_OPTIONS.iter().any(|known| known.name == name);
                let is_parameter = COMPATIBILITY_PARAMETERS.iter().any(|known| known.name == name);
                assert!(is_option || is_parameter, "{name}");
            }
        }
    }

    #[test]
    fn names_lose_their_scope() {
        for (name, expected) in [
            ("@@SQL_MODE", "sql_mode"),
            ("@@session.`sql_mode`", "sql_mode"),
            ("@@global.x", "x"),
            ("@@a.b", "a.b"),
            ("wait_timeout", "wait_timeout"),
        ] {
            assert_eq!(bare(name), expected);
        }
    }
}
