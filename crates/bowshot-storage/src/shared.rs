//! The Arrow files of a scan, whose memory its rows share: what an operator holds of them becomes something else when somebody
//! overwrites or cuts such a file, long after the scan has checked it.

use crate::arrow_ipc;
use crate::file::DataFile;
use crate::source::RowSource;
use bowshot_api::{Origin, Result};
use bowshot_ipc::{MappedFile, Witness};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file and what becomes of the map that rows are views of.
type Witnessed = (Arc<DataFile>, Witness);

/// The files of which a scan has given rows so far. All copies are of one scan.
#[derive(Debug, Clone, Default)]
pub struct SharedFiles(Arc<Mutex<Vec<Witnessed>>>);

impl SharedFiles {
    /// Those of a plan itself, without its inputs.
    pub fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        let scan = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
        scan.file_source().downcast_ref::<RowSource>()?.shared()
    }

    pub(crate) fn add(&self, file: &Arc<DataFile>, mapped: &MappedFile) {
        let witness = mapped.witness();
        let mut files = self.lock();
        // The parts of a file are read one after another.
        if !files.last().is_some_and(|(_, last)| last.is_of_same_map(&witness)) {
            files.push((Arc::clone(file), witness));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Witnessed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origin for SharedFiles {
    fn check(&self) -> Result<()> {
        let files = self.lock();
        let checked = files
            .iter()
            .try_for_each(|(file, witness)| witness.check().map_err(|error| arrow_ipc::explain(file, error)));
        Ok(checked?)
    }
}
