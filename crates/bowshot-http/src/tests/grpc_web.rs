//! Calls of gRPC-Web, which go on to somebody else: who may make them, and what is kept while they are answered.

use super::{Reply, Running, choices};
use crate::{Choices, GrpcWeb, GrpcWebConnection};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bowshot_api::{Limits, Principal, Result};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;

const CALL: &str = "/arrow.flight.protocol.FlightService/DoGet";
const TYPE: (&str, &str) = ("content-type", "application/grpc-web+proto");
const PAGE: &str = "https://page.example";

/// Answers with who called. The path `…/Wait` never ends.
#[derive(Debug, Clone, Default)]
struct Echo {
    connections: watch::Sender<usize>,
}

impl GrpcWeb for Echo {
    fn connect(&self, address: IpAddr) -> Arc<dyn GrpcWebConnection> {
        assert!(address.is_loopback());
        self.connections.send_modify(|count| *count += 1);
        Arc::new(self.clone())
    }
}

impl GrpcWebConnection for Echo {
    fn call(&self, caller: Result<Principal>, request: Request) -> BoxFuture<'static, Response> {
        async move {
            let told = caller.map_or_else(|error| error.to_string(), |principal| principal.name);
            if request.uri().path().ends_with("Wait") {
                let first = futures::stream::once(async { Ok::<_, std::io::Error>(Bytes::from(told)) });
                return Response::new(Body::from_stream(first.chain(futures::stream::pending())));
            }
            Response::new(Body::from(told))
        }
        .boxed()
    }

    fn end(&self) -> BoxFuture<'static, ()> {
        self.connections.send_modify(|count| *count -= 1);
        futures::future::ready(()).boxed()
    }
}

async fn open(limits: Limits, users_only: bool) -> (Running, Echo) {
    let echo = Echo::default();
    let choices =
        Choices { grpc_web: Some(Arc::new(echo.clone())), origins: vec![PAGE.to_owned()], ..choices() };
    (Running::open(limits, users_only, choices).await, echo)
}

fn told(reply: &Reply) -> (u16, String) {
    (reply.status, reply.text())
}

#[tokio::test]
async fn the_caller_is_who_the_credentials_say() {
    let (running, echo) = open(Limits::default(), true).await;
    let ada = ("authorization", "Basic YWRhOnB3");
    assert_eq!(told(&running.ask("POST", CALL, &[TYPE, ada], b"").await), (200, "ada".to_owned()));
    let wrong = ("authorization", "Basic YWRhOng=");
    for headers in [&[TYPE][..], &[TYPE, wrong]] {
        let (status, text) = told(&running.ask("POST", CALL, headers, b"").await);
        assert_eq!(status, 200);
        assert!(text != "ada", "{text}");
    }
    echo.connections.subscribe().wait_for(|count| *count == 0).await.expect("all connections end");
    running.stop().await;
}

#[tokio::test]
async fn pages_that_are_not_listed_do_not_get_through() {
    let (running, _) = open(Limits::default(), false).await;
    let from = |page| [TYPE, ("origin", page)];
    assert_eq!(running.ask("POST", CALL, &from("https://other.example"), b"").await.status, 403);
    let reply = running.ask("POST", CALL, &from(PAGE), b"").await;
    assert_eq!(told(&reply), (200, "anonymous".to_owned()));
    assert_eq!(reply.header("access-control-allow-origin"), Some(PAGE));
    let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
    for name in ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-bowshot-session"] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
    // A page that has made its name that of this server.
    let other = [TYPE, ("host", "page.example")];
    let (_, text) = told(&running.ask("POST", CALL, &other, b"").await);
    assert!(text.contains("its own names"), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn an_answer_has_its_place_until_it_has_gone_out() {
    let limits = Limits { max_connections_per_address: 1, ..Limits::default() };
    let (running, echo) = open(limits, false).await;
    let wait = super::request("POST", "/arrow.flight.protocol.FlightService/Wait", &[TYPE], b"");
    let mut waiting = super::send(running.address, &wait).await;
    let mut first = [0];
    tokio::io::AsyncReadExt::read_exact(&mut waiting, &mut first).await.expect("an answer begins");
    let (_, text) = told(&running.ask("POST", CALL, &[TYPE], b"").await);
    assert!(text.contains("too many requests at once"), "{text}");
    drop(waiting);
    while told(&running.ask("POST", CALL, &[TYPE], b"").await).1 != "anonymous" {}
    echo.connections.subscribe().wait_for(|count| *count == 0).await.expect("all connections end");
    running.stop().await;
}

#[tokio::test]
async fn without_anybody_to_answer_there_is_no_such_path() {
    let running = Running::start().await;
    assert_eq!(running.ask("POST", CALL, &[TYPE], b"").await.status, 404);
    assert_eq!(running.ask("GET", CALL, &[], b"").await.status, 405);
    running.stop().await;
}
