//! The object store through which DataFusion's Parquet reader sees our files. It knows only files of live table
//! snapshots, each under a name that begins with its number: a new content is a new object, so no cache of DataFusion
//! can mix two contents up, and names with `%`, `#`, `?`, `*` or blanks need no escaping rules. It lists and writes nothing.

use crate::data_file::DataFile;
use crate::decoded_columns::ColumnCache;
use async_trait::async_trait;
use bowshot_object_store::Error;
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

const NAME: &str = "bowshot files";
/// Bytes that are worth a thread of their own.
const SHARE_BYTES: u64 = 4 << 20;
/// Threads that read for one row group at once.
const MAX_READERS: usize = 4;

#[derive(Debug)]
pub struct SnapshotStore {
    url: ObjectStoreUrl,
    files: RwLock<HashMap<Path, Weak<DataFile>>>,
    columns: Arc<ColumnCache>,
}

impl SnapshotStore {
    /// A store of its own for one catalog, known to the runtime under a URL that nobody else uses.
    pub fn register(
        runtime: &RuntimeEnv,
        columns: &Arc<ColumnCache>,
    ) -> Result<Arc<Self>, datafusion::error::DataFusionError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let url = ObjectStoreUrl::parse(format!("bowshot-files://{number}"))?;
        let store = Arc::new(Self { url, files: RwLock::default(), columns: Arc::clone(columns) });
        runtime.register_object_store(store.url.as_ref(), Arc::clone(&store) as Arc<dyn ObjectStore>);
        Ok(store)
    }

    pub fn url(&self) -> &ObjectStoreUrl {
        &self.url
    }

    pub fn columns(&self) -> &Arc<ColumnCache> {
        &self.columns
    }

    /// Makes a file readable for as long as somebody holds it.
    pub fn add(&self, file: &Arc<DataFile>) -> ObjectMeta {
        let meta = object_meta(file);
        let mut files = self.files.write();
        files.insert(meta.location.clone(), Arc::downgrade(file));
        meta
    }

    pub fn sweep(&self) {
        self.files.write().retain(|_, file| file.strong_count() > 0);
    }

    fn find(&self, location: &Path) -> Result<Arc<DataFile>> {
        let files = self.files.read();
        files.get(location).and_then(Weak::upgrade).ok_or_else(|| object_store::Error::NotFound {
            path: location.to_string(),
            source: "this version of the table is no longer used".into(),
        })
    }
}

/// What DataFusion is told about a file: its number, then its path, so that plans can be read.
pub fn object_meta(file: &DataFile) -> ObjectMeta {
    let number = file.number().to_string();
    let path = file.path().to_string_lossy();
    let parts = std::iter::once(number.as_str()).chain(path.split('/').filter(|part| !part.is_empty()));
    let (seconds, nanoseconds) = file.identity().modified();
    ObjectMeta {
        location: Path::from_iter(parts),
        last_modified: chrono::DateTime::from_timestamp(seconds, nanoseconds).unwrap_or_default(),
        size: file.size(),
        e_tag: Some(number),
        version: None,
    }
}

/// The bytes that are asked for, of a file of this size.
pub fn wanted(range: Option<&GetRange>, size: u64) -> Range<u64> {
    match range {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.start.min(size)..range.end.min(size),
        Some(GetRange::Offset(start)) => (*start).min(size)..size,
        Some(GetRange::Suffix(length)) => size.saturating_sub(*length)..size,
    }
}

#[async_trait]
impl ObjectStore for SnapshotStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let file = self.find(location)?;
        let size = file.size();
        let range = wanted(options.range.as_ref(), size);
        let meta = object_meta(&file);
        let payload = if options.head {
            stream::empty().boxed()
        } else {
            let mut read = read_all(file, vec![range.clone()]).await?;
            let bytes = read.pop().unwrap_or_default();
            stream::once(std::future::ready(Ok(bytes))).boxed()
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(payload),
            meta,
            range,
            attributes: Attributes::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        read_all(self.find(location)?, ranges.to_vec()).await
    }

    fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(std::future::ready(Err(refused(NAME, "list")))).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> Result<ListResult> {
        Err(refused(NAME, "list"))
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(refused(NAME, "put"))
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(refused(NAME, "put"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(std::future::ready(Err(refused(NAME, "delete")))).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(refused(NAME, "copy"))
    }
}

impl fmt::Display for SnapshotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

/// Reads on the blocking pool, so that a cold disk stalls no thread that computes; large row groups by several threads.
async fn read_all(file: Arc<DataFile>, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
    let failed = |error| object_store::Error::Generic { store: NAME, source: Box::new(error) };
    if let Some(remote) = file.as_remote() {
        return remote.read(ranges).await.map_err(failed);
    }
    let shares = shares(ranges);
    let reads = shares.into_iter().map(|share| read_share(Arc::clone(&file), share));
    let parts = futures::future::try_join_all(reads).await.map_err(failed)?;
    Ok(parts.into_iter().flatten().collect())
}

async fn read_share(file: Arc<DataFile>, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>, Error> {
    let path = file.path().to_path_buf();
    let read = tokio::task::spawn_blocking(move || {
        let read = |range| file.resident(&range).map_or_else(|| file.read(range), Ok);
        ranges.into_iter().map(read).collect()
    });
    read.await.unwrap_or_else(|error| Err(Error::Interrupted { path, detail: error.to_string() }))
}

/// Neighbouring ranges in groups of at least [`SHARE_BYTES`], at most one for each thread.
fn shares(ranges: Vec<Range<u64>>) -> Vec<Vec<Range<u64>>> {
    // The ranges come from the file's own footer: any number is possible before `read` checks them.
    let length = |range: &Range<u64>| range.end.saturating_sub(range.start);
    let total = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(length(range)));
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_READERS);
    let target = SHARE_BYTES.max(total.div_ceil(threads as u64));
    let (mut shares, mut filled) = (vec![Vec::new()], 0);
    for range in ranges {
        if filled >= target {
            shares.push(Vec::new());
            filled = 0;
        }
        filled = length(&range).saturating_add(filled);
        if let Some(last) = shares.last_mut() {
            last.push(range);
        }
    }
    shares
}

/// The error of a store that cannot do something.
pub fn refused(store: &str, operation: &str) -> object_store::Error {
    object_store::Error::NotImplemented { operation: operation.to_owned(), implementer: store.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_the_order_and_are_worth_a_thread() {
        let column = |index: u64| index * SHARE_BYTES..(index + 1) * SHARE_BYTES;
        let ranges: Vec<_> = (0..9).map(column).collect();
        let shares = shares(ranges.clone());
        assert_eq!(shares.concat(), ranges);
        assert!(shares.len() <= MAX_READERS && shares.iter().all(|share| !share.is_empty()));
        let small = super::shares(vec![0..10, 10..20]);
        assert_eq!(small.len(), 1);
        assert_eq!(super::shares(Vec::new()), [Vec::<Range<u64>>::new()]);
    }
}
