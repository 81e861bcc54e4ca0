//! Errors of the client.

/// Shorthand for results of the client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A request that did not work out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{uri}` is not the address of a Flight server: {reason}")]
    Address { uri: String, reason: String },
    /// User, password or token cannot travel in a header.
    #[error("the login has characters that cannot be sent")]
    Login,
    /// There is no certificate of an authority to trust.
    #[error("no certificate authority to trust: {0}")]
    Authorities(String),
    /// This client's own certificate and key cannot be used.
    #[error("the client certificate cannot be shown: {0}")]
    Identity(String),
    /// The connection failed, or reached another server.
    #[error("cannot connect to `{uri}`: {}", reason(cause.as_ref()))]
    Connect {
        uri: String,
        /// The cause; only the innermost error of the transport is informative.
        cause: Box<tonic::transport::Error>,
    },
    /// The server refused, or the connection broke. The message is all that people need of the status.
    #[error("{}", .0.message())]
    Server(Box<tonic::Status>),
    /// The server refused a session option.
    #[error("the server does not accept this value of the session option `{name}`, or has no such option")]
    Option { name: String },
    /// The server sent something that is no Arrow data.
    #[error("the server sent data that cannot be read")]
    Decode(#[source] bowshot_ipc::Error),
    /// The server sent something that is no protocol message.
    #[error("the server sent a message that cannot be read")]
    Message(#[source] prost::DecodeError),
    /// The server sent an unexpected or malformed message.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(&'static str),
}

impl Error {
    /// Whether the server reports a missing object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server(status) if status.code() == tonic::Code::NotFound)
    }
}

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        Self::Server(Box::new(status))
    }
}

/// The innermost cause, with a hint.
fn reason(mut error: &(dyn std::error::Error + 'static)) -> String {
    let mut hint = "; is the server running?";
    loop {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            if let Some(tls) = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                return format!("{tls}{}", help(tls));
            }
            if io.kind() == std::io::ErrorKind::UnexpectedEof {
                hint = "; does the server speak TLS?";
            }
        }
        match error.source() {
            Some(source) => error = source,
            None => return format!("{error}{hint}"),
        }
    }
}

fn help(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
            "; name the file of the authority that signed it with `--ca-file`"
        }
        rustls::Error::InvalidCertificate(
            rustls::CertificateError::NotValidForName
            | rustls::CertificateError::NotValidForNameContext { .. },
        ) => "; connect by a name or an address that is in the certificate",
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(_)) => {
            "; a server's certificate must not be one of an authority (`basicConstraints=CA:FALSE`)"
        }
        rustls::Error::InvalidMessage(_)
        | rustls::Error::AlertReceived(rustls::AlertDescription::ProtocolVersion) => {
            "; does the server speak TLS? without it, connect to `grpc://`"
        }
        _ => "",
    }
}
