//! DoGet: from a ticket to the frames of a result. It bypasses the generated service, whose codec would copy every
//! batch: the response body shares the memory of the arrays.

use crate::caller::Caller;
use crate::statement::{Wanted, metadata_session, resolve};
use crate::status::{refuse, status};
use crate::ticket::{QueryTicket, TicketPayload};
use crate::{metadata, metrics};
use arrow_flight::Ticket;
use bowshot_api::{BatchStream, Compression, Delivery, Endpoints, Error, ErrorKind, QueryId, Result};
use bowshot_ipc::{EncodeOptions, Encoder, FlightBody, LargeMessage};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt};
use http::{HeaderValue, Response};
use http_body::Body;
use http_body_util::BodyExt;
use prost::Message;
use std::time::Duration;
use tonic::Status;

/// How long a client may take to send the one small message of its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Allowance for a ticket beyond the SQL text.
const TICKET_OVERHEAD: usize = 64 << 10;

/// A result and its encoding parameters.
pub(crate) struct Source {
    pub(crate) batches: BatchStream,
    compression: Compression,
    pub(crate) query: Option<QueryId>,
}

impl Source {
    /// Batches without a query.
    pub(crate) fn new(batches: BatchStream) -> Self {
        Self { batches, compression: Compression::None, query: None }
    }
}

pub(crate) async fn do_get<B>(caller: &Caller, body: B) -> std::result::Result<Response<FlightBody>, Status>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let limits = caller.server().limits();
    let longest = limits.max_sql_bytes.saturating_add(TICKET_OVERHEAD).min(limits.max_message_bytes);
    let message = tokio::time::timeout(REQUEST_TIMEOUT, collect(body, longest)).await.map_err(|_| {
        refuse(
            Error::new(ErrorKind::Timeout, "the request did not arrive in time").with_hint("send it again"),
        )
    })?;
    let message = message.map_err(refuse)?;
    let ticket = Ticket::decode(message)
        .map_err(|error| refuse(Error::invalid("the request is not a Ticket message").with_source(error)))?;
    let source = open(caller, ticket.ticket).await?;
    respond(source, caller)
}

pub(crate) async fn open(caller: &Caller, ticket: Bytes) -> std::result::Result<Source, Status> {
    let payload = TicketPayload::decode(&ticket).map_err(refuse)?;
    match resolve(caller, payload, &ticket).await.map_err(refuse)? {
        Wanted::Query(ticket) => attach(caller, ticket).await,
        Wanted::Statement(runnable) => {
            let answer = runnable.start(Some(Endpoints::Exactly(1)), Some(Delivery::Stream)).await;
            let answer = answer.map_err(refuse)?;
            let compression = answer.layout.compression;
            let query = answer.query;
            attach(caller, QueryTicket { query, partition: 0, compression, voucher: Bytes::new() }).await
        }
        Wanted::Metadata(command, _) => {
            let session = metadata_session(caller, &command).await.map_err(refuse)?;
            let (about, limits) = (caller.server().about(), caller.server().limits());
            let answer = metadata::answer(session.as_ref(), about, limits, &command).await;
            let (schema, batches) = answer.map_err(refuse)?;
            let batches = BatchStream::from_batches(schema, batches);
            Ok(Source::new(batches))
        }
    }
}

/// A partition of a query that runs.
pub(crate) async fn attach(caller: &Caller, ticket: QueryTicket) -> std::result::Result<Source, Status> {
    let QueryTicket { query, partition, compression, voucher } = ticket;
    let partition = usize::try_from(partition).unwrap_or(usize::MAX);
    let (server, principal) = (caller.server(), caller.principal());
    let batches = match voucher.is_empty() {
        true => server.attach(principal, query, partition).await,
        false => server.redeem(principal, query, partition, &voucher).await,
    };
    let batches = batches.map_err(|error| status(&error, Some(query)))?;
    Ok(Source { batches, compression, query: Some(query) })
}

/// Reads the result of a statement that was run for its effect.
pub(crate) async fn drain(caller: &Caller, ticket: QueryTicket) -> Result<()> {
    let partition = usize::try_from(ticket.partition).unwrap_or(usize::MAX);
    let mut batches = caller.server().attach(caller.principal(), ticket.query, partition).await?;
    while batches.try_next().await?.is_some() {}
    Ok(())
}

/// The response; head and schema are sent at once.
pub(crate) fn respond(source: Source, caller: &Caller) -> std::result::Result<Response<FlightBody>, Status> {
    let Source { batches, compression, query } = source;
    let messages = caller.messages();
    let large_message = messages.large.map(|bytes| LargeMessage { bytes, primed: caller.primed().clone() });
    // The schema has the session's layout: its dictionaries are wanted.
    let options =
        EncodeOptions { compression, message_bytes: messages.target, large_message, keep_dictionaries: true };
    let encoder = Encoder::new(batches.schema(), options).map_err(|error| status(&error.into(), query))?;
    let rows = metrics::sent_rows();
    let batches = batches
        .inspect_ok(move |batch| rows.increment(batch.num_rows() as u64))
        .map(move |batch| batch.map_err(|error| Failure { error, query }));
    let mut response = Response::new(FlightBody::new(batches, encoder, Failure::trailer));
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

/// An error in the middle of a stream, with the query that it ends.
struct Failure {
    error: Error,
    query: Option<QueryId>,
}

impl Failure {
    fn trailer(failure: Self) -> (u32, String) {
        let status = status(&failure.error, failure.query);
        (u32::try_from(i32::from(status.code())).unwrap_or(2), status.message().to_owned())
    }
}

impl From<bowshot_ipc::Error> for Failure {
    fn from(error: bowshot_ipc::Error) -> Self {
        Self { error: error.into(), query: None }
    }
}

/// Reads the one message of a unary request: a flag, a length, and that many bytes.
async fn collect<B>(mut body: B, longest: usize) -> Result<Bytes>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let mut received = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::new(ErrorKind::Cancelled, "the request was cut off").with_source(error)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        received.extend_from_slice(&data);
        if let Some(message) = message(&received, longest)? {
            return Ok(message);
        }
    }
    Err(Error::invalid(format!("the request ends after {} bytes, inside its message", received.len()))
        .with_hint("send one length-prefixed gRPC message"))
}

fn message(received: &[u8], longest: usize) -> Result<Option<Bytes>> {
    let Some((prefix, body)) = received.split_first_chunk::<5>() else { return Ok(None) };
    let [flag, length @ ..] = *prefix;
    if flag != 0 {
        return Err(Error::unsupported("compressed requests are not supported")
            .with_hint("send the request without gRPC compression"));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > longest {
        return Err(Error::new(
            ErrorKind::LimitReached,
            format!("the ticket is too long: {length} bytes, the limit is {longest}"),
        )
        .with_hint("send a shorter statement, or raise `limits.max_sql_bytes`"));
    }
    if body.len() > length {
        return Err(Error::invalid("more than one message in the request")
            .with_hint("send one length-prefixed gRPC message"));
    }
    Ok((body.len() == length).then(|| Bytes::copy_from_slice(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn collected(pieces: &[&'static [u8]]) -> String {
        let frames: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from_static(piece))))
            .collect();
        let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
        match collect(body, 10).await {
            Ok(message) => format!("{message:?}"),
            Err(error) => format!("{:?}: {}", error.kind(), error.message()),
        }
    }

    #[tokio::test]
    async fn requests_whole_and_broken() {
        for (pieces, expected) in [
            (&[&b"\0\0\0\0\x02ab"[..]][..], "b\"ab\""),
            (&[b"\0\0", b"\0\0\x02", b"a", b"", b"b"], "b\"ab\""),
            (&[b"\0\0\0\0\0"], "b\"\""),
            (&[], "Invalid: the request ends after 0 bytes, inside its message"),
            (&[b"\0\0\0\0\x02a"], "Invalid: the request ends after 6 bytes, inside its message"),
            (&[b"\0\0\0\0\x01ab"], "Invalid: more than one message in the request"),
            (&[b"\x01\0\0\0\x01a"], "Unsupported: compressed requests are not supported"),
            (
                &[b"\0\xff\xff\xff\xff"],
                "LimitReached: the ticket is too long: 4294967295 bytes, the limit is 10",
            ),
        ] {
            assert_eq!(collected(pieces).await, expected, "{pieces:?}");
        }
    }
}
