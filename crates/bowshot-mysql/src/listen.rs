//! The MySQL protocol on a listener: each connection goes through `startup.rs` and `connection.rs`.

use crate::auth::{ListenPort, Origin};
use crate::cancel::ConnectionIds;
use crate::connection::Connection;
use crate::packet_framing::Wire;
use crate::server_packets;
use crate::startup::{self, greet};
use crate::status::{ConnectionError, Failure};
use bowshot_api::{Limits, Server};
use bowshot_rowwire::{Error, FrontEnd, ListenOptions};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// What the connections of one listener share.
struct MysqlFrontEnd {
    server: Arc<dyn Server>,
    tls: Option<TlsAcceptor>,
    cleartext: bool,
    numbers: Arc<ConnectionIds>,
}

/// As [`bowshot_rowwire::serve`], with MySQL's protocol.
pub async fn serve(
    listener: TcpListener,
    server: Arc<dyn Server>,
    options: ListenOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let front_end = MysqlFrontEnd {
        server,
        tls: options.tls.map(TlsAcceptor::from),
        cleartext: options.cleartext,
        numbers: Arc::default(),
    };
    bowshot_rowwire::serve(listener, front_end, shutdown).await
}

impl FrontEnd for MysqlFrontEnd {
    type Connection = Connection;

    const CONNECTIONS: (&'static str, &'static str) =
        ("bowshot_mysql_connections", "Open connections of the MySQL front end.");

    fn limits(&self) -> &Limits {
        self.server.limits()
    }

    async fn open(&self, stream: TcpStream, address: IpAddr) -> Option<Connection> {
        let number = self.numbers.give();
        let local = stream.local_addr().map_or(0, |local| local.port());
        let mut login = match greet(Wire::new(stream), &number, self.tls.as_ref()).await {
            Ok(login) => login?,
            Err((wire, error)) => {
                close(wire, error).await;
                return None;
            }
        };
        let listen_port = ListenPort { port: local, is_encrypted: self.tls.is_some() };
        let origin = Origin { address, cleartext: self.cleartext, listen_port };
        match startup::begin(&mut login, &self.server, origin).await {
            Ok(session) => Some(Connection::new(login, Arc::clone(&self.server), session, (number, origin))),
            Err(error) => {
                close(login.wire, error).await;
                None
            }
        }
    }

    async fn run(connection: Connection, drain: CancellationToken) {
        connection.run(drain).await;
    }

    /// The error comes in the place of the greeting.
    async fn refuse(&self, stream: TcpStream) {
        let failure = Failure::new(1040, "08004", "too many connections")
            .with_hint("close connections, or raise `limits.max_connections`");
        close(Wire::new(stream), failure.fatal()).await;
    }
}

/// Ends a connection, and tells its client why.
pub(crate) async fn close(mut wire: Wire, error: ConnectionError) {
    if let ConnectionError::Fatal(failure) | ConnectionError::Statement(failure) = error {
        wire.put(|out| server_packets::error(out, &failure));
    }
    wire.end().await;
}
