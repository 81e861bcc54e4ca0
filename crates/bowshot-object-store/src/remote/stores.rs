//! All object stores of a server: the buckets that are open, the cache that they share, and which places statements may name.

use super::cache::RangeCache;
use super::client::{Client, Shared};
use super::file::RemoteFile;
use super::folder::ObjectFolder;
use super::io::Io;
use super::options::{PlaceSettings, RemoteOptions};
use super::source::RemoteSource;
use super::store_pool::StorePool;
use super::url::{RemoteUrl, Scheme};
use super::vended::Vended;
use super::view::RemoteFolder;
use super::web::{Patience, WebClient};
use super::{store_builder, upload::Upload};
use crate::Error as FileError;
use crate::secrets::InForce;
use bowshot_api::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Debug)]
pub struct Remotes {
    options: RemoteOptions,
    /// Places whose files statements may read.
    read: Vec<RemoteUrl>,
    /// Places in which COPY may read and write.
    exchange: Vec<RemoteUrl>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    shared: Option<Arc<Shared>>,
    /// By bucket, by the place whose settings are used for it, and whether secrets count there.
    clients: BTreeMap<(String, String, bool), Arc<Client>>,
}

#[derive(Debug, Clone)]
pub struct PlaceSummary {
    /// `s3://bucket`
    pub place: String,
    /// Reads, listings and uploads that were begun.
    pub requests: u64,
    /// Those that came to nothing.
    pub failed: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Bytes that came from disk instead.
    pub bytes_from_cache: u64,
    /// Why something came to nothing last.
    pub last_error: Option<String>,
    /// Bytes on disk, of all buckets together.
    pub cache_bytes: u64,
}

impl Remotes {
    /// Checks the settings. Nothing is opened yet.
    pub fn new(options: RemoteOptions) -> Result<Arc<Self>> {
        options.places.iter().try_for_each(store_builder::check)?;
        let places = |texts: &[String], setting: &str| {
            let parse = |text: &String| {
                RemoteUrl::parse(text).map_err(|error| Error::invalid(format!("`{setting}`: {error}")))
            };
            texts.iter().map(parse).collect::<Result<Vec<_>>>()
        };
        let read = places(&options.read, "object_store.read")?;
        let exchange = places(&options.exchange, "object_store.exchange")?;
        if let Some(place) = exchange.iter().find(|place| place.scheme == Scheme::Web) {
            return Err(Error::invalid(format!("`object_store.exchange`: cannot write to `{}`", place.root))
                .with_hint("name a bucket, as s3://bucket/prefix"));
        }
        Ok(Arc::new(Self { options, read, exchange, open: Mutex::default() }))
    }

    /// Whether COPY may use any place.
    pub fn has_exchange(&self) -> bool {
        !self.exchange.is_empty()
    }

    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.options.secrets.as_ref().map(|secrets| secrets.in_force())
    }

    /// How often what is in use is listed again.
    pub fn refresh(&self) -> std::time::Duration {
        self.options.refresh
    }

    pub fn describe(&self) -> Vec<PlaceSummary> {
        let open = self.open.lock();
        let cache =
            open.shared.as_ref().and_then(|shared| shared.cache.as_ref()).map_or(0, RangeCache::bytes);
        let of_one = |client: &Arc<Client>| {
            let (counts, get) =
                (&client.counts, |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed));
            PlaceSummary {
                place: client.root.clone(),
                requests: get(&counts.requests),
                failed: get(&counts.failed),
                bytes_read: get(&counts.bytes_read),
                bytes_written: get(&counts.bytes_written),
                bytes_from_cache: get(&counts.bytes_from_cache),
                last_error: counts.last_error(),
                cache_bytes: cache,
            }
        };
        open.clients.values().map(of_one).collect()
    }

    /// The source at an address of the operator's.
    pub fn source(&self, path: &Path) -> Result<Arc<RemoteSource>> {
        let url = RemoteUrl::parse(&path.to_string_lossy()).map_err(Error::from)?;
        let client = self.client(&url)?;
        Ok(RemoteSource::new(url, client))
    }

    /// The place from which a statement may read a file of this address, and the address.
    ///
    /// # Errors
    /// `Denied`, whatever is or is not there.
    pub fn readable(&self, text: &str) -> std::result::Result<(RemoteUrl, Arc<Client>), FileError> {
        let refused = || FileError::NotOpened { text: text.to_owned() };
        let url = covered(&self.read, text).ok_or_else(refused)?;
        let client = self.client(&url).map_err(|error| FileError::Options {
            detail: error.message().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
        })?;
        Ok((url, client))
    }

    /// Checks an address that COPY names.
    ///
    /// # Errors
    /// `Denied` for what is in none of the places; `Invalid` for what names no file.
    pub fn check_exchange(&self, text: &str) -> Result<RemoteUrl> {
        let denied = || {
            Error::new(ErrorKind::Denied, format!("`{text}` is not in a location that COPY may use"))
                .with_hint("the operator can allow locations with the setting `object_store.exchange`")
        };
        let url = covered(&self.exchange, text).ok_or_else(denied)?;
        let is_place = self.exchange.contains(&url);
        if is_place || text.ends_with('/') || url.location.as_ref().is_empty() {
            return Err(Error::invalid(format!("`{text}` is not the name of a file")));
        }
        Ok(url)
    }

    /// A file that COPY reads. Blocks.
    pub fn exchange_file(&self, text: &str) -> Result<Arc<RemoteFile>> {
        let url = self.check_exchange(text)?;
        let source = RemoteSource::new(url.clone(), self.client(&url)?);
        source.single().map_err(Error::from)?.ok_or_else(|| {
            Error::not_found(format!("`{text}` does not exist")).with_hint("names are case-sensitive")
        })
    }

    /// Begins a file that COPY writes. Blocks.
    pub fn upload(&self, text: &str, overwrite: bool) -> Result<Upload> {
        let url = self.check_exchange(text)?;
        let client = self.client(&url)?;
        Upload::begin(client, url.location.clone(), text, overwrite)
    }

    /// A folder that the server itself keeps files in, with credentials that are the operator's: secrets are for what statements name,
    /// and are kept beside the tables themselves. Nothing is asked of it yet.
    ///
    /// # Errors
    /// `Invalid` for what is no folder of a bucket, and for one that COPY may write to: every user could replace what is in it.
    pub fn folder(&self, text: &str) -> Result<ObjectFolder> {
        let url = RemoteUrl::parse(text).map_err(Error::from)?;
        if url.scheme == Scheme::Web {
            return Err(Error::invalid(format!("cannot write to `{}`", url.root))
                .with_hint("name a bucket, as s3://bucket/prefix"));
        }
        let overlaps = |place: &&RemoteUrl| url.below(place).is_some() || place.below(&url).is_some();
        if let Some(place) = self.exchange.iter().find(overlaps) {
            return Err(Error::invalid(format!(
                "every user may write to `{}/{}`, a location of `object_store.exchange`",
                place.root, place.location
            ))
            .with_hint("name a prefix outside of those of COPY"));
        }
        let options = RemoteOptions { secrets: None, ..self.options.clone() };
        Ok(ObjectFolder::new(self.client_by(&url, &options)?, url.location))
    }

    fn client(&self, url: &RemoteUrl) -> Result<Arc<Client>> {
        self.client_by(url, &self.options)
    }

    fn client_by(&self, url: &RemoteUrl, options: &RemoteOptions) -> Result<Arc<Client>> {
        let mut open = self.open.lock();
        let settings = self.settings_of(url);
        let place = settings.map(|place| place.url.clone()).unwrap_or_default();
        let key = (url.root.clone(), place, options.secrets.is_some());
        if let Some(client) = open.clients.get(&key) {
            return Ok(Arc::clone(client));
        }
        let pool = StorePool::open(url, settings, options)?;
        let shared = self.shared(&mut open)?;
        let client = Arc::new(Client::new(url.root.clone(), pool, shared));
        open.clients.insert(key, Arc::clone(&client));
        Ok(client)
    }

    /// The folder of a table that a catalog names, which is read with the server's own credentials or with those that the catalog
    /// gives for it.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used, `Unsupported` for credentials of a store that nobody vends for.
    pub fn table_folder(&self, url: RemoteUrl, vended: Option<&Arc<Vended>>) -> Result<RemoteFolder> {
        let Some(vended) = vended else {
            let client = self.client(&url)?;
            return Ok(RemoteFolder::named(url, client));
        };
        if url.scheme != Scheme::S3 {
            return Err(Error::unsupported(format!(
                "credentials from a catalog are supported for S3 only, not for `{}`",
                url.root
            ))
            .with_hint(
                "set `credentials = \"own\"` for the catalog, and give the server credentials of the store",
            ));
        }
        let pool = StorePool::vended(&url, self.settings_of(&url), &self.options, vended)?;
        let mut open = self.open.lock();
        let client = Client::new(url.root.clone(), pool, self.shared(&mut open)?);
        Ok(RemoteFolder::named(url, Arc::new(client)))
    }

    /// A client of a web service, on the threads of the stores. What says nothing of its patience has that of the stores.
    pub fn web(
        &self,
        (plain, authority): (bool, Option<&str>),
        timeout: Option<std::time::Duration>,
    ) -> Result<WebClient> {
        let RemoteOptions { request_timeout, max_retries, .. } = self.options;
        let patience = Patience {
            timeout: timeout.unwrap_or(self.options.timeout),
            request_timeout,
            connect_timeout: store_builder::CONNECT_TIMEOUT,
            max_retries,
        };
        let mut open = self.open.lock();
        WebClient::new(self.shared(&mut open)?, patience, (plain, authority))
    }

    fn shared(&self, open: &mut Open) -> Result<Arc<Shared>> {
        Ok(match &open.shared {
            Some(shared) => Arc::clone(shared),
            None => Arc::clone(open.shared.insert(Arc::new(self.start()?))),
        })
    }

    fn start(&self) -> Result<Shared> {
        let io = Io::start().map_err(|error| {
            Error::new(ErrorKind::Unavailable, "cannot start the threads for object stores")
                .with_source(error)
        })?;
        let cache = match &self.options.cache_folder {
            Some(folder) if self.options.cache_bytes > 0 => {
                let opened = RangeCache::open(folder, self.options.cache_bytes);
                Some(opened.map_err(|error| {
                    Error::invalid(format!(
                        "the cache of object stores `{}` cannot be used: {error}",
                        folder.display()
                    ))
                    .with_hint("correct `object_store.cache_folder`, or set `object_store.cache_bytes` to 0")
                })?)
            }
            _ => None,
        };
        let RemoteOptions { timeout, refresh, max_retries, .. } = self.options;
        Ok(Shared { io, cache, timeout, refresh, max_retries })
    }

    /// The most exact entry that is about an address.
    fn settings_of(&self, url: &RemoteUrl) -> Option<&PlaceSettings> {
        let about =
            |place: &&PlaceSettings| RemoteUrl::parse(&place.url).is_ok_and(|it| url.below(&it).is_some());
        self.options.places.iter().filter(about).max_by_key(|place| place.url.trim_end_matches('/').len())
    }
}

/// The address, if it lies below one of the places and has no hidden part there.
fn covered(places: &[RemoteUrl], text: &str) -> Option<RemoteUrl> {
    let url = RemoteUrl::parse(text).ok()?;
    let below = places.iter().find_map(|place| url.below(place))?;
    let hidden = below.split('/').any(|part| part.starts_with('.'));
    (!hidden).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_only_what_is_opened() {
        let options = RemoteOptions {
            read: vec!["s3://bucket/open".to_owned()],
            exchange: vec!["s3://bucket/exchange/".to_owned()],
            ..RemoteOptions::default()
        };
        let remotes = Remotes::new(options).unwrap();
        for refused in [
            "s3://bucket/closed/x.csv",
            "s3://bucket/opened/x.csv",
            "s3://bucket/open/../closed/x.csv",
            "s3://bucket/open/.hidden/x.csv",
            "s3://other/open/x.csv",
            "http://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "s3://bucket/exchange/x.csv",
        ] {
            assert!(remotes.readable(refused).is_err(), "{refused}");
        }
        let kind = |text: &str| remotes.check_exchange(text).unwrap_err().kind();
        assert_eq!(kind("s3://bucket/open/x.csv"), ErrorKind::Denied);
        assert_eq!(kind("s3://bucket/exchange/"), ErrorKind::Invalid);
        assert!(remotes.check_exchange("s3://bucket/exchange/a/x.csv").is_ok());
        assert!(
            Remotes::new(RemoteOptions {
                exchange: vec!["http://h/x".to_owned()],
                ..RemoteOptions::default()
            })
            .is_err()
        );
    }
}
