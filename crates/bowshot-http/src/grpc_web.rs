//! Calls of gRPC-Web: another front end answers them, which this one does not know. They come here since browsers can use no
//! other port of the server, and because who may call, from which page and how often is decided here for all that browsers do.

use crate::Context as Shared;
use crate::caller::{Busy, Caller, Peer};
use crate::status::{Failure, Result};
use crate::upload::Leftover;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use bowshot_api::{Error, Principal};
use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The paths of the calls that are answered.
pub(crate) const PATH: &str = "/arrow.flight.protocol.FlightService/{call}";
/// What they begin with.
pub(crate) const PREFIX: &str = "/arrow.flight.protocol.";

/// Whoever answers gRPC-Web.
pub trait GrpcWeb: fmt::Debug + Send + Sync {
    /// What answers the calls of one connection, which comes from this address.
    fn connect(&self, address: IpAddr) -> Arc<dyn GrpcWebConnection>;
}

/// Answers the calls of one connection.
pub trait GrpcWebConnection: fmt::Debug + Send + Sync {
    /// Answers a call of a caller who is known, or tells the client why it may not call.
    fn call(&self, caller: bowshot_api::Result<Principal>, request: Request) -> BoxFuture<'static, Response>;

    /// The connection has ended.
    fn end(&self) -> BoxFuture<'static, ()>;
}

/// Answers a call.
pub(crate) async fn call(State(context): State<Shared>, uri: Uri, request: Request) -> Result<Response> {
    let Some(web) = &context.choices.grpc_web else {
        return Ok(crate::routes::unknown_path(uri).await);
    };
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Arc<Peer>>().map(Arc::clone);
    let peer = peer.ok_or_else(|| Error::internal("a request came over no connection"))?;
    let caller = Caller::from_request_parts(&mut parts, &context).await.map_err(Failure::into_error);
    let connection = peer.grpc_web(web.as_ref(), &context.chores);
    let (principal, place) = match caller {
        Ok(caller) => {
            let principal = caller.principal.clone();
            (Ok(principal), Some(caller.into_place()))
        }
        Err(error) => (Err(error), None),
    };
    let (body, leftover) = Leftover::of(body);
    let response = connection.call(principal, Request::from_parts(parts, body)).await;
    leftover.come().await;
    Ok(response.map(|body| Body::new(Placed { body, _place: place })).into_response())
}

/// An answer that keeps the place of its request until it has gone out.
#[derive(Debug)]
struct Placed {
    body: Body,
    _place: Option<Busy>,
}

impl HttpBody for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
