//! ADBC drivers: loaded once, and opened with the options of a database.

use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::location::{Location, percent_encode};
use crate::settings::DatabaseSettings;
use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Driver, Optionable};
use adbc_driver_manager::{ManagedConnection, ManagedDatabase, ManagedDriver};
use bowshot_api::Secret;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Loaded drivers by path. None is unloaded: its threads may still run.
static LOADED: LazyLock<Mutex<HashMap<PathBuf, ManagedDriver>>> = LazyLock::new(Mutex::default);

fn loaded(path: &Path, kind: Kind) -> Result<ManagedDriver, DatabaseError> {
    let mut loaded = LOADED.lock();
    if let Some(driver) = loaded.get(path) {
        return Ok(driver.clone());
    }
    let start: &[u8] = match kind {
        Kind::DuckDb => b"duckdb_adbc_init",
        Kind::Postgres | Kind::Sqlite | Kind::FlightSql => b"AdbcDriverInit",
        Kind::Mysql => return Err(DatabaseError::Driver("this kind of database has no driver".to_owned())),
    };
    if !path.is_absolute() {
        return Err(DatabaseError::Driver("its path must be absolute".to_owned()));
    }
    let driver = ManagedDriver::load_dynamic_from_filename(path, Some(start), AdbcVersion::V110)
        .map_err(|error| DatabaseError::Driver(error.message))?;
    loaded.insert(path.to_path_buf(), driver.clone());
    Ok(driver)
}

/// Opens a database; some drivers connect for that.
pub(crate) fn opened(settings: &DatabaseSettings) -> Result<ManagedDatabase, DatabaseError> {
    let path =
        settings.driver.as_deref().ok_or_else(|| DatabaseError::Driver("no path is set".to_owned()))?;
    let token = settings.token();
    if settings.bearer.is_some() && token.is_none() {
        return Err(DatabaseError::LoginRefused);
    }
    let mut driver = loaded(path, settings.kind)?;
    if let Some(token) = &token {
        settings.used_token.get_or_init(|| token.clone());
    }
    driver
        .new_database_with_opts(options(settings, token.as_ref()))
        .map_err(|error| DatabaseError::from_connect(&error, settings))
}

fn options(settings: &DatabaseSettings, token: Option<&Secret>) -> Vec<(OptionDatabase, OptionValue)> {
    let other = |key: &str, value: &str| (OptionDatabase::Other(key.to_owned()), OptionValue::from(value));
    match (settings.kind, &settings.place) {
        (Kind::Postgres, _) => vec![(OptionDatabase::Uri, OptionValue::from(connection_uri(settings)))],
        (Kind::Sqlite, Location::File(path)) => {
            let mode = if settings.read_only { "ro" } else { "rw" };
            vec![(OptionDatabase::Uri, OptionValue::from(format!("file:{}?mode={mode}", path.display())))]
        }
        (Kind::DuckDb, Location::File(path)) => {
            let mode = if settings.read_only { "READ_ONLY" } else { "READ_WRITE" };
            vec![
                other("path", &path.display().to_string()),
                other("access_mode", mode),
                // Views in the file must not read other files or addresses.
                other("enable_external_access", "false"),
            ]
        }
        (Kind::FlightSql, _) => {
            let seconds = settings.timeout.as_secs_f64().to_string();
            let mut options = vec![
                (OptionDatabase::Uri, OptionValue::from(connection_uri(settings))),
                other("adbc.flight.sql.rpc.with_cookie_middleware", "true"),
                other("adbc.flight.sql.rpc.timeout_seconds.query", &seconds),
                other("adbc.flight.sql.rpc.timeout_seconds.update", &seconds),
            ];
            options.extend(
                settings
                    .user
                    .as_ref()
                    .map(|user| (OptionDatabase::Username, OptionValue::from(user.as_str()))),
            );
            options.extend(
                settings
                    .password
                    .as_ref()
                    .map(|password| (OptionDatabase::Password, OptionValue::from(password.expose()))),
            );
            options.extend(token.map(|token| {
                other("adbc.flight.sql.authorization_header", &format!("Bearer {}", token.expose()))
            }));
            options
        }
        (Kind::Sqlite | Kind::DuckDb, Location::Address { .. }) | (Kind::Mysql, _) => Vec::new(),
    }
}

/// The address for a driver, with the credentials that PostgreSQL takes in it.
fn connection_uri(settings: &DatabaseSettings) -> String {
    let Location::Address { scheme, host, path, parameters } = &settings.place else { return String::new() };
    let mut uri = format!("{scheme}://");
    if settings.kind == Kind::Postgres {
        uri.push_str(&settings.user.as_deref().map(percent_encode).unwrap_or_default());
        if let Some(password) = &settings.password {
            let _ = write!(uri, ":{}", percent_encode(password.expose()));
        }
        if settings.user.is_some() || settings.password.is_some() {
            uri.push('@');
        }
    }
    let _ = write!(uri, "{host}{path}");
    if settings.kind == Kind::Postgres {
        let seconds = settings.connect_timeout.as_secs().max(2);
        // A connection without answers ends, so that no thread waits for ever.
        let wait = settings.timeout.as_millis().max(1_000);
        let between = if parameters.is_empty() { "" } else { "&" };
        let _ = write!(
            uri,
            "?{parameters}{between}connect_timeout={seconds}&tcp_user_timeout={wait}&keepalives_idle=30"
        );
    }
    uri
}

/// The statement that sets up a new connection.
pub(crate) fn initial_statement(settings: &DatabaseSettings) -> Option<String> {
    match settings.kind {
        // Text output must not depend on settings of the server.
        Kind::Postgres => {
            let read_only = if settings.read_only { "on" } else { "off" };
            Some(format!(
                "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), \
                 set_config('IntervalStyle', 'postgres', false), set_config('bytea_output', 'hex', false), \
                 set_config('extra_float_digits', '1', false), \
                 set_config('default_transaction_read_only', '{read_only}', false)"
            ))
        }
        Kind::Sqlite | Kind::DuckDb | Kind::FlightSql | Kind::Mysql => None,
    }
}

/// Turns autocommit on or off.
pub(crate) fn set_autocommit(
    connection: &mut ManagedConnection,
    on: bool,
    settings: &DatabaseSettings,
) -> Result<(), DatabaseError> {
    connection
        .set_option(adbc_core::options::OptionConnection::AutoCommit, OptionValue::from(on))
        .map_err(|error| DatabaseError::from_statement(&error, settings))
}
