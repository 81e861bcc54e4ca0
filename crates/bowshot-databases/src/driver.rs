//! Drivers: loaded once, and opened with what a database needs.

use crate::fault::Fault;
use crate::place::Place;
use crate::settings::{DatabaseSettings, Kind};
use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Driver, Optionable};
use adbc_driver_manager::{ManagedConnection, ManagedDatabase, ManagedDriver};
use bowshot_api::Secret;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Drivers that were loaded, by their paths. None is ever unloaded: threads of theirs may still run.
static LOADED: LazyLock<Mutex<HashMap<PathBuf, ManagedDriver>>> = LazyLock::new(Mutex::default);

/// The driver of a path.
fn loaded(path: &Path, kind: Kind) -> Result<ManagedDriver, Fault> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = loaded.get(path) {
        return Ok(driver.clone());
    }
    let start: &[u8] = match kind {
        Kind::DuckDb => b"duckdb_adbc_init",
        Kind::Postgres | Kind::Sqlite | Kind::FlightSql => b"AdbcDriverInit",
        Kind::Mysql => return Err(Fault::Driver("this kind of database takes none".to_owned())),
    };
    if !path.is_absolute() {
        return Err(Fault::Driver("its path has to begin with `/`".to_owned()));
    }
    let driver = ManagedDriver::load_dynamic_from_filename(path, Some(start), AdbcVersion::V110)
        .map_err(|error| Fault::Driver(error.message))?;
    loaded.insert(path.to_path_buf(), driver.clone());
    Ok(driver)
}

/// Opens a database; some drivers connect for that.
pub(crate) fn opened(settings: &DatabaseSettings) -> Result<ManagedDatabase, Fault> {
    let path = settings.driver.as_deref().ok_or_else(|| Fault::Driver("none is named".to_owned()))?;
    let token = settings.token();
    if settings.bearer.is_some() && token.is_none() {
        return Err(Fault::Refused);
    }
    let mut driver = loaded(path, settings.kind)?;
    if let Some(token) = &token {
        settings.shown.get_or_init(|| token.clone());
    }
    driver
        .new_database_with_opts(options(settings, token.as_ref()))
        .map_err(|error| Fault::connecting(&error, settings))
}

fn options(settings: &DatabaseSettings, token: Option<&Secret>) -> Vec<(OptionDatabase, OptionValue)> {
    let other = |key: &str, value: &str| (OptionDatabase::Other(key.to_owned()), OptionValue::from(value));
    match (settings.kind, &settings.place) {
        (Kind::Postgres, place) => vec![(OptionDatabase::Uri, OptionValue::from(place.uri(settings)))],
        (Kind::Sqlite, Place::File(path)) => {
            let mode = if settings.read_only { "ro" } else { "rw" };
            vec![(OptionDatabase::Uri, OptionValue::from(format!("file:{}?mode={mode}", path.display())))]
        }
        (Kind::DuckDb, Place::File(path)) => {
            let mode = if settings.read_only { "READ_ONLY" } else { "READ_WRITE" };
            vec![
                other("path", &path.display().to_string()),
                other("access_mode", mode),
                // Views in the file name no other files, and no address.
                other("enable_external_access", "false"),
            ]
        }
        (Kind::FlightSql, place) => {
            let seconds = settings.timeout.as_secs_f64().to_string();
            let mut options = vec![
                (OptionDatabase::Uri, OptionValue::from(place.uri(settings))),
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
        (Kind::Sqlite | Kind::DuckDb, Place::Address { .. }) | (Kind::Mysql, _) => Vec::new(),
    }
}

/// What a new connection is told before anybody uses it.
pub(crate) fn first_words(settings: &DatabaseSettings) -> Option<String> {
    match settings.kind {
        // Texts of other types are the same whatever the server is set to.
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

/// Whether statements on the connection commit by themselves.
pub(crate) fn set_autocommit(
    connection: &mut ManagedConnection,
    on: bool,
    settings: &DatabaseSettings,
) -> Result<(), Fault> {
    connection
        .set_option(adbc_core::options::OptionConnection::AutoCommit, OptionValue::from(on))
        .map_err(|error| Fault::running(&error, settings))
}
