//! A store in memory whose marks of contents are those of HTTP: between quotation marks, where a condition names them (RFC 9110,
//! section 8.8.3). `InMemory` compares what it is given with bare numbers.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;

#[derive(Debug, Default)]
pub(super) struct StoreWithTags(InMemory);

impl fmt::Display for StoreWithTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store in memory")
    }
}

fn bare(tag: Option<String>) -> Option<String> {
    tag.map(|tag| tag.trim_matches('"').to_owned())
}

#[async_trait]
impl ObjectStore for StoreWithTags {
    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        options.if_match = bare(options.if_match);
        options.if_none_match = bare(options.if_none_match);
        self.0.get_opts(location, options).await
    }

    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}
