//! A statement with values, in the extended protocol (PostgreSQL manual, "Extended Query").

use crate::backend_messages::Column;
use crate::frontend_messages::Format;
use crate::prepared::Prepared;
use crate::result_writer::ResultWriter;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// A prepared statement with bound values.
pub(crate) struct Portal {
    pub(crate) statement: Arc<Prepared>,
    /// Distinguishes the portals of one statement.
    pub(crate) serial: u64,
    pub(crate) values: Option<RecordBatch>,
    pub(crate) formats: Vec<Format>,
    /// The columns that the client has been sent.
    pub(crate) described: Option<Vec<Column>>,
    pub(crate) state: PortalState,
}

/// How far a portal has run.
pub(crate) enum PortalState {
    Fresh,
    Running(Box<ResultWriter>),
    Done,
}
