//! Reads deletion vectors of Delta tables, from their own files or the log (Delta protocol, "Deletion Vectors"). The format is
//! Iceberg's ([`crate::deletion_bitmap`]).

use crate::deletes::{Count, vector_places};
use crate::deletion_bitmap;
use crate::delta::deletion_vector_check::name_of_uuid;
use crate::delta::paths;
use crate::table_folder::FolderView;
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error;
use deltalake_core::kernel::{DeletionVectorDescriptor, StorageType};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Before a vector in a file its length, and its checksum behind.
const AROUND_BYTES: u64 = 8;
/// Where the first vector of a file begins: behind the version.
const FIRST_OFFSET: u64 = 1;

/// The vectors of one feed. Each is read once, though it ends one commit and begins another one.
#[derive(Debug)]
pub(super) struct Vectors<'a> {
    folder: &'a FolderView,
    pool: &'a Arc<HandlePool>,
    count: Count,
    read: HashMap<(String, Option<i32>), Arc<Vec<u64>>>,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(folder: &'a FolderView, pool: &'a Arc<HandlePool>) -> Self {
        Self { folder, pool, count: Count::default(), read: HashMap::new() }
    }

    /// The places that a vector has, in order; none without one.
    pub(super) fn places(
        &mut self,
        vector: Option<&DeletionVectorDescriptor>,
    ) -> Result<Arc<Vec<u64>>, Error> {
        let Some(vector) = vector else { return Ok(Arc::default()) };
        let key = (format!("{}{}", vector.storage_type, vector.path_or_inline_dv), vector.offset);
        if let Some(known) = self.read.get(&key) {
            return Ok(Arc::clone(known));
        }
        let places = match vector.storage_type {
            StorageType::Inline => self.in_log(vector)?,
            StorageType::UuidRelativePath | StorageType::AbsolutePath => self.in_file(vector)?,
        };
        if u64::try_from(vector.cardinality) != Ok(places.len() as u64) {
            let detail =
                format!("a deletion vector has {} rows, expected {}", places.len(), vector.cardinality);
            return Err(self.corrupt(detail));
        }
        let places = Arc::new(places);
        self.read.insert(key, Arc::clone(&places));
        Ok(places)
    }

    fn in_file(&mut self, vector: &DeletionVectorDescriptor) -> Result<Vec<u64>, Error> {
        let name = match vector.storage_type {
            StorageType::UuidRelativePath => name_of_uuid(&vector.path_or_inline_dv)
                .ok_or_else(|| self.corrupt("a deletion vector has no name"))?,
            _ => vector.path_or_inline_dv.clone(),
        };
        let name = paths::name_below(&name, self.folder).map_err(|outside| self.corrupt(outside))?;
        let range = range(vector).ok_or_else(|| self.corrupt("a deletion vector has no location"))?;
        let file = self.folder.find(&name)?.data(self.pool);
        vector_places(&file, range, &mut self.count)
    }

    fn in_log(&mut self, descriptor: &DeletionVectorDescriptor) -> Result<Vec<u64>, Error> {
        let bytes = z85::decode(&descriptor.path_or_inline_dv).ok();
        // The text is as long as whole groups of characters are.
        let size = usize::try_from(descriptor.size_in_bytes).ok();
        let content = bytes.as_deref().zip(size).and_then(|(bytes, size)| bytes.get(..size));
        let content = content.ok_or_else(|| self.corrupt("a deletion vector in it is damaged"))?;
        let places =
            deletion_bitmap::bare(content, self.count.left()).map_err(|reason| self.corrupt(reason))?;
        let path = self.path();
        self.count.add(places.len(), &path)?;
        Ok(places)
    }

    fn path(&self) -> PathBuf {
        self.folder.path("_delta_log")
    }

    fn corrupt(&self, detail: impl ToString) -> Error {
        Error::corrupt(&self.path(), detail)
    }
}

fn range(vector: &DeletionVectorDescriptor) -> Option<Range<u64>> {
    let start = vector.offset.map_or(Some(FIRST_OFFSET), |offset| u64::try_from(offset).ok())?;
    let size = u64::try_from(vector.size_in_bytes).ok()?;
    Some(start..start.checked_add(size)?.checked_add(AROUND_BYTES)?)
}
