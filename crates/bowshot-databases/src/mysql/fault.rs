//! What went wrong between the client and a server of MySQL. Codes decide, not words; words go through [`told`], and without the
//! part of the statement that a server repeats.

use crate::fault::{Fault, told};
use crate::settings::DatabaseSettings;
use mysql_async::{DriverError, Error, IoError, ServerError};
use std::io::ErrorKind;

/// Access is denied: to the server, by whatever way of login.
const REFUSED: [u16; 5] = [1045, 1251, 1275, 1524, 1698];
/// The server is full, going, has hidden a host, or has ended the connection.
const UNREACHABLE: [u16; 11] = [1040, 1042, 1043, 1053, 1079, 1129, 1130, 1152, 1203, 1927, 4031];
/// A limit of time of the server.
const LATE: [u16; 2] = [1969, 3024];
/// It was told to end.
const INTERRUPTED: u16 = 1317;

/// While a connection is made.
pub(super) fn connecting(error: &Error, settings: &DatabaseSettings) -> Fault {
    match error {
        Error::Server(error) if !REFUSED.contains(&error.code) => Fault::Unreachable(words(error, settings)),
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            Fault::Unreachable("it offers no TLS, which `sslmode` asks for".to_owned())
        }
        // Nothing else is looked at so closely that it could be wrong.
        Error::Io(IoError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            Fault::Unreachable(told(&format!("TLS: {error}"), settings))
        }
        Error::Driver(DriverError::UnknownAuthPlugin { name }) => {
            Fault::Unreachable(told(&format!("its way of login, `{name}`, is not known"), settings))
        }
        Error::Driver(DriverError::CleartextPluginDisabled | DriverError::MysqlOldPasswordDisabled) => {
            Fault::Unreachable("its way of login shows the password".to_owned())
        }
        other => running(other, settings),
    }
}

/// While a statement runs, or its rows come.
pub(super) fn running(error: &Error, settings: &DatabaseSettings) -> Fault {
    match error {
        Error::Server(error) => match error.code {
            code if REFUSED.contains(&code) => Fault::Refused,
            code if UNREACHABLE.contains(&code) => Fault::Unreachable(words(error, settings)),
            code if LATE.contains(&code) => Fault::Late("its own time for statements".to_owned()),
            INTERRUPTED => Fault::Unreachable("somebody has ended the statement there".to_owned()),
            _ => Fault::Statement(words(error, settings)),
        },
        Error::Io(IoError::Io(error)) => Fault::Unreachable(told(&error.to_string(), settings)),
        Error::Io(IoError::Tls(error)) => Fault::Unreachable(told(&format!("TLS: {error}"), settings)),
        Error::Driver(DriverError::ConnectionClosed) => {
            Fault::Unreachable("it has closed the connection".to_owned())
        }
        // These have values in them, and what a server has sent.
        Error::Driver(
            DriverError::UnexpectedPacket { .. }
            | DriverError::FromValue { .. }
            | DriverError::FromRow { .. },
        ) => Fault::Unexpected("its answer is not understood".to_owned()),
        Error::Driver(error) => Fault::Unexpected(told(&error.to_string(), settings)),
        Error::Other(_) | Error::Url(_) => Fault::Unexpected("its client failed".to_owned()),
    }
}

/// The words of a server, without the statement.
fn words(error: &ServerError, settings: &DatabaseSettings) -> String {
    let message = error.message.split(" near '").next().unwrap_or_default();
    told(&format!("{message} ({})", error.code), settings)
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
        assert!(matches!(of(1045, "Access denied for user 'u'"), Fault::Refused));
        assert!(matches!(of(1053, "Server shutdown in progress"), Fault::Unreachable(_)));
        assert!(matches!(of(3024, "maximum statement execution time exceeded"), Fault::Late(_)));
        match of(1064, "You have an error in your SQL syntax near 'SELECT 'hidden'' at line 1") {
            Fault::Statement(told) => assert_eq!(told, "You have an error in your SQL syntax (1064)"),
            other => panic!("{other}"),
        }
        match of(1146, "Table 'hush hush' doesn't exist") {
            Fault::Statement(told) => assert_eq!(told, "Table '***' doesn't exist (1146)"),
            other => panic!("{other}"),
        }
        let hidden = Error::Driver(DriverError::UnexpectedPacket { payload: b"hush hush".to_vec() });
        assert!(!running(&hidden, &settings).to_string().contains("hush"));
        assert!(matches!(connecting(&server(1049, "Unknown database"), &settings), Fault::Unreachable(_)));
    }
}
