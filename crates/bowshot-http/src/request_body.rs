//! Request bodies, read in chunks within limits of size and time.

use crate::status::{Failure, Result};
use axum::body::{Body, BodyDataStream};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use bowshot_api::{Error, ErrorKind};
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

const WHOLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Limits for draining an unwanted body: clients that send before they read would otherwise not see the response.
const LEFTOVER_BYTES: usize = 64 << 20;
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The whole body of a request.
///
/// # Errors
/// 413 if it is longer than `limit`, which `name` names; 408 if it does not come in time.
pub(crate) async fn whole(
    headers: &HeaderMap,
    body: Body,
    (limit, name): (usize, &'static str),
) -> Result<Vec<u8>> {
    check_encoding(headers)?;
    let told = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let mut pieces = body.into_data_stream();
    if told.is_some_and(|told| told > limit as u64) {
        drain(pieces).await;
        return Err(too_large(limit, name));
    }
    let deadline = Instant::now() + WHOLE_TIMEOUT;
    let mut bytes = Vec::new();
    while let Some(piece) = timeout_at(deadline, pieces.next()).await.map_err(|_elapsed| too_slow())? {
        let piece = piece.map_err(|error| broken(&error))?;
        if bytes.len() + piece.len() > limit {
            drain(pieces).await;
            return Err(too_large(limit, name));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Refuses bodies that would have to be decoded first.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<()> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(()) };
    if encoding.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let error = Error::unsupported("the body of the request has a `content-encoding`")
        .with_hint("send it as it is; Arrow has compression of its own");
    Err(Failure::with_status(error, StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

fn too_large(limit: usize, name: &str) -> Failure {
    let message = format!("the body of the request has more than {limit} bytes");
    let error = Error::new(ErrorKind::LimitReached, message).with_hint(format!("raise `{name}`"));
    Failure::with_status(error, StatusCode::PAYLOAD_TOO_LARGE)
}

fn too_slow() -> Failure {
    let message = format!("the request body did not arrive within {} s", WHOLE_TIMEOUT.as_secs());
    Failure::with_status(Error::new(ErrorKind::Timeout, message), StatusCode::REQUEST_TIMEOUT)
}

fn broken(error: &axum::Error) -> Error {
    tracing::debug!(%error, "the request body was cut off");
    Error::new(ErrorKind::Cancelled, "the request was cut off")
}

async fn drain(mut pieces: BodyDataStream) {
    let all = async {
        let mut left = LEFTOVER_BYTES;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    };
    // Then the connection ends with bytes that were not read.
    _ = timeout(LEFTOVER_TIMEOUT, all).await;
}

#[derive(Debug)]
pub(crate) struct Upload {
    /// Away when it is dropped.
    pieces: Option<BodyDataStream>,
    /// How long the client may leave the server waiting; zero means no limit.
    patience: Duration,
    leftover: BodyRest,
}

/// The rest of a body after its reader was dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyRest(Arc<Mutex<Option<BodyDataStream>>>);

impl BodyRest {
    /// Wraps a body; the handle gets the rest.
    pub(crate) fn split(body: Body) -> (Body, Self) {
        let leftover = Self::default();
        (Body::new(SharedBody { body: Some(body), leftover: leftover.clone() }), leftover)
    }

    /// Drains the rest so that the client sees the error, unless the client has stalled.
    pub(crate) async fn wait(&self) {
        let left = self.0.lock().take();
        if let Some(pieces) = left {
            drain(pieces).await;
        }
    }

    /// Drains the rest so that the client sees the error, unless it has stalled.
    pub(crate) async fn drain(&self, reason: &Error) {
        let left = self.0.lock().take();
        let is_over = matches!(reason.kind(), ErrorKind::Timeout | ErrorKind::Cancelled);
        if let (Some(pieces), false) = (left, is_over) {
            drain(pieces).await;
        }
    }
}

/// See [`BodyRest::split`].
#[derive(Debug)]
struct SharedBody {
    /// Away when it is dropped.
    body: Option<Body>,
    leftover: BodyRest,
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for SharedBody {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !body.is_end_stream()).map(Body::into_data_stream);
        *self.leftover.0.lock() = left;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        *self.leftover.0.lock() = self.pieces.take();
    }
}

impl Upload {
    /// A streamed body, and the handle to its rest.
    pub(crate) fn new(body: Body, patience: Duration) -> (Self, BodyRest) {
        let leftover = BodyRest::default();
        let pieces = Some(body.into_data_stream());
        (Self { pieces, patience, leftover: leftover.clone() }, leftover)
    }

    /// The next piece; `None` when the client has ended the body in order.
    pub(crate) async fn next(&mut self) -> bowshot_api::Result<Option<Bytes>> {
        let Some(pieces) = &mut self.pieces else { return Ok(None) };
        let next = pieces.next();
        let next = if self.patience.is_zero() {
            next.await
        } else {
            timeout(self.patience, next).await.map_err(|_elapsed| silent(self.patience))?
        };
        next.transpose().map_err(|error| broken(&error))
    }
}

fn silent(patience: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("no rows arrived for {} s", patience.as_secs_f32()))
        .with_hint("end the request when everything is sent, or raise `limits.reader_timeout`")
}
