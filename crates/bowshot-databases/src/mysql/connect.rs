//! How a connection to MySQL is opened: address, TLS, login, and the settings of its session. There is no fallback to a connection without
//! TLS. The session settings make values independent of how the server is set up.

use crate::error::DatabaseError;
use crate::location::{Location, Tls};
use crate::settings::DatabaseSettings;
use bowshot_api::Secret;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, SslOpts};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prepared statements of a connection.
const PREPARED: usize = 16;
/// Keepalive, so that a lost connection is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Files of trusted certificate authorities.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Statements that set up a session.
const INITIAL_STATEMENTS: [&str; 3] = [
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    // Strict values, UTC, no limit of rows, no special meaning of 0 in an AUTO_INCREMENT column or of `IS NULL`,
    // and a long timeout for slow readers.
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
     NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', autocommit = 1, sql_auto_is_null = 0, \
     sql_select_limit = 18446744073709551615, sql_big_selects = 1, foreign_key_checks = 1, unique_checks = 1, \
     net_write_timeout = 3600",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
];

/// Options of the client, with the password.
pub(super) fn options(settings: &DatabaseSettings) -> Result<Opts, DatabaseError> {
    let place = &settings.place;
    let (host, port) =
        place.host_and_port().ok_or_else(|| DatabaseError::Unreachable("it has no address".to_owned()))?;
    let builder = OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port)
        .user(settings.user.as_deref())
        .pass(settings.password.as_ref().map(Secret::expose))
        .ssl_opts(tls(place)?)
        .tcp_keepalive(Some(KEEPALIVE))
        .stmt_cache_size(PREPARED)
        // The client would switch to any socket that a server on this machine names.
        .prefer_socket(false);
    Ok(builder.into())
}

/// A session, and its connection id.
pub(super) async fn connected(options: &Opts) -> mysql_async::Result<(Conn, u64)> {
    let mut conn = Conn::new(options.clone()).await?;
    for words in INITIAL_STATEMENTS {
        conn.query_drop(words).await?;
    }
    // The greeting has the lower half only.
    let row: Option<Row> = conn.query_first("SELECT CONNECTION_ID()").await?;
    let id = row.and_then(|mut row| row.take_opt(0)).and_then(Result::ok);
    let id = id.unwrap_or_else(|| u64::from(conn.id()));
    Ok((conn, id))
}

fn tls(place: &Location) -> Result<Option<SslOpts>, DatabaseError> {
    let named = place.parameter("sslrootcert").map(PathBuf::from);
    Ok(match place.tls() {
        Tls::No => None,
        // Roots are not needed without verification.
        Tls::Unverified => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
        Tls::Verified => {
            let roots = named.or_else(authorities).ok_or_else(|| {
                DatabaseError::Unreachable(
                    "this machine has no certificate authorities: set `sslrootcert`".to_owned(),
                )
            })?;
            if !roots.is_file() {
                return Err(DatabaseError::Unreachable(format!(
                    "the file `{}` does not exist",
                    roots.display()
                )));
            }
            Some(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(vec![roots.into()]))
        }
    })
}

fn authorities() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.or_else(|| AUTHORITIES.iter().map(Path::new).find(|path| path.is_file()).map(Path::to_path_buf))
}
