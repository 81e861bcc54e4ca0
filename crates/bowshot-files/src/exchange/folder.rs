//! The folder, and which paths lead into it.

use super::copy_from;
use super::copy_to::Place;
use super::{FileRows, FileWriter, Shape, Wanted};
use arrow::datatypes::SchemaRef;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::data_file::{DataFile, HandlePool};
use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::{Remotes, is_remote};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The exchange folder.
#[derive(Debug)]
pub struct ExchangeFolder {
    folder: Option<Folder>,
    /// Addresses in object stores, of which these decide by themselves.
    remotes: Option<Arc<Remotes>>,
}

#[derive(Debug)]
struct Folder {
    /// As the operator has written it, for paths that begin with it.
    named: PathBuf,
    /// Without links.
    root: PathBuf,
}

impl ExchangeFolder {
    /// The folder at a path.
    ///
    /// # Errors
    /// `Invalid` when it is no folder that can be looked into.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { folder: Some(Folder::open(path)?), remotes: None })
    }

    /// The folder, if one is named, and the places in object stores, if there are any; `None` where nothing is opened.
    ///
    /// # Errors
    /// As [`ExchangeFolder::open`].
    pub fn of(path: Option<&Path>, remotes: Option<Arc<Remotes>>) -> Result<Option<Self>> {
        let folder = path.map(Folder::open).transpose()?;
        let remotes = remotes.filter(|remotes| remotes.has_exchange());
        Ok((folder.is_some() || remotes.is_some()).then_some(Self { folder, remotes }))
    }

    /// Checks what can be checked of a path before it is used.
    ///
    /// # Errors
    /// `Denied` for a path that leads out of the folder; `Invalid` for one that names no file.
    pub fn check(&self, path: &str) -> Result<()> {
        match self.stores(path)? {
            Some(remotes) => remotes.check_exchange(path).map(drop),
            None => self.folder()?.relative(path).map(drop),
        }
    }

    /// Begins a file, which is there under its name once it is finished.
    ///
    /// # Errors
    /// As [`ExchangeFolder::check`]; `AlreadyExists` without `overwrite`; `Unsupported` for columns that the format
    /// has no form for.
    pub fn write(&self, path: &str, shape: Shape, schema: &SchemaRef, overwrite: bool) -> Result<FileWriter> {
        match self.stores(path)? {
            Some(remotes) => {
                shape.check(schema)?;
                FileWriter::upload(remotes.upload(path, overwrite)?, path, shape, schema)
            }
            None => self.folder()?.write(path, shape, schema, overwrite),
        }
    }

    /// Opens a file whose rows go into the wanted columns.
    ///
    /// # Errors
    /// As [`ExchangeFolder::check`]; `NotFound` without such a file, or without a column that is asked for by name.
    pub fn read(
        &self,
        path: &str,
        (shape, options): (Shape, &ReadOptions),
        wanted: &Wanted,
    ) -> Result<FileRows> {
        match self.stores(path)? {
            Some(remotes) => {
                let file = DataFile::remote(remotes.exchange_file(path)?, HandlePool::new(1));
                FileRows::of(file, shape, options, wanted)
            }
            None => self.folder()?.read(path, (shape, options), wanted),
        }
    }

    /// All bytes of a file that is no table.
    ///
    /// # Errors
    /// As [`ExchangeFolder::read`]; `LimitReached` for more than `most` bytes.
    pub fn contents(&self, path: &str, most: usize) -> Result<Vec<u8>> {
        if self.stores(path)?.is_some() {
            return Err(Error::unsupported("files that are no tables are not read from object stores")
                .with_hint("put the file into the exchange folder of the server"));
        }
        self.folder()?.contents(path, most)
    }

    /// The object stores, if a path is an address in one.
    fn stores(&self, path: &str) -> Result<Option<&Remotes>> {
        match &self.remotes {
            _ if !is_remote(Path::new(path)) => Ok(None),
            Some(remotes) => Ok(Some(remotes)),
            None => {
                Err(Error::new(ErrorKind::Denied, format!("`{path}` is not in a location that COPY may use"))
                    .with_hint("the operator can allow locations with the setting `object_store.exchange`"))
            }
        }
    }

    fn folder(&self) -> Result<&Folder> {
        self.folder.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Denied, "COPY may use object store locations on this server, but no folder")
                .with_hint("name a file in one of them, as s3://bucket/exchange/x.parquet")
        })
    }
}

impl Folder {
    fn open(path: &Path) -> Result<Self> {
        let wrong = |error: io::Error| {
            Error::invalid(format!("the exchange folder `{}` cannot be used: {error}", path.display()))
                .with_hint("make the folder, or correct `storage.exchange_folder`")
        };
        let root = path.canonicalize().map_err(wrong)?;
        std::fs::read_dir(&root).map_err(wrong)?;
        Ok(Self { named: path.to_path_buf(), root })
    }

    fn write(&self, path: &str, shape: Shape, schema: &SchemaRef, overwrite: bool) -> Result<FileWriter> {
        let relative = self.relative(path)?;
        let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(no_file(path));
        };
        shape.check(schema)?;
        let folder = self.resolved(parent, path)?;
        FileWriter::create(&Place { folder: &folder, name, path }, shape, schema, overwrite)
    }

    fn read(&self, path: &str, (shape, options): (Shape, &ReadOptions), wanted: &Wanted) -> Result<FileRows> {
        let relative = self.relative(path)?;
        let file = self.resolved(&relative, path)?;
        FileRows::open(&file, shape, options, wanted)
    }

    fn contents(&self, path: &str, most: usize) -> Result<Vec<u8>> {
        let relative = self.relative(path)?;
        copy_from::contents(&self.resolved(&relative, path)?, most)
    }

    /// The path below the folder, by its text alone.
    fn relative(&self, path: &str) -> Result<PathBuf> {
        if path.contains("://") {
            return Err(Error::unsupported(format!("`{path}` is not a valid file path"))
                .with_hint("name a file in the exchange folder of the server"));
        }
        let whole = Path::new(path);
        let below = if whole.is_absolute() {
            let stripped = whole.strip_prefix(&self.named).or_else(|_| whole.strip_prefix(&self.root));
            stripped.map_err(|_| outside(path))?
        } else {
            whole
        };
        let mut relative = PathBuf::new();
        for component in below.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) if name.as_encoded_bytes().starts_with(b".") => {
                    return Err(Error::new(
                        ErrorKind::Denied,
                        format!("`{path}` is a hidden file or folder"),
                    )
                    .with_hint("use names that do not begin with a dot"));
                }
                Component::Normal(name) => relative.push(name),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside(path));
                }
            }
        }
        if relative.as_os_str().is_empty() || path.ends_with('/') || path.contains('\0') {
            return Err(no_file(path));
        }
        Ok(relative)
    }

    /// Where a path below the folder leads, links followed. Part by part, so that a link that leads out is never asked
    /// what is behind it: the answer would tell.
    fn resolved(&self, relative: &Path, path: &str) -> Result<PathBuf> {
        let mut resolved = self.root.clone();
        for part in relative.components() {
            let next = resolved.join(part);
            resolved = next.canonicalize().map_err(|error| match error.kind() {
                // Whether what a link names is there, is told only of what is inside.
                io::ErrorKind::NotFound if next.is_symlink() => outside(path),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_there(relative),
                _ => Error::new(ErrorKind::Unavailable, format!("`{path}` cannot be used: {error}"))
                    .with_hint("check the permissions of the exchange folder"),
            })?;
            if !resolved.starts_with(&self.root) {
                return Err(outside(path));
            }
        }
        Ok(resolved)
    }
}

fn outside(path: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("`{path}` is not in the exchange folder"))
        .with_hint("name a file relative to the folder that `storage.exchange_folder` names, without `..`")
}

fn no_file(path: &str) -> Error {
    Error::invalid(format!("`{path}` names no file"))
}

fn not_there(relative: &Path) -> Error {
    Error::not_found(format!("`{}` is not in the exchange folder", relative.display()))
        .with_hint("folders are not made; names are case-sensitive")
}
