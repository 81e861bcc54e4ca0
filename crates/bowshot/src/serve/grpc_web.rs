//! Flight SQL for browsers: calls arrive on connections of the HTTP front end and are answered by the Flight front end.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bowshot_api::{Principal, Result, Server};
use bowshot_flight::{Profile, Web, WebConnection};
use bowshot_http::{GrpcWeb, GrpcWebConnection};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::net::IpAddr;
use std::sync::Arc;

/// The Flight SQL service for the HTTP front end.
#[derive(Debug)]
pub(super) struct FlightGrpcWeb(Web);

impl FlightGrpcWeb {
    pub(super) fn of(server: &Arc<dyn Server>) -> Self {
        Self(Web::new(Arc::clone(server), Profile::default()))
    }
}

impl GrpcWeb for FlightGrpcWeb {
    fn connect(&self, address: IpAddr) -> Arc<dyn GrpcWebConnection> {
        Arc::new(Connection(self.0.connection(address)))
    }
}

#[derive(Debug)]
struct Connection(WebConnection);

impl GrpcWebConnection for Connection {
    fn call(&self, caller: Result<Principal>, request: Request) -> BoxFuture<'static, Response> {
        let connection = self.0.clone();
        async move { connection.call(caller, request).await.map(Body::new) }.boxed()
    }

    fn end(&self) -> BoxFuture<'static, ()> {
        let connection = self.0.clone();
        async move { connection.end().await }.boxed()
    }
}
