//! The models that were read last, for all sessions: reading one takes far longer than asking it about a row.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_models::Model;
use bowshot_tables::TableStore;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the models that are kept; plans hold theirs for as long as they need them.
const KEPT_BYTES: usize = 1 << 30;
/// How long the file of a model is kept that nobody names any more: a transaction may see it still.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// The models that were read last.
#[derive(Debug)]
pub(crate) struct Models {
    store: Arc<TableStore>,
    /// The most recent at the end.
    read: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    sha256: String,
    model: Arc<Model>,
    bytes: usize,
}

impl Models {
    pub(crate) fn new(store: &Arc<TableStore>) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(store), read: Mutex::default() })
    }

    /// The model of a file. Blocks where it has to be read.
    ///
    /// # Errors
    /// `Corrupt` without the file, or when it has changed.
    pub(crate) fn get(&self, sha256: &str) -> Result<Arc<Model>> {
        if let Some(model) = self.recent(sha256) {
            return Ok(model);
        }
        let lost = || {
            Error::new(ErrorKind::Corrupt, "the model file is missing or has changed")
                .with_hint("make the model again with CREATE OR REPLACE MODEL, or bring the data folder back from a backup")
        };
        let bytes = self.store.model_files().get(sha256)?.ok_or_else(lost)?;
        let model = Arc::new(read(&bytes)?);
        self.keep(sha256.to_owned(), &model, bytes.len());
        Ok(model)
    }

    /// Reads a new file, and keeps it for good if it is a model. Blocks until it is on disk.
    ///
    /// # Errors
    /// What is wrong with the file; `Unsupported`, with the name of what is not known.
    pub(crate) fn put(&self, bytes: Vec<u8>) -> Result<(String, Arc<Model>)> {
        let model = Arc::new(read(&bytes)?);
        let length = bytes.len();
        let sha256 = self.store.model_files().put(bytes)?;
        self.keep(sha256.clone(), &model, length);
        Ok((sha256, model))
    }

    /// Removes files that no model has had for long.
    pub(crate) fn sweep(&self, named: &HashSet<String>) {
        self.store.model_files().sweep(named, GRACE);
    }

    fn recent(&self, sha256: &str) -> Option<Arc<Model>> {
        let mut read = self.read.lock();
        let at = read.iter().rposition(|kept| kept.sha256 == sha256)?;
        let kept = read.remove(at);
        let model = Arc::clone(&kept.model);
        read.push(kept);
        Some(model)
    }

    fn keep(&self, sha256: String, model: &Arc<Model>, file_bytes: usize) {
        let bytes = model.memory(file_bytes);
        let mut read = self.read.lock();
        read.retain(|kept| kept.sha256 != sha256);
        read.push(Kept { sha256, model: Arc::clone(model), bytes });
        let mut gone = Vec::new();
        while read.len() > 1 && read.iter().map(|kept| kept.bytes).sum::<usize>() > KEPT_BYTES {
            gone.push(read.remove(0));
        }
        drop(read);
        // Outside the lock: many nodes may go.
        drop(gone);
    }
}

/// Loads the library of ONNX Runtime, without which ONNX graphs that are no tree ensembles are refused. Once in a process.
///
/// # Errors
/// `Invalid` when the file is no such library, or an old one.
pub fn load_onnx_runtime(path: &Path) -> Result<()> {
    bowshot_models::load_onnx_runtime(path).map_err(|error| {
        Error::invalid(error.to_string()).with_hint(
            "name the library of ONNX Runtime 1.17 or later with `models.onnx_runtime`, or leave it empty",
        )
    })
}

fn read(bytes: &[u8]) -> Result<Model> {
    Model::read(bytes).map_err(|error| {
        let kind = match &error {
            bowshot_models::Error::Unsupported(_) | bowshot_models::Error::NoRuntime(_) => {
                ErrorKind::Unsupported
            }
            bowshot_models::Error::TooLarge { .. } => ErrorKind::LimitReached,
            bowshot_models::Error::Damaged(_) | bowshot_models::Error::Input(_) => ErrorKind::Invalid,
        };
        let hint = match &error {
            bowshot_models::Error::NoRuntime(_) => {
                "`pip install onnxruntime` brings `onnxruntime/capi/libonnxruntime.so.*`: name it with the setting `models.onnx_runtime`"
            }
            _ => "models are files of XGBoost (JSON, UBJSON), LightGBM (text) and ONNX",
        };
        Error::new(kind, error.to_string()).with_hint(hint)
    })
}
