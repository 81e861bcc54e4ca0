//! Uploads into a table: `PUT` replaces its rows, `POST` appends. The rows are streamed, and written all or none.

mod columns;
mod csv;
mod frames;
mod json;
mod json_array;
mod sample;
mod type_inference;

use crate::caller::Caller;
use crate::media_type::Format;
use crate::request_body::{Upload, check_encoding};
use crate::session_scope::SessionScope;
use crate::sql_request::SessionOptions;
use crate::status::{Failure, Result, json_response};
use crate::table_name::table_name;
use crate::tables;
use arrow::datatypes::SchemaRef;
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::{BatchStream, ByteStream, Error, IfExists, IfMissing, Ingest, Limits, TableName};
use futures::StreamExt;
use serde_json::json;
use std::collections::BTreeMap;

/// Columns of text formats: each needs memory even if empty.
const MAX_COLUMNS: usize = 4_096;
/// Rows and bytes per batch of text formats.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 4 << 20;

/// Answers `PUT /v1/tables/{name}`.
pub(crate) async fn replace(caller: Caller, Path(name): Path<String>, request: Request) -> Result<Response> {
    write(caller, &name, request, (IfMissing::Create, IfExists::Replace)).await
}

/// Answers `POST /v1/tables/{name}`.
pub(crate) async fn append(caller: Caller, Path(name): Path<String>, request: Request) -> Result<Response> {
    write(caller, &name, request, (IfMissing::Fail, IfExists::Append)).await
}

async fn write(
    caller: Caller,
    name: &str,
    request: Request,
    (if_missing, if_exists): (IfMissing, IfExists),
) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let format = format(&parts.headers)?;
    check_encoding(&parts.headers)?;
    let TableName { catalog, schema_name, name } = table_name(name)?;
    let ingest = Ingest {
        catalog,
        schema_name,
        table: name,
        temporary: false,
        if_missing,
        if_exists,
        transaction: None,
        options: BTreeMap::new(),
    };
    let scope = SessionScope::enter(caller, &parts.headers, SessionOptions::new()).await?;
    let (upload, leftover) = Upload::new(body, scope.server.limits().reader_timeout);
    match Box::pin(write_rows(&scope, &ingest, (format, upload))).await {
        Ok(count) => Ok(json_response(StatusCode::OK, &json!({ "rows_affected": count }))),
        Err(error) => {
            leftover.drain(&error).await;
            Err(error.into())
        }
    }
}

async fn write_rows(
    scope: &SessionScope,
    ingest: &Ingest,
    (format, upload): (Format, Upload),
) -> bowshot_api::Result<u64> {
    if format == Format::Parquet {
        return scope.while_used(scope.session.ingest_parquet(ingest, pieces(upload))).await;
    }
    let known = match ingest.if_exists {
        IfExists::Append => columns_of(scope, ingest, format).await?,
        IfExists::Fail | IfExists::Replace => None,
    };
    let rows = rows(format, upload, known, scope.server.limits()).await?;
    scope.while_used(scope.session.ingest(ingest, rows)).await
}

/// The body as a stream of chunks.
fn pieces(upload: Upload) -> ByteStream {
    let pieces = futures::stream::try_unfold(upload, |mut upload| async move {
        Ok(upload.next().await?.map(|piece| (piece, upload)))
    });
    pieces.boxed()
}

fn format(headers: &HeaderMap) -> Result<Format> {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match Format::from_media_type(media) {
        None => {
            let message = match media {
                "" => "the request has no `content-type`".to_owned(),
                media => format!("unsupported content type `{media}`"),
            };
            let error = Error::unsupported(message).with_hint(
                "send application/vnd.apache.arrow.stream, application/vnd.apache.arrow.file, \
                 application/vnd.apache.parquet, text/csv, application/x-ndjson or application/json",
            );
            Err(Failure::with_status(error, StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
        Some(format) => Ok(format),
    }
}

/// The columns of a table, for formats without types.
async fn columns_of(
    scope: &SessionScope,
    ingest: &Ingest,
    format: Format,
) -> bowshot_api::Result<Option<SchemaRef>> {
    if matches!(format, Format::ArrowStream | Format::ArrowFile) {
        return Ok(None);
    }
    let Ingest { catalog, schema_name, table, .. } = ingest.clone();
    let table = TableName { catalog, schema_name, name: table };
    let found = scope.while_used(tables::find(scope.session.as_ref(), &table)).await?;
    // The session reports a missing table.
    Ok(found.and_then(|table| table.schema))
}

async fn rows(
    format: Format,
    upload: Upload,
    known: Option<SchemaRef>,
    limits: &Limits,
) -> bowshot_api::Result<BatchStream> {
    let max_bytes = limits.max_message_bytes;
    match format {
        Format::Csv => csv::rows(upload, known.as_deref(), max_bytes).await,
        Format::Json | Format::Lines => json::rows(upload, known.as_deref(), max_bytes).await,
        Format::ArrowStream | Format::ArrowFile | Format::Parquet => frames::rows(upload, max_bytes).await,
    }
}
