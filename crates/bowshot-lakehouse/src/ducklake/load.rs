//! What a table is made of, as the snapshot that is scanned: files with their facts, and the rows of the catalog itself.

use super::super::columns::{LakeColumn, Source, sources};
use super::super::deletes::{Count, without};
use super::super::table::{Group, LakeFile, LakeSnapshot, file_schema};
use super::metadata::{Described, FileRow};
use super::paths::{Named, Roots};
use super::types::{self, Columns};
use super::{inlined, name_mapping, row_positions};
use arrow::datatypes::{Schema, SchemaRef};
use bowshot_api::ErrorKind;
use bowshot_formats::data_file::DataFile;
use bowshot_formats::file_metadata::FileFacts;
use bowshot_formats::inspection::{KnownFiles, Workshop, look_at};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::snapshot_file::SnapshotFile;
use bowshot_object_store::file_name::{Compression, Format, Kind};
use bowshot_object_store::{Error, FileIdentity};
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::RowSelection;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub(super) struct Loading<'a> {
    /// The catalog, which errors name.
    pub(super) catalog: &'a Path,
    /// The table, which they name too.
    pub(super) name: &'a str,
    pub(super) described: &'a Described,
    pub(super) named: &'a Named,
    pub(super) workshop: &'a Workshop,
}

impl Loading<'_> {
    fn refused(&self, kind: ErrorKind, detail: impl std::fmt::Display, hint: &'static str) -> Error {
        let detail = format!("table `{}` of the catalog: {detail}", self.name);
        Error::Lake { path: self.catalog.to_path_buf(), detail, kind, hint }
    }

    fn unsupported(&self, detail: impl std::fmt::Display) -> Error {
        self.refused(ErrorKind::Unsupported, detail, "write the table without it, or read it with DuckDB")
    }

    fn outside(&self, detail: String) -> Error {
        self.refused(
            ErrorKind::Denied,
            detail,
            "the operator can allow the folder with `data_path`, and more folders with `read_paths`",
        )
    }

    pub(super) fn snapshot(&self, known: &mut KnownFiles) -> Result<LakeSnapshot, Error> {
        let columns = Columns::of(&self.described.columns).map_err(|unknown| self.unsupported(unknown))?;
        let fields: Vec<_> = columns.columns.iter().map(|column| Arc::clone(&column.field)).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let rows = inlined::batches(&self.described.inlined, &columns.columns, &schema, self.catalog)?;
        // A lake that has never had a file has no folder for them.
        let groups = if self.described.files.is_empty() { Vec::new() } else { self.groups(&columns, known)? };
        let files = self.described.files.len();
        Ok(LakeSnapshot { columns: columns.columns, schema, groups, files, rows, lease: Mutex::default() })
    }

    fn roots(&self) -> Result<Roots, Error> {
        Roots::new(self.catalog, &self.described.data_path, self.named).map_err(|detail| self.outside(detail))
    }

    fn groups(&self, columns: &Columns, known: &mut KnownFiles) -> Result<Vec<Group>, Error> {
        let roots = self.roots()?;
        let found = self.described.files.iter().map(|file| self.found_data(&roots, file));
        let found = found.collect::<Result<Vec<_>, Error>>()?;
        let looked_at = look_at(&found, known, (&ReadOptions::default(), self.workshop));
        let looked_at = looked_at.into_iter().collect::<Result<Vec<_>, Error>>()?;
        let mut gone = self.gone(&roots, &looked_at)?;
        let mut groups: Vec<Group> = Vec::new();
        let mut places_of: HashMap<Vec<Source>, usize> = HashMap::new();
        for ((data, facts), file) in looked_at.into_iter().zip(&self.described.files) {
            let sources = self.sources(columns, (file, data.path()), &facts)?;
            let place = *places_of.entry(sources.clone()).or_insert_with(|| {
                let file_schema = file_schema(&columns.columns, &sources);
                let planned = Mutex::default();
                groups.push(Group { sources, file_schema, files: Vec::new(), gone: Vec::new(), planned });
                groups.len() - 1
            });
            let Some(group) = groups.get_mut(place) else { continue };
            let left = match gone.remove(&file.id) {
                Some(gone) => left(gone, facts.rows.unwrap_or(0), data.path())?,
                None => None,
            };
            let file = SnapshotFile::of_parquet(data, facts, &group.file_schema, Vec::new());
            group.files.push(Arc::new(LakeFile { file, left, lineage: None }));
        }
        Ok(groups)
    }

    fn sources(
        &self,
        columns: &Columns,
        (file, path): (&FileRow, &Path),
        facts: &FileFacts,
    ) -> Result<Vec<Source>, Error> {
        let mapping = file.mapping.and_then(|mapping| self.described.mappings.get(&mapping));
        let schema: Cow<'_, Schema> = match mapping {
            Some(names) => Cow::Owned(name_mapping::by_name(&facts.columns, names)),
            None => Cow::Borrowed(facts.columns.as_ref()),
        };
        columns.expect_nested_defaults(&schema).map_err(|field| Error::Unsupported {
            path: path.to_path_buf(),
            detail: format!("it lacks the nested field `{field}`, which has an initial default"),
        })?;
        let constants = self.constants(&columns.columns, file)?;
        sources(&columns.columns, &schema, &constants, &HashSet::new(), path)
    }

    /// Values that a file need not hold because all its rows share them: those of its partition, and those in its path.
    fn constants(&self, columns: &[LakeColumn], file: &FileRow) -> Result<HashMap<i32, ScalarValue>, Error> {
        let mut texts = file.partition.clone();
        let mapping = file.mapping.and_then(|mapping| self.described.mappings.get(&mapping));
        for name in mapping.into_iter().flatten().filter(|name| name.is_partition && name.parent.is_none()) {
            let value = name_mapping::in_path(&file.path.path, &name.name).ok_or_else(|| {
                self.refused(
                    ErrorKind::Corrupt,
                    format!("the path `{}` has no value of `{}`", file.path.path, name.name),
                    "add the file again, with its columns",
                )
            })?;
            texts.push((name.target, value));
        }
        let mut values = HashMap::new();
        for (number, text) in texts {
            let Some(column) = columns.iter().find(|column| i64::from(column.number) == number) else {
                continue;
            };
            let data_type = column.field.data_type();
            let value = match &text {
                Some(text) => types::value(text, data_type),
                None => ScalarValue::try_from(data_type).map_err(|error| error.to_string()),
            };
            let value = value.map_err(|error| {
                self.unsupported(format!("the partition value of column `{}`: {error}", column.field.name()))
            })?;
            values.insert(column.number, value);
        }
        Ok(values)
    }

    /// Places of rows that are gone, or not there yet, by the numbers of their files.
    fn gone(
        &self,
        roots: &Roots,
        looked_at: &[(Arc<DataFile>, Arc<FileFacts>)],
    ) -> Result<HashMap<i64, Vec<i64>>, Error> {
        let (mut count, mut gone) = (Count::default(), HashMap::<i64, Vec<i64>>::new());
        let snapshot = self.described.snapshot;
        for delete in &self.described.deletes {
            if delete.is_encrypted {
                return Err(self.encrypted(&delete.path.path));
            }
            if !delete.format.eq_ignore_ascii_case("parquet") {
                return Err(self.unsupported(format!(
                    "delete files in the format `{}`; only Parquet is supported",
                    delete.format
                )));
            }
            let path =
                roots.local(&self.described.folders, &delete.path).map_err(|detail| self.outside(detail))?;
            let file = found(path)?.data(&self.workshop.pool);
            gone.entry(delete.file).or_default().extend(row_positions::deleted(&file, snapshot, &mut count)?);
        }
        count.add(self.described.places.len(), self.catalog)?;
        for (file, place) in &self.described.places {
            gone.entry(*file).or_default().push(*place);
        }
        for ((data, _), file) in looked_at.iter().zip(&self.described.files) {
            // Of the newest snapshot all rows count.
            let is_partial = file.partial.is_some_and(|last| last > snapshot) && !self.described.is_newest;
            if is_partial {
                gone.entry(file.id).or_default().extend(row_positions::later(data, snapshot, &mut count)?);
            }
        }
        Ok(gone)
    }

    fn found_data(&self, roots: &Roots, file: &FileRow) -> Result<ListedFile, Error> {
        if file.is_encrypted {
            return Err(self.encrypted(&file.path.path));
        }
        if !file.format.eq_ignore_ascii_case("parquet") {
            let (path, format) = (&file.path.path, &file.format);
            return Err(
                self.unsupported(format!("`{path}` has the format `{format}`; only Parquet is supported"))
            );
        }
        let path = roots.local(&self.described.folders, &file.path);
        found(path.map_err(|detail| self.outside(detail))?)
    }

    fn encrypted(&self, path: &str) -> Error {
        self.refused(
            ErrorKind::Unsupported,
            format!("`{path}` is encrypted, with a key that the catalog has"),
            "copy the table into a lake without encryption",
        )
    }
}

fn left(mut gone: Vec<i64>, rows: usize, path: &Path) -> Result<Option<RowSelection>, Error> {
    gone.sort_unstable();
    gone.dedup();
    let places: Option<Vec<usize>> =
        gone.iter().map(|place| usize::try_from(*place).ok().filter(|place| *place < rows)).collect();
    let places = places.ok_or_else(|| {
        Error::corrupt(path, format!("a deleted row is out of range: the file has {rows} rows"))
    })?;
    Ok((!places.is_empty()).then(|| without(&places, rows)))
}

fn found(path: PathBuf) -> Result<ListedFile, Error> {
    let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    if !metadata.is_file() {
        return Err(Error::NotRegular { path });
    }
    let kind =
        Kind { format: Format::Parquet, compression: Compression::None, tabs: false, stem: String::new() };
    Ok(ListedFile {
        shown: path.display().to_string(),
        path,
        folders: Vec::new(),
        kind,
        identity: FileIdentity::new(&metadata, SystemTime::now()),
        remote: None,
    })
}
