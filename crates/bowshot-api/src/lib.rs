//! The door of Bowshot: the only interface between the front ends (Flight SQL, PostgreSQL, MySQL, HTTP) and
//! everything below. A front end holds an `Arc<dyn Server>`, turns credentials into a [`Principal`], opens or finds a
//! [`Session`], hands over statements and gives back the [`BatchStream`]s it receives.
//!
//! Nothing of the query engine shows here: no DataFusion type, no storage type. What a front end may know is in this
//! crate; what it must not know cannot be named from it.
//!
//! The road of a query, seen from here:
//!
//! ```text
//! Server::authenticate -> Principal
//! Server::open_session -> Session
//! Session::start(Request) -> Answer { query, schema, partitions }     the query runs from now on
//! Server::attach(query, partition) -> BatchStream                    dropping it stops the work
//! Session::ingest(Ingest, BatchStream) -> rows written               all of them or none
//! ```

mod authorization;
mod caller_token;
mod callers;
mod catalog;
pub mod catalog_names;
mod compatibility;
mod decision;
mod error;
mod ids;
mod layout;
mod limits;
mod network;
mod places;
mod principal;
mod proof;
mod reason;
mod rooms;
mod seal;
mod server;
mod session;
mod settings;
mod stream;
mod time_limits;
mod traces;
mod write;

pub use caller_token::CallerToken;
pub use callers::KnownCallers;
pub use catalog::{PrimaryKey, TableEntry, TableFilter, TableKind, TableName, like};
pub use compatibility::{Accepted, COMPATIBILITY_PARAMETERS, CompatibilityParameter};
pub use decision::{Decider, Intent, Thing, Touch, Undecided};
pub use error::{Error, ErrorKind, Result};
pub use ids::{QueryId, SavepointId, SessionId, StatementId, TransactionId};
pub use layout::{Compression, Layout, SAME_NAME_MARK, shown_name};
pub use limits::Limits;
pub use network::Network;
pub use places::{Place, Places};
pub use principal::{Claims, ClientCertificate, Credentials, Principal, Secret};
pub use proof::{PasswordExchange, Scramble};
pub use reason::{Position, Reason};
pub use rooms::{Combination, Room};
pub use seal::{Seal, Sealed};
pub use server::{About, CancelOutcome, Languages, Lifecycle, Progress, Server, ServerStatus};
pub use session::{
    Answer, ColumnOrigin, Delivery, Description, Endpoints, LastWrite, Location, Notice, Prepared, Request,
    STATUS_RESULT, Session, Statement, SubstraitPlan,
};
pub use settings::{OptionValue, SESSION_OPTIONS, SessionOption};
pub use stream::{BatchStream, Origin, Pieces, batch_bytes};
pub use time_limits::unsupported_time;
pub use traces::{
    TRACEPARENT, TRACES, TraceChoices, call_span, commented_parent, set_trace_choices, shows_statements,
    statement_span,
};
pub use write::{IfExists, IfMissing, Ingest, Input, TransactionEnd};
