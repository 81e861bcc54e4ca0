//! From what commits have done to files to the rows that changed: files that are read alike, with the rows of each that count, and
//! with what is the same for all of them as values of partitions.

use super::commits::{Change, Commit, Done};
use super::deletion_vectors::Vectors;
use super::delta_protocol::{ChangeColumn, Shape};
use super::file_columns::names_in;
use super::{CHANGE_COLUMNS, CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, LATER, Wanted, refused};
use crate::deletes::{Count, only, without};
use crate::delta::paths;
use crate::table::LakeFile;
use crate::table_folder::FolderView;
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bowshot_api::ErrorKind;
use bowshot_formats::data_file::{DataFile, Lease};
use bowshot_formats::file_metadata::FileFacts;
use bowshot_formats::inspection::{KnownFiles, Workshop, look_at};
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::snapshot_file::SnapshotFile;
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::RowSelection;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

const INSERT: &str = "insert";
const DELETE: &str = "delete";

#[derive(Debug)]
pub(crate) struct Feed {
    pub(super) schema: SchemaRef,
    pub(super) parts: Vec<Part>,
    pub(super) lease: Mutex<Weak<Lease>>,
    pub(crate) same_columns: bool,
}

/// Files whose columns are called the same.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file_schema: SchemaRef,
    /// What all rows of a file have the same of, which comes behind its columns.
    pub(super) partition_fields: Fields,
    /// Where the columns of the changes are among all these.
    pub(super) places: Vec<usize>,
    pub(super) files: Vec<LakeFile>,
}

#[derive(Debug)]
pub(crate) struct Building<'a> {
    pub(crate) folder: &'a FolderView,
    pub(crate) workshop: &'a Workshop,
    pub(crate) now: &'a Shape,
    pub(crate) columns: &'a Fields,
    pub(crate) wanted: &'a Wanted,
}

/// Rows of a file that are changes of one kind by one commit.
struct Item<'a> {
    commit: &'a Commit,
    /// `None` where each row says it.
    kind: Option<&'static str>,
    file: usize,
    partition: Vec<ScalarValue>,
    rows: Rows,
}

enum Rows {
    All,
    /// All but those in these places.
    Without(Arc<Vec<u64>>),
    Only(Vec<u64>),
}

impl Rows {
    fn places(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Without(places) => places.len(),
            Self::Only(places) => places.len(),
        }
    }
}

#[derive(Default)]
struct Names {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    fn place(&mut self, name: String) -> usize {
        let next = self.all.len();
        *self.places.entry(name).or_insert_with_key(|name| {
            self.all.push(name.clone());
            next
        })
    }
}

impl Building<'_> {
    /// The feed of these commits; `before` is what the table was before the first of them, if that is known. Blocks.
    pub(crate) fn feed(
        &self,
        commits: &[Commit],
        before: Option<&Shape>,
        known: &mut KnownFiles,
    ) -> Result<Feed, Error> {
        self.workshop.sources.store.sweep();
        let same_columns = self.check(commits, before)?;
        let columns = self.now.change_columns(self.columns).map_err(|other| self.corrupt(other))?;
        let is_change = |column: &&ChangeColumn| {
            [column.field.name(), column.in_files.name()].iter().any(|name| is_taken(name))
        };
        if let Some(column) = columns.iter().find(is_change) {
            let detail =
                format!("the name of its column `{}` is reserved for change data", column.field.name());
            return Err(refused(&self.path(), ErrorKind::Unsupported, detail, "rename the column"));
        }
        let mut names = Names::default();
        let items = self.items(commits, &columns, &mut names)?;
        let files = self.files(&names.all, known)?;
        let parts = self.parts(&items, &columns, &files)?;
        let own = columns.iter().map(|column| Arc::clone(&column.field));
        let schema = Arc::new(Schema::new(own.chain(change_fields()).collect::<Fields>()));
        Ok(Feed { schema, parts, lease: Mutex::default(), same_columns })
    }

    fn path(&self) -> PathBuf {
        self.folder.path("")
    }

    fn corrupt(&self, detail: impl ToString) -> Error {
        Error::corrupt(&self.path(), detail)
    }

    /// Whether the columns were always those of now. Rows that go have those of the version before their commit.
    fn check(&self, commits: &[Commit], before: Option<&Shape>) -> Result<bool, Error> {
        let unsupported =
            |detail: String, hint: &str| Err(refused(&self.path(), ErrorKind::Unsupported, detail, hint));
        let ends = [Some(self.now), before].into_iter().flatten();
        let unknown = ends.into_iter().find_map(|shape| shape.unknown.as_ref());
        let in_range = || commits.iter().find_map(|commit| commit.unknown.as_ref());
        if let Some(feature) = unknown.or_else(in_range) {
            let detail = format!("the feature `{feature}` is not supported");
            return unsupported(detail, "compare two versions of it with `FOR VERSION AS OF`");
        }
        let (mut shape, mut same_columns) = (before, true);
        let fits = |shape: &Shape, version: u64| {
            self.now
                .takes_rows_of(shape)
                .or_else(|other| unsupported(format!("version {version} has {other}"), LATER))
        };
        for (place, commit) in commits.iter().enumerate() {
            if commit.shape.is_some() && commit.has_rows_of_before() {
                same_columns &= match shape {
                    Some(shape) => fits(shape, commit.version.saturating_sub(1))?,
                    None => commit.version == 0,
                };
            }
            let is_other = commit.shape.is_some() || place == 0;
            shape = commit.shape.as_ref().or(shape);
            let Some(shape) = shape else {
                return Err(
                    self.corrupt(format!("cannot determine the columns of version {}", commit.version))
                );
            };
            if !shape.keeps_changes {
                return unsupported(
                    format!("change data feed was off when version {} was written", commit.version),
                    &self.kept_from(commits, place),
                );
            }
            if is_other {
                same_columns &= fits(shape, commit.version)?;
            }
        }
        Ok(same_columns)
    }

    /// What to ask for where changes were not kept at one place of the range.
    fn kept_from(&self, commits: &[Commit], place: usize) -> String {
        let later = commits.iter().skip(place);
        let keeps = |commit: &&Commit| commit.shape.as_ref().is_some_and(|shape| shape.keeps_changes);
        match later.clone().find(keeps) {
            Some(commit) => format!("changes are recorded from version {} on: start there", commit.version),
            None if self.now.keeps_changes => "changes are recorded now: query later versions".to_owned(),
            None => "set the table property `delta.enableChangeDataFeed = true` in the program that writes it; later changes are recorded"
                .to_owned(),
        }
    }

    fn items<'c>(
        &self,
        commits: &'c [Commit],
        columns: &[ChangeColumn],
        names: &mut Names,
    ) -> Result<Vec<Item<'c>>, Error> {
        let mut vectors = Vectors::new(self.folder, &self.workshop.pool);
        let mut items = Vec::new();
        for commit in commits {
            for change in &commit.changes {
                self.wanted.check(&self.path())?;
                let name = paths::name_below(&change.path, self.folder);
                let name = name.map_err(|outside| self.corrupt(outside))?;
                let partition = partition(change, columns).map_err(|other| {
                    let detail = format!("file `{}` of version {}: {other}", change.path, commit.version);
                    refused(&self.path(), ErrorKind::Unsupported, detail, LATER)
                })?;
                for (kind, rows) in rows(&change.done, &mut vectors)? {
                    let (file, partition) = (names.place(name.clone()), partition.clone());
                    items.push(Item { commit, kind, file, partition, rows });
                }
            }
        }
        Ok(items)
    }

    fn files(&self, names: &[String], known: &mut KnownFiles) -> Result<Vec<LookedAt>, Error> {
        let found = self.folder.find_unless_known(names, known)?;
        look_at(&found, known, (&ReadOptions::default(), self.workshop)).into_iter().collect()
    }

    fn parts(
        &self,
        items: &[Item<'_>],
        columns: &[ChangeColumn],
        files: &[LookedAt],
    ) -> Result<Vec<Part>, Error> {
        let named: Vec<Result<Vec<String>, Error>> = files
            .iter()
            .map(|(data, facts)| names_in(&facts.columns, columns, (self.now.is_numbered(), data.path())))
            .collect();
        // Each use of a vector takes room, however often it is one and the same.
        let mut count = Count::default();
        let mut parts: Vec<Part> = Vec::new();
        let mut places: HashMap<(bool, &Vec<String>), usize> = HashMap::new();
        for item in items {
            let (Some((data, facts)), Some(names)) = (files.get(item.file), named.get(item.file)) else {
                return Err(self.corrupt("a file of it was not read"));
            };
            let names = names.as_ref().map_err(Error::clone)?;
            self.wanted.check(data.path())?;
            count.add(item.rows.places(), data.path())?;
            let Some(left) = left(&item.rows, facts.rows.unwrap_or(0), data.path())? else { continue };
            let is_recorded = item.kind.is_none();
            if is_recorded && facts.columns.field_with_name(CHANGE_TYPE).is_err() {
                let detail = format!("it lacks the column `{CHANGE_TYPE}` of change data files");
                return Err(Error::corrupt(data.path(), detail));
            }
            let place = *places.entry((is_recorded, names)).or_insert_with(|| {
                parts.push(Part::new(columns, names, is_recorded));
                parts.len() - 1
            });
            let Some(part) = parts.get_mut(place) else { continue };
            let (data, facts) = (Arc::clone(data), Arc::clone(facts));
            let file = SnapshotFile::of_parquet(data, facts, &part.file_schema, values(item));
            part.files.push(LakeFile { file, left, lineage: None });
        }
        Ok(parts)
    }
}

type LookedAt = (Arc<DataFile>, Arc<FileFacts>);

impl Part {
    fn new(columns: &[ChangeColumn], names: &[String], is_recorded: bool) -> Self {
        let [kind, version, time] = change_fields();
        let (mut in_files, mut partition) = (Vec::new(), Vec::new());
        for column in columns {
            if column.is_partition {
                partition.push(Arc::new(column.in_files.clone()));
            } else {
                let name = names.get(in_files.len()).unwrap_or_else(|| column.in_files.name());
                in_files.push(Arc::new(column.in_files.clone().with_name(name)));
            }
        }
        let own = (in_files.len(), partition.len());
        if is_recorded {
            in_files.push(kind)
        } else {
            partition.push(kind)
        }
        partition.extend([version, time]);
        let (count, all) = (in_files.len(), in_files.len() + partition.len());
        let (mut next_in_files, mut next_partition) = (0..own.0, count..count + own.1);
        let of_column = |column: &ChangeColumn| match column.is_partition {
            true => next_partition.next(),
            false => next_in_files.next(),
        };
        let mut places: Vec<usize> = columns.iter().filter_map(of_column).collect();
        let kind = if is_recorded { own.0 } else { count + own.1 };
        places.extend([kind, all - 2, all - 1]);
        let file_schema = Arc::new(Schema::new(in_files));
        Self { file_schema, partition_fields: partition.into(), places, files: Vec::new() }
    }
}

/// Whether a column of a table has the name of one of these.
pub fn is_taken(name: &str) -> bool {
    CHANGE_COLUMNS.iter().any(|taken| taken.eq_ignore_ascii_case(name))
}

pub fn change_fields() -> [FieldRef; 3] {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let types = [(CHANGE_TYPE, DataType::Utf8), (COMMIT_VERSION, DataType::Int64), (COMMIT_TIMESTAMP, time)];
    types.map(|(name, data_type)| Arc::new(Field::new(name, data_type, true)))
}

fn values(item: &Item<'_>) -> Vec<ScalarValue> {
    let kind = item.kind.map(|kind| ScalarValue::Utf8(Some(kind.to_owned())));
    let time = item.commit.time_ms.checked_mul(1_000);
    let commit = [
        ScalarValue::Int64(i64::try_from(item.commit.version).ok()),
        ScalarValue::TimestampMicrosecond(time, Some("UTC".into())),
    ];
    item.partition.iter().cloned().chain(kind).chain(commit).collect()
}

fn rows(done: &Done, vectors: &mut Vectors<'_>) -> Result<Vec<(Option<&'static str>, Rows)>, Error> {
    Ok(match done {
        Done::Recorded => vec![(None, Rows::All)],
        Done::Added(vector) => vec![(Some(INSERT), Rows::Without(vectors.places(vector.as_ref())?))],
        Done::Removed(vector) => vec![(Some(DELETE), Rows::Without(vectors.places(vector.as_ref())?))],
        Done::Exchanged { before, after } => {
            let (before, after) = (vectors.places(before.as_ref())?, vectors.places(after.as_ref())?);
            let of_one =
                |kind, places: Vec<u64>| (!places.is_empty()).then_some((Some(kind), Rows::Only(places)));
            let gone = of_one(DELETE, lacking(&after, &before));
            gone.into_iter().chain(of_one(INSERT, lacking(&before, &after))).collect()
        }
    })
}

fn lacking(one: &[u64], other: &[u64]) -> Vec<u64> {
    one.iter().copied().filter(|place| other.binary_search(place).is_err()).collect()
}

/// Which rows of a file are read, if not all; `None` where none are.
fn left(rows: &Rows, count: usize, path: &Path) -> Result<Option<Option<RowSelection>>, Error> {
    let within = |places: &[u64]| {
        let places = places.iter().map(|place| usize::try_from(*place).ok().filter(|place| *place < count));
        places.collect::<Option<Vec<usize>>>().ok_or_else(|| {
            Error::corrupt(path, format!("a deleted row is out of range: the file has {count} rows"))
        })
    };
    Ok(match rows {
        _ if count == 0 => None,
        Rows::All => Some(None),
        Rows::Without(places) if places.is_empty() => Some(None),
        Rows::Without(places) => {
            let places = within(places)?;
            (places.len() < count).then(|| Some(without(&places, count)))
        }
        Rows::Only(places) => Some(Some(only(&within(places)?, count))),
    })
}

fn partition(change: &Change, columns: &[ChangeColumn]) -> Result<Vec<ScalarValue>, String> {
    let wanted = columns.iter().filter(|column| column.is_partition);
    let Some(given) = &change.partition else {
        return match wanted.count() {
            0 => Ok(Vec::new()),
            _ => Err("the log lacks its partition values".to_owned()),
        };
    };
    let is_wanted = |name: &String| wanted.clone().any(|column| column.in_files.name() == name);
    if let Some(other) = given.keys().find(|name| !is_wanted(name)) {
        return Err(format!("files are partitioned by `{other}`, which is no longer a partition column"));
    }
    let of_column = |column: &ChangeColumn| {
        let value = given.get(column.in_files.name()).ok_or_else(|| {
            let name = column.field.name();
            format!("files are not partitioned by `{name}`, which is a partition column now")
        })?;
        value_of(value.as_deref(), column.field.data_type())
            .map_err(|error| format!("the value of partition `{}`: {error}", column.field.name()))
    };
    wanted.clone().map(of_column).collect()
}

/// The value of a partition, as the protocol writes it ("Partition Value Serialization").
fn value_of(text: Option<&str>, data_type: &DataType) -> Result<ScalarValue, String> {
    let failed = |error: datafusion::error::DataFusionError| error.to_string();
    let plain = match data_type {
        DataType::Dictionary(_, plain) => plain.as_ref(),
        plain => plain,
    };
    // Writers do not agree on how bytes stand in a text.
    if text.is_some() && matches!(plain, DataType::Binary) {
        return Err("partition values of type BINARY are not supported".to_owned());
    }
    match text.filter(|text| !text.is_empty()) {
        None => ScalarValue::try_from(data_type).map_err(failed),
        Some(text) if text.contains(['e', 'E']) && plain.is_decimal() => {
            exponent(text, plain).and_then(|value| value.cast_to(data_type)).map_err(failed)
        }
        Some(text) => ScalarValue::try_from_string(text.to_owned(), data_type).map_err(failed),
    }
}

/// A decimal with an exponent, which casts of texts do not know.
fn exponent(text: &str, decimal: &DataType) -> datafusion::error::Result<ScalarValue> {
    match decimal {
        DataType::Decimal128(precision, scale) => {
            let value = parse_decimal::<Decimal128Type>(text, *precision, *scale)?;
            Ok(ScalarValue::Decimal128(Some(value), *precision, *scale))
        }
        other => ScalarValue::try_from_string(text.to_owned(), other),
    }
}

#[cfg(test)]
mod tests;
