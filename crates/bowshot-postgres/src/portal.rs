//! A statement with values, in the extended protocol (PostgreSQL manual, "Extended Query").

use crate::message::Format;
use crate::prepared::Prepared;
use crate::reply::Column;
use crate::result_writer::ResultWriter;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

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
