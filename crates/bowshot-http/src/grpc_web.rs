//! Forwards gRPC-Web calls to another front end. They arrive here because browsers can use no other port, and because
//! this front end authenticates, limits and checks the origin of browser requests.

use crate::Context as Shared;
use crate::caller::{Caller, Peer, RequestPermit};
use crate::request_body::BodyRest;
use crate::status::{Failure, Result};
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
/// Their common prefix.
pub(crate) const PREFIX: &str = "/arrow.flight.protocol.";

/// A front end that answers gRPC-Web.
pub trait GrpcWeb: fmt::Debug + Send + Sync {
    /// Opens its side of a connection from this address.
    fn connect(&self, address: IpAddr) -> Arc<dyn GrpcWebConnection>;
}

pub trait GrpcWebConnection: fmt::Debug + Send + Sync {
    /// Answers a call, or rejects it with the error of its authentication.
    fn call(&self, caller: bowshot_api::Result<Principal>, request: Request) -> BoxFuture<'static, Response>;

    fn end(&self) -> BoxFuture<'static, ()>;
}

pub(crate) async fn call(State(context): State<Shared>, uri: Uri, request: Request) -> Result<Response> {
    let Some(web) = &context.choices.grpc_web else {
        return Ok(crate::routes::unknown_path(uri).await);
    };
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Arc<Peer>>().map(Arc::clone);
    let peer = peer.ok_or_else(|| Error::internal("the request has no connection"))?;
    let caller = Caller::from_request_parts(&mut parts, &context).await.map_err(Failure::into_error);
    let connection = peer.grpc_web(web.as_ref(), &context.cleanup);
    let (principal, permit) = match caller {
        Ok(caller) => {
            let principal = caller.principal.clone();
            (Ok(principal), Some(caller.into_request_permit()))
        }
        Err(error) => (Err(error), None),
    };
    let (body, leftover) = BodyRest::split(body);
    let response = connection.call(principal, Request::from_parts(parts, body)).await;
    leftover.wait().await;
    Ok(response.map(|body| Body::new(WithPermit { body, _permit: permit })).into_response())
}

/// A response that holds the request's permit until it is sent.
#[derive(Debug)]
struct WithPermit {
    body: Body,
    _permit: Option<RequestPermit>,
}

impl HttpBody for WithPermit {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    bowshot_api::delegate! { body:
        fn is_end_stream(&self) -> bool;
        fn size_hint(&self) -> SizeHint;
    }
}
