//! The object store through which the Delta library sees a table of an object store: the objects below the table's folder, as they
//! were listed when its log was read, and nothing else. All reads go through [`bowshot_object_store`], with its checks, limits and cache.

use crate::delta::decimal_partition_values::Decimals;
use crate::delta::local::shown;
use crate::delta::log::{is_entry, misleads};
use async_trait::async_trait;
use bowshot_formats::snapshot_store::{refused, wanted};
use bowshot_object_store::{Error, RemoteView};
use bytes::Bytes;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use url::Url;

const NAME: &str = "a Delta table of an object store";

#[derive(Debug)]
pub(crate) struct DeltaObjects {
    /// Tells the table from all others, in its address and before all names: what is cached of files goes by their names alone.
    number: u64,
    state: RwLock<State>,
    fault: Mutex<Option<Error>>,
}

#[derive(Debug, Default)]
struct State {
    /// Asks for what was not listed.
    view: Option<RemoteView>,
    /// By their names from the folder on.
    objects: BTreeMap<String, ObjectMeta>,
    decimals: Decimals,
}

/// The store of one table, known to the runtime for as long as this is held.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) objects: Arc<DeltaObjects>,
    pub(crate) url: Url,
    runtime: Arc<RuntimeEnv>,
}

impl Registered {
    pub(crate) fn new(runtime: &Arc<RuntimeEnv>) -> std::result::Result<Self, url::ParseError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let url = Url::parse(&format!("bowshot-delta://{number}/{number}/"))?;
        let objects = Arc::new(DeltaObjects { number, state: RwLock::default(), fault: Mutex::default() });
        runtime.register_object_store(&url, Arc::clone(&objects) as Arc<dyn ObjectStore>);
        Ok(Self { objects, url, runtime: Arc::clone(runtime) })
    }

    pub(crate) fn prefix(&self) -> Path {
        Path::from(self.objects.number.to_string())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Nobody else has registered it, so that it is there.
        let _ = self.runtime.deregister_object_store(&self.url);
    }
}

impl DeltaObjects {
    pub(crate) fn show(&self, view: &RemoteView) {
        let objects = view.objects().into_iter();
        let objects = objects.filter(|(name, object)| !misleads(name, object.size)).collect();
        // Listings are large: one is not kept for each table.
        let state = State { view: Some(view.without_listing()), objects, decimals: Decimals::default() };
        *self.state.write() = state;
        *self.fault.lock() = None;
    }

    /// Has entries of the log shown with such numbers in full, until another view is shown.
    pub(crate) fn write_in_full(&self, decimals: Decimals) {
        self.state.write().decimals = decimals;
    }

    /// What has gone wrong since something was shown: the library flattens errors to text.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.fault.lock().clone()
    }

    async fn find(&self, location: &Path) -> Result<(RemoteView, ObjectMeta)> {
        let missing = || object_store::Error::NotFound {
            path: location.to_string(),
            source: "it is not in the folder of the table".into(),
        };
        let name = self.name(location).filter(|name| !misleads(name, u64::MAX)).ok_or_else(missing)?;
        let (view, listed) = {
            let state = self.state.read();
            (state.view.clone().ok_or_else(missing)?, state.objects.get(name).cloned())
        };
        if let Some(object) = listed {
            return Ok((view, object));
        }
        // Files of a commit that came while the store was listed may not have been in the list yet.
        match view.head(name).await {
            Ok(object) if misleads(name, object.size) => Err(missing()),
            Ok(object) => {
                let mut state = self.state.write();
                state.objects.insert(name.to_owned(), object.clone());
                Ok((view, object))
            }
            Err(Error::Missing { .. }) => Err(missing()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The name from the folder on.
    fn name<'a>(&self, location: &'a Path) -> Option<&'a str> {
        let (number, name) = location.as_ref().split_once('/')?;
        (number == self.number.to_string() && !name.is_empty()).then_some(name)
    }

    fn meta(&self, name: &str, object: &ObjectMeta) -> ObjectMeta {
        // Names are kept as they are, and these are names of objects.
        let location = Path::parse(format!("{}/{name}", self.number));
        ObjectMeta { location: location.unwrap_or_else(|_| object.location.clone()), ..object.clone() }
    }

    fn failed(&self, error: Error) -> object_store::Error {
        *self.fault.lock() = Some(error.clone());
        object_store::Error::Generic { store: NAME, source: Box::new(error) }
    }

    async fn read(
        &self,
        view: &RemoteView,
        object: &ObjectMeta,
        ranges: Vec<Range<u64>>,
    ) -> Result<Vec<Bytes>> {
        view.file(object).read(ranges).await.map_err(|error| self.failed(error))
    }
}

#[async_trait]
impl ObjectStore for DeltaObjects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (view, object) = self.find(location).await?;
        let range = wanted(options.range.as_ref(), object.size);
        let decimals = self.state.read().decimals.clone();
        if !decimals.0.is_empty() && !options.head && options.range.is_none() && is_entry(location.as_ref()) {
            let entry = self.read(&view, &object, vec![range]).await?.pop().unwrap_or_default();
            let meta = ObjectMeta { location: location.clone(), ..object };
            return Ok(shown(entry, (meta, Attributes::default()), &decimals));
        }
        let payload = if options.head {
            stream::empty().boxed()
        } else {
            let mut read = self.read(&view, &object, vec![range.clone()]).await?;
            let bytes = read.pop().unwrap_or_default();
            stream::once(std::future::ready(Ok(bytes))).boxed()
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(payload),
            meta: ObjectMeta { location: location.clone(), ..object },
            range,
            attributes: Attributes::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (view, object) = self.find(location).await?;
        self.read(&view, &object, ranges.to_vec()).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let own = Path::from(self.number.to_string());
        let folder = match prefix {
            Some(prefix) if *prefix != own => self.name(prefix).map(|name| format!("{name}/")),
            _ => Some(String::new()),
        };
        let state = self.state.read();
        let listed: Vec<Result<ObjectMeta>> = match folder {
            None => Vec::new(),
            Some(folder) => {
                let from = state.objects.range(folder.clone()..);
                let below = from.take_while(|(name, _)| name.starts_with(&folder));
                below.map(|(name, object)| Ok(self.meta(name, object))).collect()
            }
        };
        stream::iter(listed).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> Result<ListResult> {
        Err(refused(NAME, "list with folders"))
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

impl fmt::Display for DeltaObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}
