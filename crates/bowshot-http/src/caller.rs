//! Who sends a request, over which road, and the place that it takes until it is answered.

use crate::Context;
use crate::arrival::Road;
use crate::chores::Chores;
use crate::grpc_web::{GrpcWeb, GrpcWebConnection};
use crate::origins::{check_host, check_page};
use crate::status::{Failure, Result};
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use bowshot_api::{Credentials, Error, ErrorKind, KnownCallers, Place, Places, Principal};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    road: Road,
    known: KnownCallers,
    /// Requests of known callers that are being answered on this connection.
    busy: Arc<AtomicUsize>,
    places: Arc<Places>,
    grpc_web: OnceLock<OtherEnd>,
}

/// What a connection has with another front end, which ends with it.
#[derive(Debug)]
struct OtherEnd {
    connection: Arc<dyn GrpcWebConnection>,
    chores: Chores,
}

impl Drop for OtherEnd {
    fn drop(&mut self) {
        self.chores.end(Arc::clone(&self.connection));
    }
}

impl Peer {
    pub(crate) fn new(address: IpAddr, road: Road, busy: Arc<AtomicUsize>, places: Arc<Places>) -> Self {
        let (known, grpc_web) = (KnownCallers::default(), OnceLock::new());
        Self { address, road, known, busy, places, grpc_web }
    }

    /// What answers the gRPC-Web calls of this connection.
    pub(crate) fn grpc_web(&self, web: &dyn GrpcWeb, chores: &Chores) -> Arc<dyn GrpcWebConnection> {
        let connect = || OtherEnd { connection: web.connect(self.address), chores: chores.clone() };
        Arc::clone(&self.grpc_web.get_or_init(connect).connection)
    }

    fn is_here(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }

    /// Finds out who is calling.
    async fn authenticate(&self, context: &Context, headers: &HeaderMap) -> Result<Principal> {
        let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let credentials = header.map_or(Ok(Credentials::Anonymous), Credentials::in_authorization)?;
        if !self.road.is_encrypted && !self.is_here() {
            check_road(context, &credentials)?;
        }
        if context.choices.certificates && self.road.certificate.is_none() {
            return Err(without_certificate().into());
        }
        let credentials = credentials.or_certificate(self.road.certificate.as_ref());
        if matches!(credentials, Credentials::Certificate { .. }) {
            check_page(headers, &context.choices.origins)?;
        }
        let shown = (header.unwrap_or_default(), &credentials);
        match self.known.identify(context.server.as_ref(), shown, Some(self.address)).await {
            // Nobody is to be asked for a password where others can read it.
            Err(error) if error.kind() == ErrorKind::Unauthenticated && self.is_overheard(context) => {
                Err(overheard().into())
            }
            checked => Ok(checked?),
        }
    }

    fn is_overheard(&self, context: &Context) -> bool {
        !self.road.is_encrypted && !self.is_here() && !context.choices.cleartext
    }
}

/// Refuses what must not cross a network as it is.
fn check_road(context: &Context, credentials: &Credentials) -> bowshot_api::Result<()> {
    match credentials {
        _ if context.choices.cleartext => Ok(()),
        Credentials::Anonymous if context.choices.tls.is_none() => Ok(()),
        Credentials::Anonymous
        | Credentials::Password { .. }
        | Credentials::Bearer(_)
        | Credentials::Certificate { .. } => Err(overheard()),
    }
}

fn without_certificate() -> Error {
    Error::new(ErrorKind::Unauthenticated, "this server wants a client certificate")
        .with_hint("use https, with a certificate of the operator's authority and its key")
}

fn overheard() -> Error {
    Error::new(ErrorKind::Denied, "this connection is not encrypted, and comes from another machine").with_hint(
        "use https; for that, the operator sets `tls.certificate` and `tls.key`, or, where the network is trusted, \
         `http_cleartext`",
    )
}

/// The caller of a request.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) context: Context,
    pub(crate) principal: Principal,
    place: Busy,
}

impl Caller {
    /// The place of the request, for as long as its answer takes.
    pub(crate) fn into_place(self) -> Busy {
        self.place
    }
}

impl FromRequestParts<Context> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, context: &Context) -> Result<Self> {
        let peer = parts.extensions.get::<Arc<Peer>>();
        let peer = peer.ok_or_else(|| Error::internal("a request came over no connection"))?;
        let principal = peer.authenticate(context, &parts.headers).await?;
        if !principal.authenticated && peer.is_here() {
            check_host(&parts.headers)?;
        }
        let place = Busy::take(peer)?;
        Ok(Self { context: context.clone(), principal, place })
    }
}

/// A request that is being answered; its connection gives way to no other.
#[derive(Debug)]
pub(crate) struct Busy {
    count: Arc<AtomicUsize>,
    _place: Place,
}

impl Busy {
    fn take(peer: &Peer) -> Result<Self> {
        let place = peer.places.take(peer.address).ok_or_else(|| {
            Error::new(ErrorKind::LimitReached, "too many requests at once").with_hint(
                "wait for the answers of others, or raise `limits.max_connections` and \
                 `limits.max_connections_per_address`",
            )
        })?;
        peer.busy.fetch_add(1, Ordering::AcqRel);
        Ok(Self { count: Arc::clone(&peer.busy), _place: place })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}
