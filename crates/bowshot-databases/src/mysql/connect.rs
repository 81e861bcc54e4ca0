//! How a server is reached: where, over TLS or not, as whom, and what a session is told first.
//!
//! TLS is used or it is not: nothing falls back to a connection without it. What a session is told does not depend on how the
//! server is set up: values mean the same whatever its time zone, its modes and its limits of rows are.

use crate::fault::Fault;
use crate::place::{Place, Tls};
use crate::settings::DatabaseSettings;
use bowshot_api::Secret;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, SslOpts};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Statements of a connection that the server keeps prepared.
const PREPARED: usize = 16;
/// A connection on which nobody answers is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Where systems keep the authorities that they believe.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What every session is told, in this order.
const FIRST_WORDS: [&str; 3] = [
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    // Days are days, moments are in UTC, what does not fit is an error, 0 is no request for another number, no rows are held back,
    // `IS NULL` asks for NULL, and a reader may take its time.
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', autocommit = 1, sql_auto_is_null = 0, \
     sql_select_limit = 18446744073709551615, sql_big_selects = 1, foreign_key_checks = 1, unique_checks = 1, \
     net_write_timeout = 3600",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
];

/// What the client needs. Holds the password.
pub(super) fn options(settings: &DatabaseSettings) -> Result<Opts, Fault> {
    let place = &settings.place;
    let (host, port) =
        place.host_and_port().ok_or_else(|| Fault::Unreachable("it has no address".to_owned()))?;
    let builder = OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port)
        .user(settings.user.as_deref())
        .pass(settings.password.as_ref().map(Secret::expose))
        .ssl_opts(tls(place)?)
        .tcp_keepalive(Some(KEEPALIVE))
        .stmt_cache_size(PREPARED)
        // It would go from an address of this machine to whatever socket the server names.
        .prefer_socket(false);
    Ok(builder.into())
}

/// A session, and the number by which the server knows it.
pub(super) async fn connected(options: &Opts) -> mysql_async::Result<(Conn, u64)> {
    let mut conn = Conn::new(options.clone()).await?;
    for words in FIRST_WORDS {
        conn.query_drop(words).await?;
    }
    // The greeting has half of it.
    let row: Option<Row> = conn.query_first("SELECT CONNECTION_ID()").await?;
    let id = row.and_then(|mut row| row.take_opt(0)).and_then(Result::ok);
    let id = id.unwrap_or_else(|| u64::from(conn.id()));
    Ok((conn, id))
}

fn tls(place: &Place) -> Result<Option<SslOpts>, Fault> {
    let named = place.parameter("sslrootcert").map(PathBuf::from);
    Ok(match place.tls() {
        Tls::No => None,
        // The roots are there for nothing: the client makes no verifier without any.
        Tls::Unverified => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
        Tls::Verified => {
            let roots = named.or_else(authorities).ok_or_else(|| {
                Fault::Unreachable(
                    "this machine has no authorities: name a file with `sslrootcert`".to_owned(),
                )
            })?;
            if !roots.is_file() {
                return Err(Fault::Unreachable(format!("the file `{}` is not there", roots.display())));
            }
            Some(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(vec![roots.into()]))
        }
    })
}

/// The file of authorities of this machine.
fn authorities() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.or_else(|| AUTHORITIES.iter().map(Path::new).find(|path| path.is_file()).map(Path::to_path_buf))
}
