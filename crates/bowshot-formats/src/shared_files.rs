//! The Arrow files of a scan, whose memory its rows share: what an operator holds of them becomes something else when somebody
//! overwrites or cuts such a file, long after the scan has checked it.

use crate::arrow_ipc;
use crate::data_file::DataFile;
use crate::row_source::RowSource;
use bowshot_api::{Origin, Result};
use bowshot_ipc::{MappedFile, Witness};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

type Witnessed = (PathBuf, Witness);

/// So many files back it is looked whether a file is known: a scan reads the parts of a file one after another in each of
/// its partitions, and a recursive query reads all of them again.
const LOOKED_BACK: usize = 256;

/// The files of which a scan has given rows so far. All copies are of one scan.
#[derive(Debug, Clone, Default)]
pub struct SharedFiles(Arc<Mutex<Vec<Witnessed>>>);

impl SharedFiles {
    /// Those of a plan itself, without its inputs.
    pub fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        let scan = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
        scan.file_source().downcast_ref::<RowSource>()?.shared()
    }

    pub fn add(&self, file: &DataFile, mapped: &MappedFile) {
        let witness = mapped.witness();
        let mut files = self.0.lock();
        if !files.iter().rev().take(LOOKED_BACK).any(|(_, known)| known.is_of_same_map(&witness)) {
            files.push((file.path().to_path_buf(), witness));
        }
    }
}

impl Origin for SharedFiles {
    fn check(&self) -> Result<()> {
        let files = self.0.lock();
        let checked = files.iter().try_for_each(|(path, witness)| {
            witness.check().map_err(|error| arrow_ipc::explain_at(path, error))
        });
        Ok(checked?)
    }
}
