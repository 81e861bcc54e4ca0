//! One Iceberg table, looked at again when its metadata file is another one.

use super::super::columns::{LakeColumn, Source, sources};
use super::super::deletes::{self, Deleted, DeletedValues};
use super::super::table::{Group, LakeFile, LakeSnapshot, LakeTable, file_schema};
use super::manifest::{self, Content, Entry};
use super::metadata::{self, TableMetadata};
use super::{paths, types};
use crate::format::{Compression, Format, Kind};
use crate::listing::FoundFile;
use crate::snapshot::{KnownFiles, SnapshotFile, Workshop, look_at};
use crate::version::{FileIdentity, TableVersion};
use crate::{Error, ReadOptions};
use arrow::datatypes::{Field, Schema};
use datafusion::common::ScalarValue;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// See the module.
#[derive(Debug)]
pub(crate) struct IcebergFolder {
    path: PathBuf,
    workshop: Arc<Workshop>,
    max_files: usize,
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    loaded: Option<(Current, Arc<LakeSnapshot>)>,
    known: KnownFiles,
}

/// The metadata file that is current.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Current {
    path: PathBuf,
    identity: FileIdentity,
}

impl IcebergFolder {
    /// The table has at most `max_files` files.
    pub(crate) fn new(path: PathBuf, workshop: Arc<Workshop>, max_files: usize) -> Self {
        Self { path, workshop, max_files, state: Arc::default() }
    }

    /// The table of this name as its metadata have it now.
    ///
    /// # Errors
    /// When the metadata or what they name cannot be read, or ask for what this reader does not know.
    pub(crate) async fn table(&self, name: &str) -> Result<LakeTable, Error> {
        let (version, snapshot) = self.look().await?;
        let store = Arc::clone(&self.workshop.sources.store);
        Ok(LakeTable { name: name.to_owned(), snapshot, version, store })
    }

    /// Number of the data files.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) async fn files(&self) -> Result<usize, Error> {
        Ok(self.look().await?.1.files)
    }

    async fn look(&self) -> Result<(Option<TableVersion>, Arc<LakeSnapshot>), Error> {
        // Who waits holds no thread.
        let mut state = Arc::clone(&self.state).lock_owned().await;
        let (path, workshop, max_files) = (self.path.clone(), Arc::clone(&self.workshop), self.max_files);
        let looking = tokio::task::spawn_blocking(move || look(&path, &workshop, max_files, &mut state));
        let interrupted = |error: tokio::task::JoinError| Error::Interrupted {
            path: self.path.clone(),
            detail: error.to_string(),
        };
        looking.await.map_err(interrupted)?
    }
}

type Looked = (Option<TableVersion>, Arc<LakeSnapshot>);

fn look(path: &Path, workshop: &Workshop, max_files: usize, state: &mut State) -> Result<Looked, Error> {
    let root = fs::canonicalize(path).map_err(|error| Error::io(path, error))?;
    let (current, settled) = current(&root)?;
    let version = || {
        TableVersion::of(
            std::iter::once((current.path.as_path(), &current.identity)),
            &ReadOptions::default(),
        )
    };
    if let Some((known, snapshot)) = &state.loaded
        && *known == current
    {
        return Ok((settled.then(version), Arc::clone(snapshot)));
    }
    let metadata = TableMetadata::read(&current.path)?;
    let loading = Loading { root: &root, metadata: &metadata, file: &current.path, workshop, max_files };
    let snapshot = Arc::new(loading.snapshot(&mut state.known)?);
    let version = settled.then(version);
    state.loaded = Some((current, Arc::clone(&snapshot)));
    Ok((version, snapshot))
}

/// The current metadata file, and whether it was written so long ago that every later change shows.
fn current(folder: &Path) -> Result<(Current, bool), Error> {
    let path = metadata::newest(folder)?;
    let found = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    let mut identity = FileIdentity::new(&found, SystemTime::now());
    let settled = std::mem::replace(&mut identity.settled, true);
    Ok((Current { path, identity }, settled))
}

/// What reading one state needs.
struct Loading<'a> {
    root: &'a Path,
    metadata: &'a TableMetadata,
    /// The metadata file, which errors name.
    file: &'a Path,
    workshop: &'a Workshop,
    max_files: usize,
}

impl Loading<'_> {
    fn corrupt(&self, detail: impl ToString) -> Error {
        Error::corrupt(self.file, detail)
    }

    fn unsupported(&self, detail: String) -> Error {
        Error::Unsupported { path: self.file.to_path_buf(), detail }
    }

    fn local(&self, name: &str) -> Result<PathBuf, Error> {
        paths::local(name, &self.metadata.location, self.root).map_err(|outside| self.corrupt(outside))
    }

    fn snapshot(&self, known: &mut KnownFiles) -> Result<LakeSnapshot, Error> {
        let fields = self.metadata.fields().ok_or_else(|| self.corrupt("its current schema is not there"))?;
        let columns = types::columns(fields).map_err(|unknown| self.unsupported(unknown))?;
        let entries = self.entries()?;
        let (data, deletes): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.content == Content::Data);
        let mut deleted = self.deletes(&deletes, &columns)?;
        let groups = self.groups(&data, &columns, &mut deleted, known)?;
        let columns = nullable_where_lacking(columns, &groups);
        let schema =
            Arc::new(Schema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>()));
        Ok(LakeSnapshot { columns, schema, groups, files: data.len(), lease: Mutex::default() })
    }

    /// All files that count.
    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let Some(snapshot) = self.metadata.current().map_err(|missing| self.corrupt(missing))? else {
            return Ok(Vec::new());
        };
        let pool = &self.workshop.pool;
        let manifests = match &snapshot.manifest_list {
            Some(list) => manifest::list(&self.local(list)?, pool, self.max_files)?,
            None => {
                let named = snapshot.manifests.iter();
                named.map(|path| manifest::Manifest { path: path.clone(), spec: 0, sequence: 0 }).collect()
            }
        };
        let (mut entries, mut named) = (Vec::new(), HashSet::new());
        for manifest in &manifests {
            if !named.insert(&manifest.path) {
                return Err(self.corrupt(format!("its manifest `{}` is named twice", manifest.path)));
            }
            let room = self.max_files.saturating_sub(entries.len());
            entries.extend(manifest::entries(&self.local(&manifest.path)?, manifest, pool, room)?);
        }
        match entries.iter().find(|entry| !entry.format.eq_ignore_ascii_case("parquet")) {
            Some(other) => Err(self.unsupported(format!(
                "`{}` of the format {}, of which Parquet is read",
                other.path, other.format
            ))),
            None => Ok(entries),
        }
    }

    fn deletes(&self, entries: &[Entry], columns: &[LakeColumn]) -> Result<Deleted, Error> {
        let mut deleted = Deleted::default();
        for entry in entries {
            let file = self.found(entry)?.data(&self.workshop.pool);
            if entry.content == Content::DeletedPlaces {
                deleted.places.read(&file, entry.sequence, &mut deleted.count)?;
                continue;
            }
            let gone = deletes::values(&file, &entry.equality, columns, &mut deleted.count)?;
            // Fields that were dropped from a specification of version 1 are void.
            let of_all = self.metadata.partitions(entry.spec).iter().all(|field| field.transform == "void");
            let partition = (!of_all).then(|| (entry.spec, entry.partition.clone()));
            deleted.values.push(DeletedValues { sequence: entry.sequence, partition, gone });
        }
        Ok(deleted)
    }

    /// The data files, by how they are read.
    fn groups(
        &self,
        entries: &[Entry],
        columns: &[LakeColumn],
        deleted: &mut Deleted,
        known: &mut KnownFiles,
    ) -> Result<Vec<Group>, Error> {
        let found = entries.iter().map(|entry| self.found(entry)).collect::<Result<Vec<_>, Error>>()?;
        let looked_at = look_at(&found, known, (&ReadOptions::default(), self.workshop));
        let kept = looked_at.iter().flatten();
        *known = kept
            .map(|(data, facts)| (data.path().to_path_buf(), (Arc::clone(data), Arc::clone(facts))))
            .collect();
        let names = self.metadata.names();
        let mut groups: Vec<Group> = Vec::new();
        let mut places_of: HashMap<(Vec<Source>, Vec<usize>), usize> = HashMap::new();
        let mut gone_from: Vec<Vec<usize>> = Vec::new();
        for (looked_at, entry) in looked_at.into_iter().zip(entries) {
            let (data, facts) = looked_at?;
            let sources =
                sources(columns, &facts.columns, &self.constants(entry, columns), &names, data.path())?;
            let gone = deleted_by(entry, &deleted.values);
            let place = *places_of.entry((sources.clone(), gone.clone())).or_insert_with(|| {
                let file_schema = file_schema(columns, &sources);
                let planned = Mutex::default();
                groups.push(Group { sources, file_schema, files: Vec::new(), gone: Vec::new(), planned });
                gone_from.push(gone);
                groups.len() - 1
            });
            let Some(group) = groups.get_mut(place) else { continue };
            let left = deleted.places.left(&entry.path, entry.sequence, facts.rows.unwrap_or(0));
            let file = SnapshotFile::of_parquet(data, facts, &group.file_schema, Vec::new());
            group.files.push(LakeFile { file, left });
        }
        for (group, places) in groups.iter_mut().zip(gone_from) {
            let values: Vec<&DeletedValues> =
                places.iter().filter_map(|place| deleted.values.get(*place)).collect();
            group.gone = deletes::united(&values, &mut deleted.count, self.file)?;
        }
        Ok(groups)
    }

    fn found(&self, entry: &Entry) -> Result<FoundFile, Error> {
        let path = self.local(&entry.path)?;
        let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
        if !metadata.is_file() {
            return Err(Error::NotRegular { path });
        }
        let kind = Kind {
            format: Format::Parquet,
            compression: Compression::None,
            tabs: false,
            stem: String::new(),
        };
        Ok(FoundFile {
            shown: path.display().to_string(),
            path,
            folders: Vec::new(),
            kind,
            identity: FileIdentity::new(&metadata, SystemTime::now()),
            remote: None,
        })
    }

    /// Values that a file need not hold, because all its rows have the same: those that files are grouped by unchanged.
    fn constants(&self, entry: &Entry, columns: &[LakeColumn]) -> HashMap<i32, ScalarValue> {
        let fields = self.metadata.partitions(entry.spec).iter().zip(&entry.partition);
        let constant = |(field, value): (&metadata::PartitionField, &ScalarValue)| {
            let number = field.source_id.filter(|_| field.transform == "identity")?;
            let column = columns.iter().find(|column| column.number == number)?;
            Some((number, value.cast_to(column.field.data_type()).ok()?))
        };
        fields.filter_map(constant).collect()
    }
}

/// Places of the deleted values that a data file's rows are compared with.
fn deleted_by(file: &Entry, deleted: &[DeletedValues]) -> Vec<usize> {
    let is_meant = |deleted: &DeletedValues| {
        let partition = deleted.partition.as_ref();
        deleted.sequence > file.sequence
            && partition.is_none_or(|(spec, values)| *spec == file.spec && *values == file.partition)
    };
    deleted.iter().enumerate().filter(|(_, deleted)| is_meant(deleted)).map(|(place, _)| place).collect()
}

/// Columns that a file lacks, so that its rows have NULL there, may be NULL whatever the metadata say.
fn nullable_where_lacking(columns: Vec<LakeColumn>, groups: &[Group]) -> Vec<LakeColumn> {
    let lacks = |place: usize| {
        let source = |group: &Group| group.sources.get(place).cloned();
        groups
            .iter()
            .filter_map(source)
            .any(|source| matches!(source, Source::Constant(value) if value.is_null()))
    };
    let of_one = |(place, column): (usize, LakeColumn)| match lacks(place) && !column.field.is_nullable() {
        true => {
            let field: Field = column.field.as_ref().clone().with_nullable(true);
            LakeColumn { field: Arc::new(field), ..column }
        }
        false => column,
    };
    columns.into_iter().enumerate().map(of_one).collect()
}
