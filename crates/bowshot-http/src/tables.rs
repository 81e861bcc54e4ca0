//! What tables there are, and what is in them.

use crate::answer::{self, Section};
use crate::caller::Caller;
use crate::form::Wish;
use crate::names::{option, select_all, table_name};
use crate::order::{Options, Parameters};
use crate::output;
use crate::rooms::Room;
use crate::sql::{start, unread};
use crate::status::{Result, good};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::{Delivery, Error, Session, TableEntry, TableFilter, TableName};
use serde::Deserialize;
use serde_json::{Value, json};

/// Which tables to list: patterns of `LIKE`, but the catalog's name is exact.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    catalog: Option<String>,
    schema: Option<String>,
    name: Option<String>,
}

/// Which rows of a table to give, and in which form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    limit: Option<u64>,
    format: Option<String>,
}

/// Answers `GET /v1/tables`.
pub(crate) async fn list(
    caller: Caller,
    which: std::result::Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(Which { catalog, schema, name }) = which.map_err(|error| unread(&error))?;
    let filter =
        TableFilter { catalog, schema_pattern: schema, table_pattern: name, ..TableFilter::default() };
    let room = Room::enter(caller, &headers, Options::new()).await?;
    let tables = room.while_used(room.session.tables(&filter)).await?;
    let tables: Vec<Value> = tables.iter().map(shown).collect();
    Ok(good(StatusCode::OK, &json!({ "tables": tables })))
}

fn shown(table: &TableEntry) -> Value {
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
    let room = Room::enter(caller, &headers, Options::new()).await?;
    let session = room.session.as_ref();
    let found = room.while_used(find(session, &name)).await?;
    let table = found.ok_or_else(|| {
        Error::not_found(format!("table `{}` not found", name.name))
            .with_hint("`GET /v1/tables` lists all tables")
    })?;
    let exact = TableName {
        catalog: Some(table.catalog.clone()),
        schema_name: Some(table.schema_name.clone()),
        name: table.name.clone(),
    };
    let key = room.while_used(session.primary_key(&exact)).await?;
    let mut told = shown(&table);
    told["remarks"] = json!(table.remarks);
    told["columns"] = table.schema.as_deref().map(output::columns).unwrap_or_default();
    told["primary_key"] = json!(key.map(|key| key.columns));
    Ok(good(StatusCode::OK, &told))
}

/// Finds a table with its columns.
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

/// A pattern that is like one text only.
fn exactly(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

/// Answers `GET /v1/tables/{name}/rows`.
pub(crate) async fn rows(
    caller: Caller,
    Path(name): Path<String>,
    which: std::result::Result<Query<Part>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(Part { limit, format }) = which.map_err(|error| unread(&error))?;
    let wish = Wish::read(&headers, format.as_deref())?;
    let name = table_name(&name)?;
    let room = Room::enter(caller, &headers, Options::new()).await?;
    let mut sql = select_all(room.session.as_ref(), &name);
    if let Some(limit) = limit {
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    let answered = Box::pin(start(&room, &sql, Parameters::None, Delivery::Stream)).await?;
    answer::respond(room, answered, wish, Section::default()).await
}
