//! The PostgreSQL protocol on a listener: each connection goes through `handshake.rs`, `startup.rs` and `connection.rs`.

use crate::auth::Origin;
use crate::backend_messages::{self, Severity};
use crate::cancel::CancelKeys;
use crate::connection::Connection;
use crate::handshake::{ALPN, Handshake, accept};
use crate::message_framing::Wire;
use crate::startup;
use crate::status::{ConnectionError, Failure};
use bowshot_api::{Limits, Server};
use bowshot_rowwire::connection::is_private;
use bowshot_rowwire::{Error, FrontEnd, ListenOptions, Stream};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

/// What the connections of one listener share.
struct PostgresFrontEnd {
    server: Arc<dyn Server>,
    tls: Option<TlsAcceptor>,
    cleartext: bool,
    keys: Arc<CancelKeys>,
}

/// As [`bowshot_rowwire::serve`], with PostgreSQL's protocol.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    options: ListenOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let front_end = PostgresFrontEnd {
        server,
        tls: options.tls.map(acceptor),
        cleartext: options.cleartext,
        keys: Arc::default(),
    };
    bowshot_rowwire::serve(listener, front_end, shutdown).await
}

fn acceptor(config: Arc<rustls::ServerConfig>) -> TlsAcceptor {
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![ALPN.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

impl FrontEnd for PostgresFrontEnd {
    type Connection = Connection;

    const CONNECTIONS: (&'static str, &'static str) =
        ("bowshot_postgres_connections", "Open connections of the PostgreSQL front end.");

    fn limits(&self) -> &Limits {
        self.server.limits()
    }

    async fn open(&self, stream: TcpStream, address: IpAddr) -> Option<Connection> {
        let (stream, startup) = match accept(stream, self.tls.as_ref()).await {
            Ok(Handshake::Session(stream, startup)) => (stream, startup),
            Ok(Handshake::Cancel { process, secret }) => {
                self.keys.cancel(process, secret);
                return None;
            }
            Ok(Handshake::Closed) => return None,
            Err((stream, error)) => {
                close(Wire::new(stream), error).await;
                return None;
            }
        };
        let is_encrypted = matches!(stream, Either::Right(_));
        let mut wire = Wire::new(stream);
        if self.tls.is_some() && !is_encrypted {
            close(wire, not_encrypted()).await;
            return None;
        }
        let origin = Origin { address, is_private: is_private(is_encrypted, self.cleartext, address) };
        let key = self.keys.issue();
        match startup::begin(&mut wire, &self.server, &startup, (origin, &key)).await {
            Ok(session) => Some(Connection::new(wire, Arc::clone(&self.server), session, key)),
            Err(error) => {
                close(wire, error).await;
                None
            }
        }
    }

    async fn run(connection: Connection, drain: CancellationToken) {
        connection.run(drain).await;
    }

    async fn refuse(&self, stream: TcpStream) {
        let stream: Stream = match accept(stream, self.tls.as_ref()).await {
            Ok(Handshake::Session(stream, _)) | Err((stream, _)) => stream,
            Ok(Handshake::Cancel { process, secret }) => return self.keys.cancel(process, secret),
            Ok(Handshake::Closed) => return,
        };
        let failure = Failure::new("53300", "sorry, too many clients already")
            .with_hint("close connections, or raise `limits.max_connections`");
        close(Wire::new(stream), failure.fatal()).await;
    }
}

fn not_encrypted() -> ConnectionError {
    Failure::new("28000", "this server speaks TLS only, and this connection is not encrypted")
        .with_hint("connect with `sslmode=require` or `sslmode=verify-full`")
        .fatal()
}

/// Ends a connection, and tells its client why.
pub(crate) async fn close(mut wire: Wire, error: ConnectionError) {
    if let ConnectionError::Fatal(failure) | ConnectionError::Statement(failure) = error {
        backend_messages::report(wire.out(), Severity::Fatal, &failure);
    }
    wire.end().await;
}
