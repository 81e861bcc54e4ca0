//! The server API: the only interface between the front ends (Flight SQL, PostgreSQL, MySQL, HTTP) and the rest of
//! the server. It has no type of DataFusion or of storage.
//!
//! ```text
//! Server::authenticate -> Principal
//! Server::open_session -> Session
//! Session::start(Request) -> Answer { query, schema, partitions }     the query runs from now on
//! Server::attach(query, partition) -> BatchStream                    dropping it stops the work
//! Session::ingest(Ingest, BatchStream) -> rows written               all of them or none
//! ```

mod allocations;
mod auth_cache;
mod authorization_header;
mod caller_token;
mod catalog;
pub mod catalog_names;
mod compatibility;
mod connection_limiter;
mod debug_fields;
mod defaults;
mod encryption;
mod error;
mod getters;
mod ids;
mod layout;
mod limits;
mod named;
mod network;
mod password_exchange;
mod policy_decision;
mod principal;
mod reason;
mod server;
mod session;
mod session_options;
mod stream;
mod tensor_exchange;
mod traces;
mod unsupported_time;
pub mod variant;
mod words;
mod write;
mod zone_offset;

pub use allocations::allocations;
pub use auth_cache::AuthCache;
pub use caller_token::CallerToken;
pub use catalog::{PrimaryKey, TableEntry, TableFilter, TableKind, TableName, like};
pub use compatibility::{Accepted, COMPATIBILITY_PARAMETERS, CompatibilityParameter};
pub use connection_limiter::{ConnectionLimiter, Permit};
pub use encryption::{EncryptedText, SecretCipher};
pub use error::{Error, ErrorKind, Result};
pub use ids::{QueryId, SavepointId, SessionId, StatementId, TransactionId};
pub use layout::{Compression, Layout, SAME_NAME_MARK, display_name};
pub use limits::Limits;
pub use network::Network;
pub use password_exchange::{PasswordExchange, Scramble};
pub use policy_decision::{AccessKind, AccessRequest, NoDecision, PolicyDecisionPoint, Resource};
pub use principal::{Claims, ClientCertificate, Credentials, Principal, Secret};
pub use reason::{Position, Reason};
pub use server::{About, CancelOutcome, Languages, Lifecycle, Progress, Server, ServerStatus};
pub use session::{
    Answer, ColumnOrigin, Delivery, Description, Endpoints, LastWrite, Location, Notice, Prepared, Request,
    STATUS_RESULT, Session, Statement, SubstraitPlan,
};
pub use session_options::{OptionValue, SESSION_OPTIONS, SessionOption};
pub use stream::{BatchStream, ByteStream, Origin, batch_bytes};
pub use tensor_exchange::{Reduction, TensorExchange};
pub use traces::{
    TRACEPARENT, TRACES, TraceChoices, call_span, commented_parent, set_trace_choices, shows_statements,
    statement_span,
};
pub use unsupported_time::unsupported_time;
pub use write::{IfExists, IfMissing, Ingest, Input, TransactionEnd};
pub use zone_offset::{offset_of_clock, offset_of_instant};
