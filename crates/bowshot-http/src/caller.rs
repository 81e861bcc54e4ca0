//! Authentication of a request, by its credentials and transport, and its request permit.

use crate::Context;
use crate::cleanup::CleanupQueue;
use crate::cors::{check_host, check_page};
use crate::grpc_web::{GrpcWeb, GrpcWebConnection};
use crate::handshake::Transport;
use crate::status::{Failure, Result};
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use bowshot_api::{AuthCache, ConnectionLimiter, Credentials, Error, ErrorKind, Permit, Principal};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The client side of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    transport: Transport,
    auth_cache: AuthCache,
    /// Authenticated requests in progress on this connection.
    busy: Arc<AtomicUsize>,
    limiter: Arc<ConnectionLimiter>,
    grpc_web: OnceLock<GrpcWebEnd>,
}

/// The gRPC-Web side of a connection, closed with it.
#[derive(Debug)]
struct GrpcWebEnd {
    connection: Arc<dyn GrpcWebConnection>,
    cleanup: CleanupQueue,
}

impl Drop for GrpcWebEnd {
    fn drop(&mut self) {
        self.cleanup.end(Arc::clone(&self.connection));
    }
}

impl Peer {
    pub(crate) fn new(
        address: IpAddr,
        transport: Transport,
        busy: Arc<AtomicUsize>,
        limiter: Arc<ConnectionLimiter>,
    ) -> Self {
        let (auth_cache, grpc_web) = (AuthCache::default(), OnceLock::new());
        Self { address, transport, auth_cache, busy, limiter, grpc_web }
    }

    pub(crate) fn grpc_web(&self, web: &dyn GrpcWeb, cleanup: &CleanupQueue) -> Arc<dyn GrpcWebConnection> {
        let connect = || GrpcWebEnd { connection: web.connect(self.address), cleanup: cleanup.clone() };
        Arc::clone(&self.grpc_web.get_or_init(connect).connection)
    }

    fn is_local(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }

    async fn authenticate(&self, context: &Context, headers: &HeaderMap) -> Result<Principal> {
        let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let credentials = header.map_or(Ok(Credentials::Anonymous), Credentials::in_authorization)?;
        if !self.transport.is_encrypted && !self.is_local() {
            check_cleartext(context, &credentials)?;
        }
        if context.choices.certificates && self.transport.certificate.is_none() {
            return Err(without_certificate().into());
        }
        let credentials = credentials.or_certificate(self.transport.certificate.as_ref());
        if matches!(credentials, Credentials::Certificate { .. }) {
            check_page(headers, &context.choices.origins)?;
        }
        let shown = (header.unwrap_or_default(), &credentials);
        match self.auth_cache.identify(context.server.as_ref(), shown, Some(self.address)).await {
            // Never prompt for a password over cleartext.
            Err(error) if error.kind() == ErrorKind::Unauthenticated && self.must_not_prompt(context) => {
                Err(cleartext_refused().into())
            }
            checked => Ok(checked?),
        }
    }

    fn must_not_prompt(&self, context: &Context) -> bool {
        !self.transport.is_encrypted && !self.is_local() && !context.choices.cleartext
    }
}

fn check_cleartext(context: &Context, credentials: &Credentials) -> bowshot_api::Result<()> {
    match credentials {
        _ if context.choices.cleartext => Ok(()),
        Credentials::Anonymous if context.choices.tls.is_none() => Ok(()),
        Credentials::Anonymous
        | Credentials::Password { .. }
        | Credentials::Bearer(_)
        | Credentials::Certificate { .. } => Err(cleartext_refused()),
    }
}

fn without_certificate() -> Error {
    Error::new(ErrorKind::Unauthenticated, "this server requires a client certificate")
        .with_hint("use https, with a certificate of the operator's authority and its key")
}

fn cleartext_refused() -> Error {
    Error::new(ErrorKind::Denied, "remote connections must be encrypted").with_hint(
        "use https; for that, the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, \
         `http_cleartext`",
    )
}

/// The authenticated caller of a request.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) context: Context,
    pub(crate) principal: Principal,
    permit: RequestPermit,
}

impl Caller {
    /// The permit, to be held until the response is sent.
    pub(crate) fn into_request_permit(self) -> RequestPermit {
        self.permit
    }
}

impl FromRequestParts<Context> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, context: &Context) -> Result<Self> {
        let peer = parts.extensions.get::<Arc<Peer>>();
        let peer = peer.ok_or_else(|| Error::internal("the request has no connection"))?;
        let principal = peer.authenticate(context, &parts.headers).await?;
        if !principal.authenticated && peer.is_local() {
            check_host(&parts.headers)?;
        }
        let permit = RequestPermit::take(peer)?;
        Ok(Self { context: context.clone(), principal, permit })
    }
}

/// A permit for a request in progress. Its connection is not closed for a new one.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    count: Arc<AtomicUsize>,
    _permit: Permit,
}

impl RequestPermit {
    fn take(peer: &Peer) -> Result<Self> {
        let permit = peer.limiter.try_acquire(peer.address).ok_or_else(|| {
            Error::new(ErrorKind::LimitReached, "too many requests at once").with_hint(
                "wait for the answers of others, or raise `limits.max_connections` and \
                 `limits.max_connections_per_address`",
            )
        })?;
        peer.busy.fetch_add(1, Ordering::AcqRel);
        Ok(Self { count: Arc::clone(&peer.busy), _permit: permit })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}
