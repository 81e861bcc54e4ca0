//! From the result of a statement to the answer of its request. A result with rows goes out while it is made: when the client is
//! gone, the body is dropped, and with it the query.

use crate::form::{Form, Wish};
use crate::output::{Encoder, encoder};
use crate::rooms::Room;
use crate::status::{Failure, Result, good};
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
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const QUERY_ID: HeaderName = HeaderName::from_static("x-bowshot-query-id");
const ROWS_AFFECTED: HeaderName = HeaderName::from_static("x-bowshot-rows-affected");
/// Bytes of a result that wait for its end, or for more, before any goes out.
const HELD_BYTES: usize = 64 << 10;
/// How long they wait.
const HELD_TIME: Duration = Duration::from_millis(250);

/// What a statement has led to.
#[derive(Debug)]
pub(crate) enum Answered {
    /// Rows, which are there to be read.
    Rows(Box<Answer>),
    /// An effect, on how many rows, if that is known, and what is said beside it.
    Effect { query: Option<QueryId>, affected: Option<u64>, notices: Vec<String> },
}

/// The answer of a request.
///
/// # Errors
/// `Unsupported` for columns that the form has no place for.
pub(crate) async fn respond(
    mut room: Room,
    answered: Answered,
    wish: Wish,
    section: Section,
) -> Result<Response> {
    room.unlock();
    let mut response = match answered {
        Answered::Rows(answer) => {
            let query = answer.query;
            Reading::respond(room, *answer, wish, section).await.map_err(|failure| failure.of_query(query))?
        }
        Answered::Effect { query, affected, notices } => {
            effect(&room, wish.form, query, (affected, &notices))?
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// The answer of a statement without rows.
fn effect(
    room: &Room,
    form: Form,
    query: Option<QueryId>,
    (affected, notices): (Option<u64>, &[String]),
) -> Result<Response> {
    let mut response = match form {
        Form::Json | Form::Lines => {
            let document = match notices {
                [] => json!({ "rows_affected": affected }),
                notices => json!({ "rows_affected": affected, "notices": notices }),
            };
            let mut response = good(StatusCode::OK, &document);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
            response
        }
        Form::Csv => with_type(form, Body::empty()),
        Form::ArrowStream | Form::ArrowFile | Form::Parquet => {
            let wish = Wish { form, coding: None };
            let mut encoder = encoder(wish, &nothing(query), room.server.limits())?;
            with_type(form, Body::from(encoder.end()?))
        }
    };
    if let Some(affected) = affected {
        response.headers_mut().insert(ROWS_AFFECTED, HeaderValue::from(affected));
    }
    name(&mut response, query);
    Ok(response)
}

/// A result without columns.
fn nothing(query: Option<QueryId>) -> Answer {
    Answer {
        query: query.unwrap_or_else(QueryId::random),
        schema: Arc::new(Schema::empty()),
        layout: Layout::default(),
        partitions: 0,
        ordered: true,
        rows: Some(0),
        expires: None,
        locations: Vec::new(),
    }
}

fn with_type(form: Form, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    response
}

fn name(response: &mut Response, query: Option<QueryId>) {
    let value = query.and_then(|query| HeaderValue::try_from(query.to_string()).ok());
    if let Some(value) = value {
        response.headers_mut().insert(QUERY_ID, value);
    }
}

/// Which rows of a result go out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    skip: u64,
    /// `None` for all that there are.
    take: Option<u64>,
}

impl Default for Section {
    fn default() -> Self {
        Self::new(0, None)
    }
}

impl Section {
    pub(crate) fn new(skip: u64, take: Option<u64>) -> Self {
        Self { skip, take }
    }

    /// What of the next batch belongs to it.
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

/// A result on its way out.
struct Reading {
    room: Room,
    answer: Answer,
    section: Section,
    next_partition: usize,
    rows: Option<BatchStream>,
    /// The next batch, where somebody has waited for it.
    ahead: Option<RecordBatch>,
    /// Away while it works elsewhere.
    encoder: Option<Box<dyn Encoder>>,
    is_over: bool,
}

/// Why a body breaks off; the reason was told as far as its form allows.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the result failed")
    }
}

impl std::error::Error for Cut {}

impl Reading {
    /// The answer with the rows. A short result comes whole or fails with a status; what fails later breaks off.
    async fn respond(room: Room, answer: Answer, wish: Wish, section: Section) -> Result<Response> {
        let encoder = Some(encoder(wish, &answer, room.server.limits())?);
        let query = answer.query;
        let (next_partition, rows, ahead) = (0, None, None);
        let mut reading =
            Box::new(Self { room, answer, section, next_partition, rows, ahead, encoder, is_over: false });
        let first = futures::stream::iter(reading.beginning().await?.into_iter().map(Ok));
        let others = futures::stream::unfold(reading, |mut reading| async move {
            let piece = reading.next().await?;
            Some((piece, reading))
        });
        let mut response = with_type(wish.form, Body::from_stream(first.chain(others)));
        if let Some(coding) = wish.coding {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        response.headers_mut().append(VARY, HeaderValue::from_static("accept, accept-encoding"));
        name(&mut response, Some(query));
        Ok(response)
    }

    /// The pieces that are there before anything goes out: one part of a result may have rows when another fails. What takes
    /// long to come is not waited for.
    async fn beginning(&mut self) -> bowshot_api::Result<Vec<Bytes>> {
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

    /// The next piece of the body; `None` after its end.
    async fn next(&mut self) -> Option<std::result::Result<Bytes, Cut>> {
        if self.is_over {
            return None;
        }
        let error = match self.piece().await {
            Ok(piece) => return Some(Ok(piece)),
            Err(error) => Failure::from(error).of_query(self.answer.query).object(),
        };
        self.is_over = true;
        tracing::debug!(query = %self.answer.query, %error, "a result failed while it was read");
        self.rows = None;
        let told = self.encoder.as_mut().and_then(|encoder| encoder.failed(&error));
        if told.is_none() {
            // So that what is there goes out before the connection breaks.
            tokio::task::yield_now().await;
        }
        Some(told.ok_or(Cut))
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

    /// The next batch of the part that is wanted.
    async fn batch(&mut self) -> bowshot_api::Result<Option<RecordBatch>> {
        while !self.section.is_over() {
            let Some(batch) = self.next_batch().await? else { return Ok(None) };
            if let Some(batch) = self.section.cut(batch) {
                return Ok(Some(batch));
            }
        }
        self.rows = None;
        Ok(None)
    }

    async fn next_batch(&mut self) -> bowshot_api::Result<Option<RecordBatch>> {
        self.arrives(None).await?;
        Ok(self.ahead.take())
    }

    /// Waits until the next batch, or the end, is there; whether it has come in time.
    async fn arrives(&mut self, until: Option<Instant>) -> bowshot_api::Result<bool> {
        while self.ahead.is_none() && !self.section.is_over() {
            let Some(rows) = &mut self.rows else {
                if self.next_partition == self.answer.partitions {
                    break;
                }
                self.rows = Some(self.room.attach(self.answer.query, self.next_partition).await?);
                self.next_partition += 1;
                continue;
            };
            let coming = self.room.while_used(rows.next());
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

    /// Lets the encoder work: here, or where nobody waits for a socket.
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
            working.await.map_err(|error| Error::internal("an encoder broke down").with_source(error))?
        } else {
            let done = work(encoder.as_mut());
            (encoder, done)
        };
        self.encoder = Some(encoder);
        done
    }
}
