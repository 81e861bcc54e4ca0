//! Rows that are views of files: of Arrow files that are tables, and of those of caches.
//!
//! Scans look at their files with each batch that they give. Operators that hold rows (sorts, windows, the built side of a
//! join) use them much later, when somebody may have overwritten or cut the file: lost pages read as zeros, without an
//! error. So each stream of a plan ends only after one more look at all of its files, and whatever went wrong in between is
//! told as what it is. Who keeps batches for longer (results that wait for their client, tables that are written) looks
//! once more before they count: [`Origin`]. Nothing is kept of an answer before its end.

use crate::execute::checked_scan::CheckedScan;
use crate::secured_scan;
use bowshot_api::{BatchStream, Origin, Result};
use bowshot_formats::shared_files::SharedFiles;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::ready;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

/// The files that rows of a plan may be views of.
#[derive(Debug, Default)]
pub struct FileViews {
    files: Vec<SharedFiles>,
    scans: Vec<Arc<dyn Origin>>,
}

impl FileViews {
    /// `None` for plans whose rows are nobody else's.
    pub fn of(plan: &dyn ExecutionPlan) -> Option<Arc<Self>> {
        let mut views = Self::default();
        views.collect(plan);
        (!views.files.is_empty() || !views.scans.is_empty()).then(|| Arc::new(views))
    }

    fn collect(&mut self, plan: &dyn ExecutionPlan) {
        self.files.extend(SharedFiles::of(plan));
        self.scans.extend(CheckedScan::origin_of(plan));
        plan.children()
            .into_iter()
            .chain(secured_scan::inside(plan))
            .for_each(|child| self.collect(child.as_ref()));
    }

    fn checked(&self) -> Result<(), DataFusionError> {
        self.check().map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

impl Origin for FileViews {
    fn check(&self) -> Result<()> {
        self.scans.iter().try_for_each(|origin| origin.check())?;
        self.files.iter().try_for_each(Origin::check)
    }
}

/// A stream of a plan with these views, which ends with an error if a file is no longer what it was.
pub fn watched(
    batches: SendableRecordBatchStream,
    views: Option<&Arc<FileViews>>,
) -> SendableRecordBatchStream {
    let Some(views) = views else { return batches };
    let (views, at_end, schema) = (Arc::clone(views), Arc::clone(views), batches.schema());
    let batches = AssertUnwindSafe(batches).catch_unwind().map(move |batch| match batch {
        Ok(Ok(batch)) => Ok(batch),
        // Values that became zeros can be what an operator failed at, or panicked.
        Ok(Err(error)) => views.checked().and(Err(error)),
        Err(panic) => views.checked().and_then(|()| resume_unwind(panic)),
    });
    let end = stream::once(async move { at_end.checked() });
    let end = end.filter_map(|end| ready(end.err().map(Err::<RecordBatch, _>)));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches.chain(end)))
}

/// What the rows of plans that run one after another may be views of, for who keeps all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(Arc<Mutex<Vec<Arc<dyn Origin>>>>);

impl Origins {
    /// Notes those of the streams of one more plan.
    pub(crate) fn add(&self, streams: &[BatchStream]) {
        let mut origins = self.0.lock();
        for origin in streams.iter().filter_map(BatchStream::origin) {
            // All streams of a plan have the same.
            if !origins.last().is_some_and(|last| Arc::ptr_eq(last, origin)) {
                origins.push(Arc::clone(origin));
            }
        }
    }
}

impl Origin for Origins {
    fn check(&self) -> Result<()> {
        self.0.lock().iter().try_for_each(|origin| origin.check())
    }
}

/// What to ask before batches count that were kept.
pub(crate) fn origin(views: Option<Arc<FileViews>>) -> Option<Arc<dyn Origin>> {
    views.map(|views| views as Arc<dyn Origin>)
}
