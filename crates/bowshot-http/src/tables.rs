//! Lists and describes tables, and reads their rows.

use crate::caller::Caller;
use crate::media_type::ResponseFormat;
use crate::output;
use crate::response::{self, RowRange};
use crate::session_scope::SessionScope;
use crate::sql::{invalid_query_string, start};
use crate::sql_request::{Parameters, SessionOptions};
use crate::status::{Result, json_response};
use crate::table_name::{option, select_all, table_name};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::{Delivery, Error, Session, TableEntry, TableFilter, TableName};
use serde::Deserialize;
use serde_json::{Value, json};

/// Filters: `LIKE` patterns, except for the exact catalog.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableFilters {
    catalog: Option<String>,
    schema: Option<String>,
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsQuery {
    limit: Option<u64>,
    format: Option<String>,
}

/// Answers `GET /v1/tables`.
pub(crate) async fn list(
    caller: Caller,
    query: std::result::Result<Query<TableFilters>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(TableFilters { catalog, schema, name }) =
        query.map_err(|error| invalid_query_string(&error))?;
    let filter =
        TableFilter { catalog, schema_pattern: schema, table_pattern: name, ..TableFilter::default() };
    let scope = SessionScope::enter(caller, &headers, SessionOptions::new()).await?;
    let tables = scope.while_used(scope.session.tables(&filter)).await?;
    let tables: Vec<Value> = tables.iter().map(table_json).collect();
    Ok(json_response(StatusCode::OK, &json!({ "tables": tables })))
}

fn table_json(table: &TableEntry) -> Value {
    json!({
        "catalog": table.catalog,
        "schema": table.schema_name,
        "name": table.name,
        "kind": table.kind.name(),
    })
}

/// Answers `GET /v1/tables/{name}`.
pub(crate) async fn describe(
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let name = table_name(&name)?;
    let scope = SessionScope::enter(caller, &headers, SessionOptions::new()).await?;
    let session = scope.session.as_ref();
    let found = scope.while_used(find(session, &name)).await?;
    let table = found.ok_or_else(|| {
        Error::not_found(format!("table `{}` not found", name.name))
            .with_hint("`GET /v1/tables` lists all tables")
    })?;
    let exact = TableName {
        catalog: Some(table.catalog.clone()),
        schema_name: Some(table.schema_name.clone()),
        name: table.name.clone(),
    };
    let key = scope.while_used(session.primary_key(&exact)).await?;
    let mut body = table_json(&table);
    body["remarks"] = json!(table.remarks);
    body["columns"] = table.schema.as_deref().map(output::columns).unwrap_or_default();
    body["primary_key"] = json!(key.map(|key| key.columns));
    Ok(json_response(StatusCode::OK, &body))
}

pub(crate) async fn find(session: &dyn Session, name: &TableName) -> bowshot_api::Result<Option<TableEntry>> {
    let catalog = name.catalog.clone().unwrap_or_else(|| option(session, "catalog"));
    let schema = name.schema_name.clone().unwrap_or_else(|| option(session, "schema"));
    let filter = TableFilter {
        catalog: Some(catalog),
        schema_pattern: Some(exactly(&schema)),
        table_pattern: Some(exactly(&name.name)),
        include_schema: true,
        kinds: None,
    };
    Ok(session.tables(&filter).await?.into_iter().next())
}

/// A pattern that matches one text only.
fn exactly(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

/// Answers `GET /v1/tables/{name}/rows`.
pub(crate) async fn rows(
    caller: Caller,
    Path(name): Path<String>,
    query: std::result::Result<Query<RowsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(RowsQuery { limit, format }) = query.map_err(|error| invalid_query_string(&error))?;
    let format = ResponseFormat::read(&headers, format.as_deref())?;
    let name = table_name(&name)?;
    let scope = SessionScope::enter(caller, &headers, SessionOptions::new()).await?;
    let mut sql = select_all(scope.session.as_ref(), &name);
    if let Some(limit) = limit {
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    let outcome = Box::pin(start(&scope, &sql, Parameters::None, Delivery::Stream)).await?;
    response::respond(scope, outcome, format, RowRange::default()).await
}
