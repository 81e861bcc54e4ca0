//! A data file, as a listing has it.

use crate::data_file::{DataFile, HandlePool};
use bowshot_object_store::file_name::Kind;
use bowshot_object_store::{FileIdentity, RemoteFile};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct ListedFile {
    pub path: PathBuf,
    /// Names of the folders between the table's folder and the file.
    pub folders: Vec<String>,
    pub kind: Kind,
    /// The path as rows show it that name their file.
    pub shown: String,
    pub identity: FileIdentity,
    pub remote: Option<Arc<RemoteFile>>,
}

impl ListedFile {
    pub fn data(&self, pool: &Arc<HandlePool>) -> Arc<DataFile> {
        match &self.remote {
            Some(remote) => DataFile::remote(Arc::clone(remote), Arc::clone(pool)),
            None => DataFile::new(self.path.clone(), self.identity, Arc::clone(pool)),
        }
    }
}
