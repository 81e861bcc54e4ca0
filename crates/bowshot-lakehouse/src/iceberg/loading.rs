//! One state of a table: from its manifests to groups of files that are read alike.

use super::super::columns::{LakeColumn, Source, has_numbers, sources};
use super::super::deletes::{self, Deleted, DeletedValues};
use super::super::row_lineage::{self, RowLineage};
use super::super::table::{Group, LakeFile, LakeSnapshot, file_schema};
use super::manifest::{self, Content, Entry, Manifest};
use super::metadata::{self, Snapshot, TableMetadata};
use super::{name_mapping, partition, paths, types};
use crate::table_folder::FolderView;
use arrow::datatypes::{Field, Schema};
use bowshot_formats::data_file::DataFile;
use bowshot_formats::inspection::{KnownFiles, Workshop, look_at};
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::snapshot_file::SnapshotFile;
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Manifests that are read at once where that means to wait for a network.
const PARALLEL_MANIFESTS: usize = 16;

pub(super) struct Loading<'a> {
    pub(super) folder: &'a FolderView,
    pub(super) metadata: &'a TableMetadata,
    /// The state that is meant, where it is not the current one.
    pub(super) earlier: Option<&'a Snapshot>,
    /// The metadata file, which errors name.
    pub(super) file: &'a Path,
    pub(super) workshop: &'a Workshop,
    pub(super) max_files: usize,
}

struct Wanted<'a> {
    columns: &'a [LakeColumn],
    /// Nested fields whose values of before they were added are not NULL.
    with_default: HashSet<i32>,
}

impl Loading<'_> {
    fn corrupt(&self, detail: impl ToString) -> Error {
        Error::corrupt(self.file, detail)
    }

    fn unsupported(&self, detail: String) -> Error {
        Error::Unsupported { path: self.file.to_path_buf(), detail }
    }

    fn below(&self, name: &str) -> Result<String, Error> {
        paths::below(name, &self.metadata.location, self.folder).map_err(|outside| self.corrupt(outside))
    }

    pub(super) fn snapshot(&self, known: &mut KnownFiles) -> Result<LakeSnapshot, Error> {
        let fields = self.metadata.fields(self.earlier);
        let fields = fields.ok_or_else(|| self.corrupt("the schema of its snapshot does not exist"))?;
        let columns = types::columns(fields).map_err(|unknown| self.unsupported(unknown))?;
        let entries = self.entries()?.into_iter().map(|entry| self.with_partition(entry, &columns));
        let entries = entries.collect::<Result<Vec<Entry>, Error>>()?;
        let (data, deletes): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.content == Content::Data);
        let mut deleted = self.deletes(&deletes, &columns)?;
        let lineage = self.has_lineage().then(row_lineage::table_columns);
        let columns: Vec<LakeColumn> = columns.into_iter().chain(lineage.into_iter().flatten()).collect();
        let wanted = Wanted { columns: &columns, with_default: types::with_default(fields) };
        let groups = self.groups(&data, &wanted, &mut deleted, known)?;
        let columns = nullable_where_lacking(columns, &groups);
        let seen = columns.iter().take(fields.len()).map(|column| Arc::clone(&column.field));
        let schema = Arc::new(Schema::new(seen.collect::<Vec<_>>()));
        Ok(LakeSnapshot {
            columns,
            schema,
            groups,
            files: data.len(),
            rows: Vec::new(),
            lease: Mutex::default(),
        })
    }

    fn has_lineage(&self) -> bool {
        self.metadata.format_version >= 3
    }

    fn entries(&self) -> Result<Vec<Entry>, Error> {
        let current = || self.metadata.current().map_err(|missing| self.corrupt(missing));
        let state = if self.earlier.is_some() { self.earlier } else { current()? };
        let Some(state) = state else { return Ok(Vec::new()) };
        let manifests = match &state.manifest_list {
            Some(list) => {
                let list = self
                    .open(&[list])?
                    .pop()
                    .ok_or_else(|| self.corrupt("its manifest list does not exist"))?;
                manifest::list(&list, self.max_files)?
            }
            None => {
                let named = state.manifests.iter();
                named
                    .map(|path| Manifest { path: path.clone(), spec: 0, sequence: 0, first_row: None })
                    .collect()
            }
        };
        let (mut entries, mut named) = (Vec::new(), HashSet::new());
        if let Some(twice) = manifests.iter().find(|manifest| !named.insert(&manifest.path)) {
            return Err(self.corrupt(format!("its manifest `{}` is listed twice", twice.path)));
        }
        let at_once = if matches!(self.folder, FolderView::Remote(_)) { PARALLEL_MANIFESTS } else { 1 };
        for some in manifests.chunks(at_once) {
            for read in self.entries_of(some, self.max_files.saturating_sub(entries.len()))? {
                entries.extend(read);
            }
            if entries.len() > self.max_files {
                let path = self.folder.path("");
                return Err(Error::TooManyFiles { path, limit: self.max_files });
            }
        }
        match entries.iter().find(|entry| !is_read(entry)) {
            Some(other) => Err(self.unsupported(format!(
                "`{}` in the format {}; only Parquet is supported, and Puffin for deletion vectors",
                other.path, other.format
            ))),
            None => Ok(entries),
        }
    }

    /// The files of some manifests, each of which may have so many, read at the same time.
    fn entries_of(&self, manifests: &[Manifest], most: usize) -> Result<Vec<Vec<Entry>>, Error> {
        let names: Vec<&String> = manifests.iter().map(|manifest| &manifest.path).collect();
        let files = self.open(&names)?;
        let read = |(file, manifest): (&Arc<DataFile>, &Manifest)| manifest::entries(file, manifest, most);
        if files.len() < 2 {
            return files.iter().zip(manifests).map(read).collect();
        }
        std::thread::scope(|scope| {
            let pairs = files.iter().zip(manifests);
            let reading: Vec<_> = pairs.map(|pair| scope.spawn(move || read(pair))).collect();
            let broken = |_| Err(self.corrupt("its manifests cannot be decoded"));
            reading.into_iter().map(|thread| thread.join().unwrap_or_else(broken)).collect()
        })
    }

    fn open(&self, names: &[&String]) -> Result<Vec<Arc<DataFile>>, Error> {
        let below = names.iter().map(|name| self.below(name)).collect::<Result<Vec<String>, Error>>()?;
        let below: Vec<&str> = below.iter().map(String::as_str).collect();
        let found = self.folder.find_all(&below).into_iter();
        found.map(|file| Ok(file?.data(&self.workshop.pool))).collect()
    }

    fn deletes(&self, entries: &[Entry], columns: &[LakeColumn]) -> Result<Deleted, Error> {
        let mut deleted = Deleted::default();
        let names: Vec<&String> = entries.iter().map(|entry| &entry.path).collect();
        for (entry, file) in entries.iter().zip(self.open(&names)?) {
            if let Some(vector) = &entry.vector {
                let range = u64::try_from(vector.offset).ok().zip(u64::try_from(vector.size).ok());
                let range = range.and_then(|(offset, size)| Some(offset..offset.checked_add(size)?));
                let range = range.ok_or_else(|| self.corrupt("a deletion vector has no location"))?;
                let of = (vector.of.as_str(), entry.sequence);
                deleted.places.read_vector((&file, range), of, &mut deleted.count)?;
                continue;
            }
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

    fn with_partition(&self, entry: Entry, columns: &[LakeColumn]) -> Result<Entry, Error> {
        let fields = self.metadata.partitions(entry.spec);
        let partition = partition::present(entry.partition, fields, columns);
        let partition = partition.map_err(|detail| self.corrupt(format!("`{}`: {detail}", entry.path)))?;
        Ok(Entry { partition, ..entry })
    }

    fn groups(
        &self,
        entries: &[Entry],
        wanted: &Wanted<'_>,
        deleted: &mut Deleted,
        known: &mut KnownFiles,
    ) -> Result<Vec<Group>, Error> {
        let names = entries.iter().map(|entry| self.below(&entry.path)).collect::<Result<Vec<_>, Error>>()?;
        let found = self.folder.find_unless_known(&names, known)?;
        let looked_at = look_at(&found, known, (&ReadOptions::default(), self.workshop));
        let (names, columns) = (self.metadata.names(), wanted.columns);
        let mut groups: Vec<Group> = Vec::new();
        let mut places_of: HashMap<(Vec<Source>, Vec<usize>), usize> = HashMap::new();
        let mut gone_from: Vec<Vec<usize>> = Vec::new();
        for (looked_at, entry) in looked_at.into_iter().zip(entries) {
            let (data, facts) = looked_at?;
            let file = match has_numbers(&facts.columns) {
                true => Cow::Borrowed(facts.columns.as_ref()),
                false => Cow::Owned(name_mapping::by_name(&facts.columns, &names)),
            };
            let constants = self.constants(entry);
            let sources = sources(columns, &file, &constants, &wanted.with_default, data.path())?;
            let gone = deleted_by(entry, &deleted.values);
            let place = *places_of.entry((sources.clone(), gone.clone())).or_insert_with(|| {
                let file_schema = file_schema(columns, &sources);
                let planned = Mutex::default();
                groups.push(Group { sources, file_schema, files: Vec::new(), gone: Vec::new(), planned });
                gone_from.push(gone);
                groups.len() - 1
            });
            let Some(group) = groups.get_mut(place) else { continue };
            let rows = facts.rows.unwrap_or(0);
            let left = deleted.places.left(&entry.path, entry.sequence, rows);
            let lineage =
                RowLineage { first_row: entry.first_row, sequence: entry.sequence, rows: rows as u64 };
            let lineage = self.has_lineage().then_some(lineage);
            let file = SnapshotFile::of_parquet(data, facts, &group.file_schema, Vec::new());
            group.files.push(Arc::new(LakeFile { file, left, lineage }));
        }
        for (group, places) in groups.iter_mut().zip(gone_from) {
            let values: Vec<&DeletedValues> =
                places.iter().filter_map(|place| deleted.values.get(*place)).collect();
            group.gone = deletes::united(&values, &mut deleted.count, self.file)?;
        }
        Ok(groups)
    }

    /// Values that a file need not hold because all its rows share them: those of its partition, in the types of the columns.
    fn constants(&self, entry: &Entry) -> HashMap<i32, ScalarValue> {
        let fields = self.metadata.partitions(entry.spec).iter().zip(&entry.partition);
        let constant = |(field, value): (&metadata::PartitionField, &ScalarValue)| {
            let number = field.source_id.filter(|_| field.transform == "identity")?;
            Some((number, value.clone()))
        };
        fields.filter_map(constant).collect()
    }
}

/// Whether files are of a format that is read for what they hold.
fn is_read(entry: &Entry) -> bool {
    match entry.vector {
        Some(_) => entry.content == Content::DeletedPlaces && entry.format.eq_ignore_ascii_case("puffin"),
        None => entry.format.eq_ignore_ascii_case("parquet"),
    }
}

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
