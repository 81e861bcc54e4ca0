//! The tools. Each call has a session of its own, with a read-only transaction, and ends with it.

use super::rows::FirstRows;
use super::{INVALID_PARAMS, RpcError};
use crate::caller::Caller;
use crate::parameters;
use crate::session_scope::SessionScope;
use crate::sql::begin;
use crate::sql_request::Parameters;
use crate::status::{Failure, Result};
use crate::table_name::{select_all, table_name};
use crate::tables::find;
use axum::http::HeaderMap;
use bowshot_api::{
    Answer, Delivery, Description, Error, ErrorKind, OptionValue, Reason, Request as Running, TableName,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The answer to `tools/list`, written by hand.
pub(super) const LIST: &str = include_str!("tools.json");

const MAX_ROWS: usize = 10_000;
const MAX_SAMPLE_ROWS: usize = 100;

/// The tables of `information_schema` that fit three patterns.
const TABLES: &str = "SELECT table_catalog, table_schema, table_name, table_type, table_rows, table_comment \
     FROM information_schema.tables WHERE table_catalog LIKE $1 AND table_schema LIKE $2 AND table_name LIKE $3";
const WITHOUT_SYSTEM: &str = " AND table_schema NOT IN ('information_schema', 'pg_catalog', 'system')";
const TABLES_IN_ORDER: &str = " ORDER BY table_catalog, table_schema, table_name";
const TABLE: &str = "SELECT table_type, table_rows, table_comment FROM information_schema.tables \
     WHERE table_catalog = $1 AND table_schema = $2 AND table_name = $3";
const COLUMNS: &str = "SELECT column_name, column_type, is_nullable, column_default, column_key, column_comment \
     FROM information_schema.columns WHERE table_catalog = $1 AND table_schema = $2 AND table_name = $3 \
     ORDER BY ordinal_position";

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTables {
    catalog: Option<String>,
    schema: Option<String>,
    pattern: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeTable {
    table: String,
    sample_rows: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    sql: String,
    max_rows: Option<usize>,
    timeout_seconds: Option<u32>,
    #[serde(default)]
    store_result: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explain {
    sql: String,
    #[serde(default)]
    analyze: bool,
}

/// What a tool found: a text to read, and a JSON object with the same.
struct Found {
    text: String,
    json: String,
}

/// Calls a tool. Its errors are results, so that the model can read them.
pub(super) async fn call(caller: Caller, params: Value) -> Result<String, RpcError> {
    let invalid =
        |error: serde_json::Error| RpcError::new(INVALID_PARAMS, format!("invalid params: {error}"));
    let Call { name, arguments } = serde_json::from_value(params).map_err(invalid)?;
    let arguments = Value::Object(arguments.unwrap_or_default());
    let found = match name.as_str() {
        "list_tables" => Box::pin(list_tables(caller, arguments)).await,
        "describe_table" => Box::pin(describe_table(caller, arguments)).await,
        "query" => Box::pin(query(caller, arguments)).await,
        "explain" => Box::pin(explain(caller, arguments)).await,
        _ => {
            let name: String = name.chars().take(100).collect();
            return Err(RpcError::new(INVALID_PARAMS, format!("tool `{name}` does not exist")));
        }
    };
    let (Found { text, json }, is_error) = match found {
        Ok(found) => (found, false),
        Err(failure) => (describe_failure(&failure), true),
    };
    let text = Value::String(text);
    Ok(format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{json},\"isError\":{is_error}}}"
    ))
}

fn describe_failure(failure: &Failure) -> Found {
    let json = failure.object();
    let part = |name: &str| json["error"][name].as_str().unwrap_or_default().to_owned();
    let (message, hint) = (part("message"), part("hint"));
    let text = if hint.is_empty() { message } else { format!("{message}\nhint: {hint}") };
    Found { text, json: json.to_string() }
}

fn read_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    let invalid = |error: serde_json::Error| {
        Error::invalid(format!("invalid arguments: {error}"))
            .with_hint("`tools/list` has the arguments of each tool")
    };
    Ok(serde_json::from_value(arguments).map_err(invalid)?)
}

/// A number of rows within its limits.
fn row_count(
    name: &str,
    given: Option<usize>,
    (default, least, most): (usize, usize, usize),
) -> Result<usize> {
    let count = given.unwrap_or(default);
    if (least..=most).contains(&count) {
        return Ok(count);
    }
    Err(Error::invalid(format!("invalid `{name}`: expected {least} to {most}, got {count}")).into())
}

async fn list_tables(caller: Caller, arguments: Value) -> Result<Found> {
    let ListTables { catalog, schema, pattern, limit } = read_arguments(arguments)?;
    let limit = row_count("limit", limit, (200, 1, MAX_ROWS))?;
    let others = if schema.is_none() { WITHOUT_SYSTEM } else { "" };
    let all = || "%".to_owned();
    let patterns = [catalog, schema, pattern].map(|pattern| pattern.unwrap_or_else(all));
    let scope = enter(caller, [ansi()]).await?;
    let rows = read_rows(&scope, &format!("{TABLES}{others}{TABLES_IN_ORDER}"), patterns, limit).await?;
    let more = if rows.is_cut { "; there are more: raise `limit` or give a `pattern`" } else { "" };
    let text = format!("{}\n{} tables{more}", rows.csv, rows.count);
    Ok(Found { text, json: format!("{},\"is_cut\":{}}}", rows.open_json, rows.is_cut) })
}

async fn describe_table(caller: Caller, arguments: Value) -> Result<Found> {
    let DescribeTable { table, sample_rows } = read_arguments(arguments)?;
    let sample_rows = row_count("sample_rows", sample_rows, (5, 0, MAX_SAMPLE_ROWS))?;
    let name = table_name(&table)?;
    let scope = enter(caller, [ansi()]).await?;
    let found = scope.while_used(find(scope.session.as_ref(), &name)).await?;
    let found = found.ok_or_else(|| {
        Error::not_found(format!("table `{}` not found", name.name))
            .with_hint("`list_tables` lists all tables; names are case-sensitive")
    })?;
    let names = [found.catalog, found.schema_name, found.name];
    let [catalog, schema_name, name] = names.clone();
    let exact = TableName { catalog: Some(catalog), schema_name: Some(schema_name), name };
    let about = read_rows(&scope, TABLE, names.clone(), 1).await?;
    let columns = read_rows(&scope, COLUMNS, names.clone(), MAX_ROWS).await?;
    let key = scope.while_used(scope.session.primary_key(&exact)).await?;
    let key = key.map(|key| key.columns);
    let sql = format!("{} LIMIT {sample_rows}", select_all(scope.session.as_ref(), &exact));
    let mut text = format!("{}\n\n{}\n{}", names.join("."), about.csv, columns.csv);
    if let Some(columns) = &key {
        text.push_str(&format!("\nprimary key: {}\n", columns.join(", ")));
    }
    let mut sample = "null".to_owned();
    if sample_rows > 0 {
        let answer = start(&scope, &sql, Parameters::None, Delivery::Stream).await?;
        let rows = FirstRows::read(&scope, &answer, sample_rows).await?;
        text.push_str(&format!("\nsample:\n{}", rows.csv));
        sample = rows.json();
    }
    let json = format!(
        "{{\"name\":{},\"table\":{},\"columns\":{},\"primary_key\":{},\"sample\":{sample}}}",
        json!(names),
        about.json(),
        columns.json(),
        json!(key)
    );
    Ok(Found { text, json })
}

async fn query(caller: Caller, arguments: Value) -> Result<Found> {
    let Query { sql, max_rows, timeout_seconds, store_result } = read_arguments(arguments)?;
    let max_rows = row_count("max_rows", max_rows, (200, 1, MAX_ROWS))?;
    let timeout = timeout_seconds.map(|seconds| {
        ("statement_timeout_ms".to_owned(), Some(OptionValue::Int64(i64::from(seconds) * 1000)))
    });
    let scope = enter(caller, timeout).await?;
    let delivery = if store_result { Delivery::Spool } else { Delivery::Stream };
    let sql = sql.trim();
    let started = start(&scope, sql, Parameters::None, delivery).await;
    let answer = started.map_err(|failure| failure.placed(sql, 0))?;
    let rows = FirstRows::read(&scope, &answer, max_rows).await?;
    let path = store_result.then(|| format!("/v1/queries/{}/rows?format=arrow", answer.query));
    let mut text = format!("{}\n{}", rows.csv, counted(&rows, store_result));
    if let Some(path) = &path {
        text.push_str(&format!("\nall rows as Arrow: GET {path} at this server, with the same credentials"));
    }
    let (is_cut, path) = (rows.is_cut, json!(path));
    Ok(Found { text, json: format!("{},\"is_cut\":{is_cut},\"rows_path\":{path}}}", rows.open_json) })
}

/// How many rows there are, and how to get the others.
fn counted(rows: &FirstRows, is_stored: bool) -> String {
    let count = rows.count;
    match (rows.is_cut, count) {
        (false, _) => format!("{count} rows"),
        (true, 0) => {
            "the first row is larger than 1 MiB: select fewer columns, or parts of long values".to_owned()
        }
        (true, _) if is_stored => format!("first {count} rows of more"),
        (true, _) => format!(
            "first {count} rows of more: aggregate or filter in SQL, raise `max_rows`, or set `store_result` to fetch \
             all rows over HTTP"
        ),
    }
}

async fn explain(caller: Caller, arguments: Value) -> Result<Found> {
    let Explain { sql, analyze } = read_arguments(arguments)?;
    let scope = enter(caller, None).await?;
    let verb = if analyze { "EXPLAIN ANALYZE" } else { "EXPLAIN" };
    let answer = start(&scope, &format!("{verb} {sql}"), Parameters::None, Delivery::Stream).await?;
    let rows = FirstRows::read(&scope, &answer, MAX_ROWS).await?;
    Ok(Found { json: rows.json(), text: rows.csv })
}

/// The rows of a statement of ours with three texts as parameters.
async fn read_rows(
    scope: &SessionScope,
    sql: &str,
    values: [String; 3],
    max_rows: usize,
) -> Result<FirstRows> {
    let values = Parameters::Numbered(values.into_iter().map(Value::String).collect());
    let answer = start(scope, sql, values, Delivery::Stream).await?;
    FirstRows::read(scope, &answer, max_rows).await
}

type SessionOption = (String, Option<OptionValue>);

/// The dialect of our own statements.
fn ansi() -> SessionOption {
    ("dialect".to_owned(), Some(OptionValue::String("ansi".to_owned())))
}

/// A new session in a read-only transaction.
async fn enter(caller: Caller, options: impl IntoIterator<Item = SessionOption>) -> Result<SessionScope> {
    let name = ("application_name".to_owned(), Some(OptionValue::String("mcp".to_owned())));
    let options = std::iter::once(name).chain(options).collect();
    // Without the headers of the request: a session of the client may have a transaction that writes.
    let scope = SessionScope::enter(caller, &HeaderMap::new(), options).await?;
    scope.while_used(scope.session.update(&Running::sql("BEGIN READ ONLY"))).await?;
    Ok(scope)
}

/// Starts one statement, which may only read.
async fn start(scope: &SessionScope, sql: &str, given: Parameters, delivery: Delivery) -> Result<Answer> {
    let statements = scope.session.statements(sql);
    let [statement] = statements.as_slice() else {
        let message = format!("expected one statement, got {}", statements.len());
        return Err(Error::invalid(message).with_hint("call the tool once for each statement").into());
    };
    let (prepared, Description { parameters: wanted, reads_only, .. }) = scope.prepare(statement).await?;
    if !reads_only {
        return Err(Error::new(ErrorKind::Denied, "agents may only run statements that read")
            .with_reason(Reason::ReadOnlyTransaction)
            .with_hint("use SELECT, SHOW, DESCRIBE or EXPLAIN; change tables with another client")
            .into());
    }
    if let Some(row) = parameters::row(&wanted, given)? {
        scope.while_used(scope.session.bind(prepared.id, vec![row])).await?;
    }
    begin(scope, &prepared, delivery).await
}
