//! The object store through which the Delta library sees a table on this machine: its files, without what misleads beside its log.

use crate::delta::decimal_partition_values::Decimals;
use crate::delta::log;
use async_trait::async_trait;
use bowshot_formats::snapshot_store::refused;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::RwLock;
use std::fmt;
use std::future::ready;

const NAME: &str = "a Delta table on this machine";

#[derive(Debug, Default)]
pub(crate) struct DeltaLocal {
    files: LocalFileSystem,
    decimals: RwLock<Decimals>,
}

impl DeltaLocal {
    /// Has entries of the log shown with such numbers in full, from now on.
    pub(crate) fn write_in_full(&self, decimals: Decimals) {
        *self.decimals.write() = decimals;
    }
}

pub(crate) fn shown(
    entry: Bytes,
    (meta, attributes): (ObjectMeta, Attributes),
    decimals: &Decimals,
) -> GetResult {
    let entry = decimals.in_full(&entry).map_or(entry, Bytes::from);
    let size = entry.len() as u64;
    let payload = GetResultPayload::Stream(stream::once(ready(Ok(entry))).boxed());
    GetResult { payload, range: 0..size, meta: ObjectMeta { size, ..meta }, attributes }
}

#[async_trait]
impl ObjectStore for DeltaLocal {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_whole = options.range.is_none() && !options.head;
        let found = self.files.get_opts(location, options).await?;
        if log::misleads(location.as_ref(), found.meta.size) {
            let (path, source) =
                (location.to_string(), "cannot read a checkpoint; reading the log without it".into());
            return Err(object_store::Error::NotFound { path, source });
        }
        let decimals = self.decimals.read().clone();
        if decimals.0.is_empty() || !is_whole || !log::is_entry(location.as_ref()) {
            return Ok(found);
        }
        let (meta, attributes) = (found.meta.clone(), found.attributes.clone());
        Ok(shown(found.bytes().await?, (meta, attributes), &decimals))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        without_misleading(self.files.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        without_misleading(self.files.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(refused(NAME, "list with folders"))
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(refused(NAME, "put"))
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(refused(NAME, "put"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(ready(Err(refused(NAME, "delete")))).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(refused(NAME, "copy"))
    }
}

fn without_misleading(
    objects: BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let counts = |object: &Result<ObjectMeta>| match object {
        Ok(object) => !log::misleads(object.location.as_ref(), object.size),
        Err(_) => true,
    };
    objects.filter(move |object| ready(counts(object))).boxed()
}

impl fmt::Display for DeltaLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}
