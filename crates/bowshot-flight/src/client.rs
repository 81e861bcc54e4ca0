//! A small Flight SQL client for the program's own use: `bowshot sql`, `bowshot demo` and tests speak to a server only
//! through it, over a real connection.
//!
//! It is built for large results: wide HTTP/2 windows, large messages, and batches whose arrays share the memory of the
//! received bodies. Dropping a stream of batches resets its request, which stops the query on the server.

mod error;
mod headers;
mod read;
mod tls;

pub use error::{Error, Result};

use crate::proto::{self, SessionOptionValue};
use crate::session_options::to_wire;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{Command, CommandGetTables, CommandStatementQuery};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, FlightInfo,
    HandshakeRequest,
};
use bowshot_api::{OptionValue, Secret};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use headers::Headers;
use parking_lot::Mutex;
use prost::Message;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response};

const STREAM_WINDOW_BYTES: u32 = 16 << 20;
/// Bytes that the server may send ahead of the readers, over all streams of the connection.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
/// Tells the server that this client sets no message limit.
const USER_AGENT: &str = concat!("bowshot/", env!("CARGO_PKG_VERSION"));
/// Largest HTTP/2 frame: fewer frames cost less.
const FRAME_BYTES: u32 = 1 << 20;
/// Longest message that is read.
const MAX_MESSAGE_BYTES: usize = 1 << 30;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Target {
    /// `grpc://host:port`, `grpc+tcp://host:port` or `host:port`; `grpc+tls://host:port` encrypts.
    pub uri: String,
    pub login: Login,
    /// Certificates of the authorities that may vouch for the server, in PEM form, with `grpc+tls` and only with it;
    /// `None` for those that this machine trusts.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, with `grpc+tls` only.
    pub identity: Option<Identity>,
}

/// A certificate and its key, in PEM form.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate, then those that lead to its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Target {
    /// A server whose certificate, if it has one, is signed by an authority that this machine trusts.
    pub fn new(uri: impl Into<String>, login: Login) -> Self {
        Self { uri: uri.into(), login, ca_file: None, identity: None }
    }
}

#[derive(Debug, Clone)]
pub enum Login {
    Anonymous,
    /// User and password, exchanged for a token in a handshake.
    Password {
        user: String,
        password: Secret,
    },
    Token(Secret),
}

/// A connection. Clones share it, and the session behind it.
#[derive(Clone, Debug)]
pub struct Client {
    flight: FlightServiceClient<Channel>,
    headers: Arc<Mutex<Headers>>,
}

#[derive(Debug, Clone)]
pub struct Table {
    pub catalog: String,
    pub schema_name: String,
    pub name: String,
    /// Kind: `TABLE`, `VIEW`, …
    pub kind: String,
    /// Columns, where they were asked for.
    pub columns: Option<Schema>,
}

impl Client {
    /// Connects and, with a password, logs in.
    ///
    /// # Errors
    /// [`Error::Address`] for an address that cannot be one, [`Error::Authorities`] without certificates to trust,
    /// [`Error::Connect`] when nobody answers there or the server's certificate is not trusted, [`Error::Server`] when
    /// the server refuses the login.
    pub async fn connect(target: &Target) -> Result<Self> {
        let Address { endpoint, encrypted } = address(&target.uri)?;
        if (target.ca_file.is_some() || target.identity.is_some()) && !encrypted {
            let reason = "certificates are named for a connection that is not encrypted; write `grpc+tls://`";
            return Err(Error::Address { uri: target.uri.clone(), reason: reason.to_owned() });
        }
        let connected = match encrypted {
            true => endpoint.connect_with_connector(tls::connector(target)?).await,
            false => endpoint.connect().await,
        };
        let channel =
            connected.map_err(|cause| Error::Connect { uri: target.uri.clone(), cause: Box::new(cause) })?;
        let flight = FlightServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(usize::MAX);
        let client = Self { flight, headers: Arc::new(Mutex::new(Headers::new(&target.login)?)) };
        if matches!(target.login, Login::Password { .. }) {
            client.handshake().await?;
        }
        Ok(client)
    }

    /// Starts a statement. It runs on the server from now on, and has had its effects when this returns.
    ///
    /// # Errors
    /// [`Error::Server`] with the server's message.
    pub async fn execute(&self, sql: &str) -> Result<Query> {
        let command = CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
        self.start(Command::CommandStatementQuery(command)).await
    }

    /// Lists tables whose names fit a `LIKE` pattern, with their columns if asked for.
    pub async fn tables(&self, pattern: Option<&str>, columns: Columns) -> Result<Vec<Table>> {
        let command = CommandGetTables {
            table_name_filter_pattern: pattern.map(str::to_owned),
            include_schema: columns == Columns::Include,
            ..CommandGetTables::default()
        };
        let query = self.start(Command::CommandGetTables(command)).await?;
        let batches: Vec<RecordBatch> = query.batches().try_collect().await?;
        let mut tables = Vec::new();
        for batch in &batches {
            read::tables(batch, &mut tables)?;
        }
        Ok(tables)
    }

    /// Sets an option of the session, or resets it with `None`.
    pub async fn set_option(&self, name: &str, value: Option<OptionValue>) -> Result<()> {
        let value = SessionOptionValue { option_value: value.map(to_wire) };
        let request = proto::SetSessionOptionsRequest {
            session_options: [(name.to_owned(), value)].into_iter().collect(),
        };
        let body = self.action("SetSessionOptions", request.encode_to_vec()).await?;
        let result = proto::SetSessionOptionsResult::decode(body).map_err(Error::Message)?;
        if result.errors.is_empty() { Ok(()) } else { Err(Error::Option { name: name.to_owned() }) }
    }

    /// Cancels a query; returns the status.
    ///
    /// # Errors
    /// [`Error::Server`] for a query that the server no longer knows.
    pub async fn cancel(&self, query: &Query) -> Result<CancelStatus> {
        let request = CancelFlightInfoRequest { info: Some(query.info.clone()) };
        let body = self.action("CancelFlightInfo", request.encode_to_vec()).await?;
        let result = CancelFlightInfoResult::decode(body).map_err(Error::Message)?;
        Ok(result.status())
    }

    /// Ends the session on the server.
    pub async fn close(self) -> Result<()> {
        self.action("CloseSession", proto::CloseSessionRequest {}.encode_to_vec()).await.map(drop)
    }

    async fn start(&self, command: Command) -> Result<Query> {
        let descriptor = FlightDescriptor::new_cmd(command.into_any().encode_to_vec());
        let response = self.flight.clone().get_flight_info(self.request(descriptor)).await?;
        let info = self.accept(response);
        let schema = bowshot_ipc::read_schema_bytes(&info.schema).map_err(Error::Decode)?;
        Ok(Query { client: self.clone(), schema: Arc::new(schema), info })
    }

    async fn action(&self, kind: &str, body: Vec<u8>) -> Result<Bytes> {
        let response = self.flight.clone().do_action(self.request(Action::new(kind, body))).await?;
        let mut results = self.accept(response);
        let first = results.message().await?.map(|result| result.body).unwrap_or_default();
        // Read to the end, which has the status.
        while results.message().await?.is_some() {}
        Ok(first)
    }

    /// Exchanges the password for a token; if the answer has none, each request sends the password.
    async fn handshake(&self) -> Result<()> {
        let requests = futures::stream::iter([HandshakeRequest::default()]);
        let response = self.flight.clone().handshake(self.request(requests)).await?;
        let mut answers = self.accept(response);
        while answers.message().await?.is_some() {}
        if let Some(trailers) = answers.trailers().await? {
            self.headers.lock().learn(&trailers);
        }
        Ok(())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        self.headers.lock().apply(request.metadata_mut());
        request
    }

    /// Takes the message out and remembers tokens and cookies.
    fn accept<T>(&self, response: Response<T>) -> T {
        self.headers.lock().learn(response.metadata());
        response.into_inner()
    }
}

/// Whether tables are listed with their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Names only.
    Omit,
    /// Names, types and comments of the columns too.
    Include,
}

/// A statement that the server has started.
#[derive(Debug, Clone)]
pub struct Query {
    client: Client,
    schema: SchemaRef,
    info: FlightInfo,
}

impl Query {
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    pub fn rows(&self) -> Option<u64> {
        u64::try_from(self.info.total_records).ok()
    }

    pub fn endpoints(&self) -> usize {
        self.info.endpoint.len()
    }

    /// Reads the result: all endpoints at once, in their order if the result has one. A result can be read once.
    pub fn batches(&self) -> BoxStream<'static, Result<RecordBatch>> {
        let count = self.info.endpoint.len().max(1);
        let client = self.client.clone();
        let opened = futures::stream::iter(self.info.endpoint.clone())
            .map(move |endpoint| read::open(client.clone(), endpoint.ticket))
            .buffered(count);
        if self.info.ordered || count == 1 {
            opened.try_flatten().boxed()
        } else {
            opened.try_flatten_unordered(count).boxed()
        }
    }

    pub async fn cancel(&self) -> Result<CancelStatus> {
        self.client.cancel(self).await
    }
}

/// Keywords of the server's SQL, sorted, in upper case; for completion.
pub fn keywords() -> &'static [&'static str] {
    crate::sql_info::keywords()
}

struct Address {
    endpoint: Endpoint,
    encrypted: bool,
}

fn address(uri: &str) -> Result<Address> {
    let refuse = |reason: &str| Error::Address { uri: uri.to_owned(), reason: reason.to_owned() };
    let (address, encrypted) = match uri.split_once("://") {
        None => (uri, false),
        Some(("grpc" | "grpc+tcp" | "http", rest)) => (rest, false),
        Some(("grpc+tls" | "https", rest)) => (rest, true),
        Some(_) => return Err(refuse("the scheme must be `grpc`, or `grpc+tls` to encrypt")),
    };
    let address = address.trim_end_matches('/');
    if address.is_empty() || address.contains(['/', '?', '@']) {
        return Err(refuse("it must have the form `grpc://host:port`"));
    }
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| refuse("it must have the form `grpc://host:port`"))?;
    if endpoint.uri().port().is_none() {
        return Err(refuse("the port is missing"));
    }
    let endpoint =
        endpoint.user_agent(USER_AGENT).map_err(|_| refuse("this client's own name is not a header"))?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_while_idle(true);
    let endpoint = if encrypted {
        let origin = format!("https://{address}");
        endpoint.origin(origin.parse().map_err(|_| refuse("it is not an address"))?)
    } else {
        endpoint
    };
    Ok(Address { endpoint, encrypted })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses() {
        for (good, encrypted) in [
            ("grpc://127.0.0.1:50051", false),
            ("grpc+tcp://localhost:1/", false),
            ("localhost:50051", false),
            ("grpc://[::1]:1", false),
            ("grpc+tls://localhost:1", true),
        ] {
            assert_eq!(address(good).unwrap().encrypted, encrypted, "{good}");
        }
        for (bad, reason) in [
            ("grpc://localhost", "the port is missing"),
            ("grpc+tls://localhost", "the port is missing"),
            ("postgres://localhost:1", "scheme"),
            ("grpc://user@localhost:1", "form"),
            ("", "form"),
        ] {
            let error = address(bad).err().unwrap().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }
}
