//! One connection of a local client: a greeting, then calls one after the other, each ending with a status.

use super::Terms;
use super::download::{Download, unreadable};
use super::frames::{self, Call, Frame, Frames, Wire, broken};
use super::pool::{IDLE, Pool};
use super::upload::Upload;
use crate::call_layer::{panicked, timeout as deadline_of};
use crate::caller::Caller;
use crate::connection::Connection;
use crate::metrics;
use crate::response_body::Observation;
use crate::status::refuse;
use bowshot_api::{Error, ErrorKind, TRACEPARENT, call_span};
use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt;
use http::HeaderMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::Instrument;

/// Magic bytes of the greeting; the last one is the version.
const GREETING: &[u8; 8] = b"BOWSHOT\x01";
/// How long a client may take to make its first call.
const FIRST_CALL: Duration = Duration::from_secs(30);
/// Allowance for a call beyond its statement.
const OVERHEAD: usize = 1 << 20;

/// Why a call did not go well.
pub(crate) enum Failure {
    /// The client has left or violates the protocol.
    Gone(io::Error),
    /// The error is sent to the client.
    Told(Status),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Told(status)
    }
}

/// Serves a client until it leaves or `drain` is set.
pub(crate) async fn serve(
    stream: UnixStream,
    connection: &Arc<Connection>,
    terms: &Arc<Terms>,
    drain: &CancellationToken,
) -> io::Result<()> {
    let limits = connection.server().limits();
    let longest = limits.max_sql_bytes.saturating_add(OVERHEAD).min(limits.max_message_bytes);
    let wire = Arc::new(Wire::new(stream, limits.reader_timeout));
    if !admitted(&wire)? {
        return end(&wire, &refuse(foreign_user())).await;
    }
    let greeting = [Bytes::from_static(GREETING), Bytes::copy_from_slice(&terms.id)];
    wire.send(frames::HELLO, &greeting, None).await?;
    let _counted = metrics::Counted::new(metrics::local_connections());
    let mut conversation = Conversation {
        frames: Frames::new(Arc::clone(&wire), longest),
        pool: Arc::new(Pool::new(Arc::clone(&terms.budget))),
        wire,
        connection,
    };
    let first = timeout(FIRST_CALL, conversation.next());
    let mut frame = tokio::select! {
        frame = first => frame??,
        () = drain.cancelled() => return Ok(()),
    };
    while let Some(call) = frame {
        conversation.answer(call).await?;
        frame = tokio::select! {
            frame = conversation.next() => frame?,
            () = drain.cancelled() => return Ok(()),
        };
    }
    Ok(())
}

/// Whether the peer may connect: the user of this process, or root. Checked in addition to the socket's mode, which
/// may have been changed.
fn admitted(wire: &Wire) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let peer = wire.peer()?;
    // Files of a process in /proc are of its effective user.
    let own = || std::fs::metadata("/proc/self").map(|process| process.uid());
    Ok(peer == 0 || own().is_ok_and(|own| own == peer))
}

fn foreign_user() -> Error {
    Error::new(ErrorKind::Denied, "this socket is for the user who runs the server")
        .with_hint("connect to the address of Flight SQL")
}

struct Conversation<'a> {
    wire: Arc<Wire>,
    frames: Frames,
    pool: Arc<Pool>,
    connection: &'a Arc<Connection>,
}

impl Conversation<'_> {
    /// The next call; handles frames between calls.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let next = self.frames.next();
            let frame = match self.pool.tidy() {
                false => next.await?,
                true => match timeout(IDLE, next).await {
                    Ok(frame) => frame?,
                    Err(_elapsed) => continue,
                },
            };
            match frame {
                Some(frame) if frame.kind == frames::RELEASE => self.pool.release(&frame.payload),
                // Acknowledges rows of a failed call.
                Some(frame) if frame.kind == frames::TAKEN => {}
                other => return Ok(other),
            }
        }
    }

    /// Runs a call and sends its status. After a failed upload the connection ends, since the client may still send
    /// rows.
    async fn answer(&mut self, frame: Frame) -> io::Result<()> {
        let method = match frame.kind {
            frames::GET => "DoGet",
            frames::PUT => "DoPut",
            _ => return Err(broken("a frame that is no call")),
        };
        let observation = Observation::begin(method);
        let call = Call::read(frame.payload);
        let parent = call.as_ref().ok().and_then(|call| call.headers.get(TRACEPARENT)?.to_str().ok());
        let span = call_span("flight", method, parent);
        let work = async {
            match call {
                Ok(call) => self.work(method, call).await,
                Err(error) => Err(unreadable(error)),
            }
        };
        let done = AssertUnwindSafe(Box::pin(work.instrument(span))).catch_unwind().await;
        let (status, goes_on) = match done {
            Ok(Ok(())) => (Status::ok(""), true),
            Ok(Err(Failure::Told(status))) => (status, method == "DoGet"),
            Ok(Err(Failure::Gone(error))) => return Err(error),
            Err(_panic) => (panicked(), false),
        };
        observation.end(status.code());
        end(&self.wire, &status).await?;
        if goes_on { Ok(()) } else { Err(broken("a call whose rest is not wanted")) }
    }

    async fn work(&mut self, method: &str, call: Call) -> Result<(), Failure> {
        let Call { headers, body } = call;
        let patience = deadline_of(&headers);
        let caller = self.caller(&headers, patience).await?;
        self.pool.belongs_to(&caller.principal().name);
        if method == "DoGet" {
            // The deadline is for the answer's beginning and its rows, which the client gives up by itself.
            let (wire, frames, pool) = (self.wire.as_ref(), &mut self.frames, &self.pool);
            return Download { wire, frames, pool, under_way: 0 }.run(&caller, body).await;
        }
        let (wire, frames, pool) = (self.wire.as_ref(), &mut self.frames, self.pool.as_ref());
        let mut upload = Upload { wire, frames, pool };
        let work = upload.run(&caller, body);
        let result = match patience {
            Some(patience) => timeout(patience, work).await.map_err(|_elapsed| refuse(late()))??,
            None => work.await?,
        };
        self.wire.send(frames::RESULT, &[result], None).await?;
        Ok(())
    }

    /// Authenticates a call by its headers, as on the network.
    async fn caller(&self, headers: &HeaderMap, patience: Option<Duration>) -> Result<Caller, Status> {
        let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
        Caller::identify(Arc::clone(self.connection), headers, deadline).await.map_err(refuse)
    }
}

fn late() -> Error {
    Error::new(ErrorKind::Timeout, "the deadline passed before the answer was ready")
        .with_hint("allow more time")
}

/// Ends a call: the code and the length of the message (four bytes each), the message, the details.
async fn end(wire: &Wire, status: &Status) -> io::Result<()> {
    let message = status.message().as_bytes();
    let mut payload = BytesMut::with_capacity(8 + message.len() + status.details().len());
    payload.put_i32_le(i32::from(status.code()));
    payload.put_u32_le(u32::try_from(message.len()).unwrap_or(0));
    payload.put_slice(message);
    payload.put_slice(status.details());
    wire.send(frames::END, &[payload.freeze()], None).await
}
