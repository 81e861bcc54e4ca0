//! Rows on their way into a table: `PUT` makes them its content, `POST` adds them. The session takes them in while they come, all
//! of them or none.

mod columns;
mod csv;
mod frames;
mod guess;
mod json;
mod sample;
mod unwrapped;

use crate::caller::Caller;
use crate::form::Form;
use crate::names::table_name;
use crate::order::Options;
use crate::rooms::Room;
use crate::status::{Failure, Result, good};
use crate::tables;
use crate::upload::{Upload, check_encoding};
use arrow::datatypes::SchemaRef;
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::{BatchStream, Error, IfExists, IfMissing, Ingest, Limits, Pieces, TableName};
use futures::StreamExt;
use serde_json::json;
use std::collections::BTreeMap;

/// Columns of rows that come as text: each has its memory whatever it holds.
const MAX_COLUMNS: usize = 4_096;
/// Rows and bytes of one batch of rows that come as text.
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
    let form = form(&parts.headers)?;
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
    let room = Room::enter(caller, &parts.headers, Options::new()).await?;
    let (upload, leftover) = Upload::new(body, room.server.limits().reader_timeout);
    match Box::pin(written(&room, &ingest, (form, upload))).await {
        Ok(count) => Ok(good(StatusCode::OK, &json!({ "rows_affected": count }))),
        Err(error) => {
            leftover.drain(&error).await;
            Err(error.into())
        }
    }
}

/// Writes the rows, and tells how many.
async fn written(room: &Room, ingest: &Ingest, (form, upload): (Form, Upload)) -> bowshot_api::Result<u64> {
    if form == Form::Parquet {
        return room.while_used(room.session.ingest_parquet(ingest, pieces(upload))).await;
    }
    let known = match ingest.if_exists {
        IfExists::Append => columns_of(room, ingest, form).await?,
        IfExists::Fail | IfExists::Replace => None,
    };
    let rows = rows(form, upload, known, room.server.limits()).await?;
    room.while_used(room.session.ingest(ingest, rows)).await
}

/// A body as it comes.
fn pieces(upload: Upload) -> Pieces {
    let pieces = futures::stream::try_unfold(upload, |mut upload| async move {
        Ok(upload.next().await?.map(|piece| (piece, upload)))
    });
    pieces.boxed()
}

/// The form of the rows of a request.
fn form(headers: &HeaderMap) -> Result<Form> {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match Form::of_media_type(media) {
        None => {
            let message = match media {
                "" => "the request does not say the type of its rows (`content-type`)".to_owned(),
                media => format!("rows of type `{media}` are not read"),
            };
            let error = Error::unsupported(message).with_hint(
                "send application/vnd.apache.arrow.stream, application/vnd.apache.arrow.file, \
                 application/vnd.apache.parquet, text/csv, application/x-ndjson or application/json",
            );
            Err(Failure::with_status(error, StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
        Some(form) => Ok(form),
    }
}

/// The columns of a table, for rows that do not bring their types.
async fn columns_of(room: &Room, ingest: &Ingest, form: Form) -> bowshot_api::Result<Option<SchemaRef>> {
    if matches!(form, Form::ArrowStream | Form::ArrowFile) {
        return Ok(None);
    }
    let Ingest { catalog, schema_name, table, .. } = ingest.clone();
    let table = TableName { catalog, schema_name, name: table };
    let found = room.while_used(tables::find(room.session.as_ref(), &table)).await?;
    // The session says in its own words that a table is not there.
    Ok(found.and_then(|table| table.schema))
}

async fn rows(
    form: Form,
    upload: Upload,
    known: Option<SchemaRef>,
    limits: &Limits,
) -> bowshot_api::Result<BatchStream> {
    let longest = limits.max_message_bytes;
    match form {
        Form::Csv => csv::rows(upload, known.as_deref(), longest).await,
        Form::Json | Form::Lines => json::rows(upload, known.as_deref(), longest).await,
        Form::ArrowStream | Form::ArrowFile | Form::Parquet => frames::rows(upload, longest).await,
    }
}
