//! A folder of an object store, for tables whose own metadata say which files count: what one listing has shown of it, and
//! objects that are asked for by their names where no listing shows them. What is read stays what it was when it was found.

use super::client::Client;
use super::fault::Fault;
use super::file::RemoteFile;
use super::folder::ObjectFolder;
use super::listing::{Listing, join};
use super::source::{RemoteSource, RemoteTable};
use super::url::RemoteUrl;
use crate::Error;
use crate::secrets::InForce;
use futures::StreamExt;
use object_store::ObjectMeta;
use object_store::path::Path as Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Objects that are asked for at once.
const PARALLEL_HEADS: usize = 32;

/// The folder of a table over time.
#[derive(Debug, Clone)]
pub struct RemoteFolder {
    source: Arc<RemoteSource>,
    /// Its name in the bucket.
    location: String,
    /// Whether it is listed; of others each object is asked for.
    is_listed: bool,
    /// Set when something that was found is another content by now.
    spoiled: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
pub struct RemoteView {
    folder: RemoteFolder,
    listing: Option<Arc<Listing>>,
    /// Whether something of an earlier view had changed, so that nothing that was made of it is to be used.
    pub is_renewed: bool,
}

impl RemoteFolder {
    /// The folder of a table of a source, which lists it.
    pub fn of(table: &RemoteTable) -> Self {
        let (source, location) = (Arc::clone(&table.source), table.location.clone());
        Self { source, location, is_listed: true, spoiled: Arc::default() }
    }

    /// A folder that somebody else has named, and that is not listed.
    pub(super) fn named(url: RemoteUrl, client: Arc<Client>) -> Self {
        let location = url.location.as_ref().to_owned();
        let source = RemoteSource::new(url, client);
        Self { source, location, is_listed: false, spoiled: Arc::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.source.url.shown(&self.location)
    }

    /// The same folder, to be written to.
    pub fn objects(&self) -> Result<ObjectFolder, Error> {
        let base = Location::parse(&self.location).map_err(|_| Fault::OddName.at(&self.path()))?;
        Ok(ObjectFolder::new(Arc::clone(&self.source.client), base))
    }

    /// All secrets that are in force, if the server keeps some and they count here.
    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.source.client.pool.in_force()
    }

    /// Has the next view ask the store again, and forget what was found before.
    pub fn spoil(&self) {
        self.spoiled.store(true, Ordering::Release);
    }

    /// The folder as it is now. Blocks while the store is asked.
    pub fn view(&self) -> Result<RemoteView, Error> {
        let is_renewed = self.spoiled.swap(false, Ordering::AcqRel);
        if is_renewed {
            self.source.mark_stale();
        }
        let listing = match self.is_listed {
            true => Some(self.source.listing().map_err(|fault| fault.at(&self.path()))?),
            false => None,
        };
        Ok(RemoteView { folder: self.clone(), listing, is_renewed })
    }
}

impl RemoteView {
    /// Where an object of the folder is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.source.url.shown(&self.location(name))
    }

    /// The same, with each object to be asked for.
    pub fn without_listing(&self) -> Self {
        Self { listing: None, ..self.clone() }
    }

    /// Whether a listing says what is there.
    pub fn is_listed(&self) -> bool {
        self.listing.is_some()
    }

    /// The name from the folder on, of an address as others write it.
    pub fn name_of(&self, address: &str) -> Option<String> {
        let other = RemoteUrl::parse(address).ok()?;
        let here = &self.folder.source.url;
        if other.scheme != here.scheme || other.authority != here.authority {
            return None;
        }
        let (name, folder) = (other.location.as_ref(), self.folder.location.as_str());
        match folder.is_empty() {
            true => Some(name.to_owned()),
            false => name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned),
        }
    }

    /// Names directly in a folder below, with those that are hidden.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Some(listing) = &self.listing else { return Vec::new() };
        let location = self.location(folder);
        let below = listing.below(&location);
        below.filter(|(name, _)| !name.contains('/')).map(|(name, _)| name.to_owned()).collect()
    }

    /// All objects that are listed, by their names from the folder on.
    pub fn objects(&self) -> Vec<(String, ObjectMeta)> {
        let Some(listing) = &self.listing else { return Vec::new() };
        let below = listing.below(&self.folder.location);
        below.map(|(name, object)| (name.to_owned(), object.clone())).collect()
    }

    /// What an object is that was found.
    pub fn file(&self, object: &ObjectMeta) -> Arc<RemoteFile> {
        let path = self.folder.source.url.shown(object.location.as_ref());
        RemoteFile::new(&self.folder.source.client, object, path, &self.folder.spoiled)
    }

    /// The objects of these names, in their order. Blocks while the store is asked for those that are not listed.
    pub fn files(&self, names: &[&str]) -> Vec<Result<Arc<RemoteFile>, Error>> {
        let open: Vec<(usize, Location)> = names
            .iter()
            .enumerate()
            .filter(|(_, name)| self.listed(name).is_none())
            .filter_map(|(place, name)| Some((place, Location::parse(self.location(name)).ok()?)))
            .collect();
        let mut asked = self.asked(open).into_iter().peekable();
        let of_name = |(place, name): (usize, &&str)| {
            if let Some(object) = self.listed(name) {
                return Ok(self.file(object));
            }
            match asked.next_if(|(of, _)| *of == place) {
                Some((_, Ok(object))) => Ok(self.file(&object)),
                Some((_, Err(fault))) => Err(fault.at(&self.path(name))),
                None => Err(Error::corrupt(&self.path(name), "invalid name of an object")),
            }
        };
        names.iter().enumerate().map(of_name).collect()
    }

    /// The same of one object, for asynchronous callers.
    pub async fn head(&self, name: &str) -> Result<ObjectMeta, Error> {
        let location = Location::parse(self.location(name))
            .map_err(|_| Error::corrupt(&self.path(name), "invalid name of an object"))?;
        let client = Arc::clone(&self.folder.source.client);
        let asked = self.folder.source.client.shared.io.spawn(async move { client.head(&location).await });
        asked.done().await.and_then(|answer| answer).map_err(|fault| fault.at(&self.path(name)))
    }

    fn listed(&self, name: &str) -> Option<&ObjectMeta> {
        self.listing.as_ref()?.object(&self.location(name))
    }

    /// What the store says of objects, in their order.
    fn asked(&self, open: Vec<(usize, Location)>) -> Vec<(usize, Result<ObjectMeta, Fault>)> {
        if open.is_empty() {
            return Vec::new();
        }
        let places: Vec<usize> = open.iter().map(|(place, _)| *place).collect();
        let client = Arc::clone(&self.folder.source.client);
        let asking = async move {
            let ask = |(place, location): (usize, Location)| {
                let client = Arc::clone(&client);
                async move { (place, client.head(&location).await) }
            };
            futures::stream::iter(open).map(ask).buffered(PARALLEL_HEADS).collect::<Vec<_>>().await
        };
        match self.folder.source.client.shared.io.wait(asking) {
            Ok(answers) => answers,
            Err(fault) => places.into_iter().map(|place| (place, Err(fault.clone()))).collect(),
        }
    }

    fn location(&self, name: &str) -> String {
        if name.is_empty() { self.folder.location.clone() } else { join(&self.folder.location, name) }
    }
}
