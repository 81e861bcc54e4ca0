//! The response of a statement. Rows are streamed while the query runs; when the client leaves, the body is dropped,
//! and with it the query.

use crate::media_type::{Format, ResponseFormat};
use crate::output::{Encoder, encoder};
use crate::session_scope::SessionScope;
use crate::status::{Failure, Result, json_response};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bowshot_api::{Answer, BatchStream, Error, Layout, QueryId};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const QUERY_ID: HeaderName = HeaderName::from_static("x-bowshot-query-id");
const ROWS_AFFECTED: HeaderName = HeaderName::from_static("x-bowshot-rows-affected");
/// Bytes buffered before the response begins.
const HELD_BYTES: usize = 64 << 10;
/// Longest time of that.
const HELD_TIME: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) enum Outcome {
    Rows(Box<Answer>),
    /// An effect, with affected rows if known, and notices.
    Effect {
        query: Option<QueryId>,
        affected: Option<u64>,
        notices: Vec<String>,
    },
}

pub(crate) async fn respond(
    mut scope: SessionScope,
    outcome: Outcome,
    wanted: ResponseFormat,
    range: RowRange,
) -> Result<Response> {
    scope.unlock();
    let mut response = match outcome {
        Outcome::Rows(answer) => {
            let query = answer.query;
            ResponseStream::respond(scope, *answer, wanted, range)
                .await
                .map_err(|failure| failure.with_query(query))?
        }
        Outcome::Effect { query, affected, notices } => {
            effect(&scope, wanted.format, query, (affected, &notices))?
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// The response of a statement without rows.
fn effect(
    scope: &SessionScope,
    format: Format,
    query: Option<QueryId>,
    (affected, notices): (Option<u64>, &[String]),
) -> Result<Response> {
    let mut response = match format {
        Format::Json | Format::Lines => {
            let document = match notices {
                [] => json!({ "rows_affected": affected }),
                notices => json!({ "rows_affected": affected, "notices": notices }),
            };
            let mut response = json_response(StatusCode::OK, &document);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
            response
        }
        Format::Csv => with_type(format, Body::empty()),
        Format::ArrowStream | Format::ArrowFile | Format::Parquet => {
            let wanted = ResponseFormat { format, coding: None };
            let mut encoder = encoder(wanted, &empty_answer(query), scope.server.limits())?;
            with_type(format, Body::from(encoder.end()?))
        }
    };
    if let Some(affected) = affected {
        response.headers_mut().insert(ROWS_AFFECTED, HeaderValue::from(affected));
    }
    name(&mut response, query);
    Ok(response)
}

fn empty_answer(query: Option<QueryId>) -> Answer {
    Answer {
        query: query.unwrap_or_else(QueryId::random),
        schema: Arc::new(Schema::empty()),
        layout: Layout::default(),
        partitions: 0,
        ordered: true,
        rows: Some(0),
        expires: None,
        locations: Vec::new(),
        batches: None,
    }
}

fn with_type(format: Format, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    response
}

fn name(response: &mut Response, query: Option<QueryId>) {
    let value = query.and_then(|query| HeaderValue::try_from(query.to_string()).ok());
    if let Some(value) = value {
        response.headers_mut().insert(QUERY_ID, value);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRange {
    skip: u64,
    /// `None` for all.
    take: Option<u64>,
}

impl Default for RowRange {
    fn default() -> Self {
        Self::new(0, None)
    }
}

impl RowRange {
    pub(crate) fn new(skip: u64, take: Option<u64>) -> Self {
        Self { skip, take }
    }

    /// The part of the next batch in the range.
    fn cut(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        if self.skip == 0 && self.take.is_none() {
            return Some(batch);
        }
        let rows = batch.num_rows();
        let skipped = usize::try_from(self.skip).map_or(rows, |skip| skip.min(rows));
        self.skip -= skipped as u64;
        let left = rows - skipped;
        let taken = self.take.map_or(left, |take| usize::try_from(take).map_or(left, |take| take.min(left)));
        self.take = self.take.map(|take| take - taken as u64);
        (taken > 0).then(|| batch.slice(skipped, taken))
    }

    fn is_over(&self) -> bool {
        self.take == Some(0)
    }
}

/// A result being sent.
struct ResponseStream {
    scope: SessionScope,
    answer: Answer,
    range: RowRange,
    next_partition: usize,
    rows: Option<BatchStream>,
    ahead: Option<RecordBatch>,
    /// `None` while it runs on another thread.
    encoder: Option<Box<dyn Encoder>>,
    is_over: bool,
}

/// The body is aborted; the format may have reported the error.
#[derive(Debug, thiserror::Error)]
#[error("the result failed")]
struct Aborted;

impl ResponseStream {
    /// The response with rows. A short result is sent whole or fails with a status; later failures abort it.
    async fn respond(
        scope: SessionScope,
        answer: Answer,
        wanted: ResponseFormat,
        range: RowRange,
    ) -> Result<Response> {
        let encoder = Some(encoder(wanted, &answer, scope.server.limits())?);
        let query = answer.query;
        let (next_partition, rows, ahead) = (0, None, None);
        let mut reading =
            Box::new(Self { scope, answer, range, next_partition, rows, ahead, encoder, is_over: false });
        let first = futures::stream::iter(reading.first_chunks().await?.into_iter().map(Ok));
        let others = futures::stream::unfold(reading, |mut reading| async move {
            let piece = reading.next().await?;
            Some((piece, reading))
        });
        let mut response = with_type(wanted.format, Body::from_stream(first.chain(others)));
        if let Some(coding) = wanted.coding {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        response.headers_mut().append(VARY, HeaderValue::from_static("accept, accept-encoding"));
        name(&mut response, Some(query));
        Ok(response)
    }

    /// The first chunks, so that early errors have a status. Slow rows are not waited for.
    async fn first_chunks(&mut self) -> bowshot_api::Result<Vec<Bytes>> {
        let mut pieces = vec![self.piece().await?];
        let mut bytes = pieces.iter().map(Bytes::len).sum::<usize>();
        let until = Instant::now() + HELD_TIME;
        while !self.is_over && bytes < HELD_BYTES && self.arrives(Some(until)).await? {
            let piece = self.piece().await?;
            bytes += piece.len();
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// The next chunk; `None` after the end.
    async fn next(&mut self) -> Option<std::result::Result<Bytes, Aborted>> {
        if self.is_over {
            return None;
        }
        let error = match self.piece().await {
            Ok(piece) => return Some(Ok(piece)),
            Err(error) => Failure::from(error).with_query(self.answer.query).object(),
        };
        self.is_over = true;
        tracing::debug!(query = %self.answer.query, %error, "a result failed while it was read");
        self.rows = None;
        let told = self.encoder.as_mut().and_then(|encoder| encoder.failed(&error));
        if told.is_none() {
            // Lets the chunk be sent before the abort.
            tokio::task::yield_now().await;
        }
        Some(told.ok_or(Aborted))
    }

    async fn piece(&mut self) -> bowshot_api::Result<Bytes> {
        loop {
            if let Some(piece) = self.encode(|encoder| encoder.more()).await? {
                return Ok(piece);
            }
            let Some(batch) = self.batch().await? else {
                self.is_over = true;
                return self.encode(|encoder| encoder.end()).await;
            };
            if let Some(encoder) = self.encoder.as_mut() {
                encoder.take(batch);
            }
        }
    }

    async fn batch(&mut self) -> bowshot_api::Result<Option<RecordBatch>> {
        while !self.range.is_over() {
            self.arrives(None).await?;
            let Some(batch) = self.ahead.take() else { return Ok(None) };
            if let Some(batch) = self.range.cut(batch) {
                return Ok(Some(batch));
            }
        }
        self.rows = None;
        Ok(None)
    }

    /// Waits for the next batch or the end; returns whether it arrived in time.
    async fn arrives(&mut self, until: Option<Instant>) -> bowshot_api::Result<bool> {
        while self.ahead.is_none() && !self.range.is_over() {
            let Some(rows) = &mut self.rows else {
                if self.next_partition == self.answer.partitions {
                    break;
                }
                self.rows = Some(self.scope.attach(self.answer.query, self.next_partition).await?);
                self.next_partition += 1;
                continue;
            };
            let coming = self.scope.while_used(rows.next());
            let batch = match until {
                Some(until) => match timeout_at(until, coming).await {
                    Ok(batch) => batch,
                    Err(_) => return Ok(false),
                },
                None => coming.await,
            };
            match batch {
                Some(batch) => self.ahead = Some(batch?),
                None => self.rows = None,
            }
        }
        Ok(true)
    }

    /// Runs the encoder, on another thread if it is slow.
    async fn encode<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut dyn Encoder) -> bowshot_api::Result<T> + Send + 'static,
    ) -> bowshot_api::Result<T> {
        let lost = || Error::internal("a result lost its encoder");
        let mut encoder = self.encoder.take().ok_or_else(lost)?;
        let (encoder, done) = if encoder.is_heavy() {
            let working = tokio::task::spawn_blocking(move || {
                let done = work(encoder.as_mut());
                (encoder, done)
            });
            working.await.map_err(|error| Error::internal("an encoder panicked").with_source(error))?
        } else {
            let done = work(encoder.as_mut());
            (encoder, done)
        };
        self.encoder = Some(encoder);
        done
    }
}
