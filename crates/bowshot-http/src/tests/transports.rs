//! Callers of other machines, over connections that are encrypted or not.

use super::choices;
use crate::caller::{Caller, Peer};
use crate::cleanup::cleanup_queue;
use crate::handshake::Transport;
use crate::session_lock::SessionLocks;
use crate::{Choices, Context};
use axum::extract::FromRequestParts;
use axum::http::Request;
use axum::response::IntoResponse;
use bowshot_api::ConnectionLimiter;
use bowshot_api::Limits;
use bowshot_test_server::TestServer;
use std::sync::Arc;

/// The status of a request from an address, `0` if it may.
async fn ask(
    choices: Choices,
    users_only: bool,
    (address, is_encrypted): (&str, bool),
    header: Option<&str>,
) -> u16 {
    let server = TestServer::open(Limits::default(), users_only);
    let context = Context {
        server,
        choices: Arc::new(choices),
        cleanup: cleanup_queue().0,
        locks: SessionLocks::default(),
    };
    let transport = Transport { is_encrypted, is_http2: false, certificate: None };
    let peer = Peer::new(address.parse().unwrap(), transport, Arc::default(), ConnectionLimiter::new(9, 9));
    let mut request = Request::builder().header("host", "db.example").extension(Arc::new(peer));
    if let Some(header) = header {
        request = request.header("authorization", header);
    }
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    match Caller::from_request_parts(&mut parts, &context).await {
        Ok(_) => 0,
        Err(failure) => failure.into_response().status().as_u16(),
    }
}

#[tokio::test]
async fn passwords_do_not_cross_a_network_in_the_clear() {
    let basic = Some("Basic YWRhOnB3");
    let (far, near, encrypted) = (("10.0.0.7", false), ("::ffff:127.0.0.1", false), ("10.0.0.7", true));
    let cleartext = || Choices { cleartext: true, ..choices() };
    for (choices, users_only, from, header, expected) in [
        (choices(), true, near, basic, 0),
        (choices(), true, near, None, 401),
        (choices(), true, encrypted, basic, 0),
        (choices(), true, encrypted, None, 401),
        (choices(), true, far, basic, 403),
        (choices(), true, far, Some("Bearer token"), 403),
        // Nobody is asked for a password here.
        (choices(), true, far, None, 403),
        (cleartext(), true, far, basic, 0),
        (cleartext(), true, far, None, 401),
        // As over Flight SQL: whoever has set `insecure` wants it so.
        (choices(), false, far, None, 0),
        (choices(), false, far, basic, 403),
    ] {
        let told = ask(choices, users_only, from, header).await;
        assert_eq!(told, expected, "users {users_only}, {from:?}, {header:?}");
    }
}
