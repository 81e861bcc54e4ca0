//! Errors of MySQL's client and server, classified by code. Messages are redacted ([`redact`]) and lose the repeated part of the statement.

use crate::error::{DatabaseError, redact};
use crate::settings::DatabaseSettings;
use mysql_async::{DriverError, Error, IoError, ServerError};
use std::io::ErrorKind;

/// Login was refused.
const REFUSED: [u16; 5] = [1045, 1251, 1275, 1524, 1698];
/// The server is full, shutting down, has blocked the host, or has closed the connection.
const UNREACHABLE: [u16; 11] = [1040, 1042, 1043, 1053, 1079, 1129, 1130, 1152, 1203, 1927, 4031];
/// A time limit of the server.
const LATE: [u16; 2] = [1969, 3024];
/// The statement was killed.
const INTERRUPTED: u16 = 1317;

pub(super) fn connecting(error: &Error, settings: &DatabaseSettings) -> DatabaseError {
    match error {
        Error::Server(error) if !REFUSED.contains(&error.code) => {
            DatabaseError::Unreachable(words(error, settings))
        }
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            DatabaseError::Unreachable("it offers no TLS, which `sslmode` asks for".to_owned())
        }
        // Invalid data is an error of TLS here.
        Error::Io(IoError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            DatabaseError::Unreachable(redact(&format!("TLS: {error}"), settings))
        }
        Error::Driver(DriverError::UnknownAuthPlugin { name }) => DatabaseError::Unreachable(redact(
            &format!("its authentication method `{name}` is not supported"),
            settings,
        )),
        Error::Driver(DriverError::CleartextPluginDisabled | DriverError::MysqlOldPasswordDisabled) => {
            DatabaseError::Unreachable("its authentication method sends the password in the clear".to_owned())
        }
        other => running(other, settings),
    }
}

/// An error of a running statement.
pub(super) fn running(error: &Error, settings: &DatabaseSettings) -> DatabaseError {
    match error {
        Error::Server(error) => match error.code {
            code if REFUSED.contains(&code) => DatabaseError::LoginRefused,
            code if UNREACHABLE.contains(&code) => DatabaseError::Unreachable(words(error, settings)),
            code if LATE.contains(&code) => DatabaseError::Timeout("its own limit for statements".to_owned()),
            INTERRUPTED => DatabaseError::Unreachable("the statement was killed on the server".to_owned()),
            _ => DatabaseError::Statement(words(error, settings)),
        },
        Error::Io(IoError::Io(error)) => DatabaseError::Unreachable(redact(&error.to_string(), settings)),
        Error::Io(IoError::Tls(error)) => {
            DatabaseError::Unreachable(redact(&format!("TLS: {error}"), settings))
        }
        Error::Driver(DriverError::ConnectionClosed) => {
            DatabaseError::Unreachable("it closed the connection".to_owned())
        }
        // These contain values and data of the server.
        Error::Driver(
            DriverError::UnexpectedPacket { .. }
            | DriverError::FromValue { .. }
            | DriverError::FromRow { .. },
        ) => DatabaseError::Unexpected("invalid answer".to_owned()),
        Error::Driver(error) => DatabaseError::Unexpected(redact(&error.to_string(), settings)),
        Error::Other(_) | Error::Url(_) => DatabaseError::Unexpected("its client failed".to_owned()),
    }
}

/// The message of a server without the statement.
fn words(error: &ServerError, settings: &DatabaseSettings) -> String {
    let message = error.message.split(" near '").next().unwrap_or_default();
    redact(&format!("{message} ({})", error.code), settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn server(code: u16, message: &str) -> Error {
        Error::Server(ServerError { code, message: message.to_owned(), state: "HY000".to_owned() })
    }

    #[test]
    fn codes_decide_and_statements_are_not_repeated() {
        let values = BTreeMap::from([
            ("user".to_owned(), vec!["u".to_owned()]),
            ("password".to_owned(), vec!["hush hush".to_owned()]),
        ]);
        let settings = DatabaseSettings::attached("m", "mysql://h/d", &values).unwrap();
        let of = |code, message: &str| running(&server(code, message), &settings);
        assert!(matches!(of(1045, "Access denied for user 'u'"), DatabaseError::LoginRefused));
        assert!(matches!(of(1053, "Server shutdown in progress"), DatabaseError::Unreachable(_)));
        assert!(matches!(of(3024, "maximum statement execution time exceeded"), DatabaseError::Timeout(_)));
        match of(1064, "You have an error in your SQL syntax near 'SELECT 'hidden'' at line 1") {
            DatabaseError::Statement(message) => {
                assert_eq!(message, "You have an error in your SQL syntax (1064)")
            }
            other => panic!("{other}"),
        }
        match of(1146, "Table 'hush hush' doesn't exist") {
            DatabaseError::Statement(message) => assert_eq!(message, "Table '***' doesn't exist (1146)"),
            other => panic!("{other}"),
        }
        let hidden = Error::Driver(DriverError::UnexpectedPacket { payload: b"hush hush".to_vec() });
        assert!(!running(&hidden, &settings).to_string().contains("hush"));
        assert!(matches!(
            connecting(&server(1049, "Unknown database"), &settings),
            DatabaseError::Unreachable(_)
        ));
    }
}
