//! A table as it was at one moment: files with their identities, facts and statistics. A new listing gives a new
//! snapshot only if a file changed, and then only changed files are looked at again.

use crate::facts::{Detail, FactSources, FileFacts};
use crate::file::{DataFile, HandlePool, Lease};
use crate::format::{Compression, Format};
use crate::intervals::schema_as_bytes;
use crate::listing::FoundFile;
use crate::partition::{self, Partitions};
use crate::schema::{self, Places, Typing};
use crate::source::PlannedFile;
use crate::store;
use crate::version::TableVersion;
use crate::{Error, ReadOptions, agree};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result as DataFusionResult, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::execution::SessionState;
use datafusion_datasource::compute_all_files_statistics;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// See the module.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) format: Format,
    /// The columns in the files, without those that partitions give.
    pub(crate) file_schema: SchemaRef,
    pub(crate) partition_fields: Fields,
    /// All columns: the files', then the partitions'.
    pub(crate) schema: SchemaRef,
    pub(crate) files: Vec<SnapshotFile>,
    pub(crate) version: TableVersion,
    lease: Mutex<Weak<Lease>>,
    /// The groups of a scan of all files, for the number of partitions that came last.
    groups: Mutex<Option<(usize, Groups)>>,
}

/// The column of JSON files that have no row.
const OBJECTS: &str = "json";

/// Threads that look at the files of an object store.
const REMOTE_THREADS: usize = 32;

/// Files as the partitions of a scan have them, and what the planner may believe about all of them.
pub(crate) type Groups = Arc<(Vec<FileGroup>, Statistics)>;

/// A file of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) data: Arc<DataFile>,
    pub(crate) facts: Arc<FileFacts>,
    pub(crate) compression: Compression,
    pub(crate) partition_values: Vec<ScalarValue>,
    /// For all columns of the table.
    pub(crate) statistics: Arc<Statistics>,
}

impl SnapshotFile {
    /// A Parquet file of a table whose columns in files are `file_schema`.
    pub(crate) fn of_parquet(
        data: Arc<DataFile>,
        facts: Arc<FileFacts>,
        file_schema: &Schema,
        partition_values: Vec<ScalarValue>,
    ) -> Self {
        let statistics = Arc::new(statistics(&data, &facts, file_schema, &partition_values));
        Self { data, facts, compression: Compression::None, partition_values, statistics }
    }

    pub(crate) fn planned(&self) -> PartitionedFile {
        let planned = PlannedFile {
            data: Arc::clone(&self.data),
            facts: Arc::clone(&self.facts),
            compression: self.compression,
        };
        let mut file = PartitionedFile::new_from_meta(store::object_meta(&self.data))
            .with_partition_values(self.partition_values.clone())
            .with_extension(planned);
        file.statistics = Some(Arc::clone(&self.statistics));
        if let Detail::Parquet { views: true, .. } = self.facts.detail {
            // The schema written into the file asks for views; the reader is told to make plain arrays at once.
            file = file.with_arrow_schema(schema_as_bytes(&self.facts.columns));
        }
        file
    }
}

/// Facts of files that were looked at before, by path.
pub(crate) type KnownFiles = HashMap<PathBuf, (Arc<DataFile>, Arc<FileFacts>)>;

/// What building a snapshot needs besides the listing.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) sources: FactSources,
    pub(crate) pool: Arc<HandlePool>,
    pub(crate) threads: usize,
    pub(crate) delta: Arc<SessionState>,
}

impl Snapshot {
    /// Looks at the files that `known` does not have with the same identity, and unites them all to a table.
    pub(crate) fn build(
        found: &[FoundFile],
        known: &mut KnownFiles,
        options: &ReadOptions,
        workshop: &Workshop,
    ) -> Result<Self, Error> {
        let format = found.first().map_or(Format::Parquet, |file| file.kind.format);
        options.check(format)?;
        let looked_at = look_at(found, known, (options, workshop));
        // What could be read is kept even if another file is broken: the next attempt reads only that one.
        *known = looked_at
            .iter()
            .flatten()
            .map(|(data, facts)| (data.path().to_path_buf(), (Arc::clone(data), Arc::clone(facts))))
            .collect();
        let mut looked_at = looked_at.into_iter().collect::<Result<Vec<_>, Error>>()?;
        agree::on_headers(&mut looked_at, found, options, workshop)?;
        let partitions = partition::read(found, options)?;
        let file_schema = file_schema(&looked_at, format, &partitions)?;
        if let (true, Some(first)) = (file_schema.fields().is_empty(), looked_at.first()) {
            return Err(Error::corrupt(first.0.path(), "it is empty"));
        }
        options.check_columns(&file_schema)?;
        let columns = file_schema.fields().iter().chain(&partitions.fields).cloned();
        let table_schema = Arc::new(Schema::new(columns.collect::<Fields>()));
        let version = version(&looked_at, options);
        let mut values = partitions.values.into_iter();
        let files = looked_at
            .into_iter()
            .zip(found)
            .map(|((data, facts), found)| {
                let partition_values = values.next().unwrap_or_default();
                let statistics = Arc::new(statistics(&data, &facts, &file_schema, &partition_values));
                SnapshotFile {
                    data,
                    facts,
                    compression: found.kind.compression,
                    partition_values,
                    statistics,
                }
            })
            .collect();
        Ok(Self {
            format,
            file_schema,
            partition_fields: partitions.fields,
            schema: table_schema,
            files,
            version,
            lease: Mutex::default(),
            groups: Mutex::default(),
        })
    }

    /// Whether a listing shows the same files with the same, settled content.
    pub(crate) fn is_of(&self, found: &[FoundFile]) -> bool {
        self.files.len() == found.len()
            && self.files.iter().zip(found).all(|(file, found)| {
                found.identity.settled
                    && !file.facts.is_outgrown()
                    && *file.data.identity() == found.identity
                    && file.data.path() == found.path
            })
    }

    /// The files at these places, spread over partitions. Scans of all files share one result, since uniting the
    /// statistics of many files takes longer than planning the rest of a query.
    pub(crate) fn groups(&self, kept: &[usize], partitions: usize) -> DataFusionResult<Groups> {
        let all = kept.len() == self.files.len();
        let mut cached = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some((_, groups))) = (all, cached.as_ref().filter(|(count, _)| *count == partitions)) {
            return Ok(Arc::clone(groups));
        }
        let files = kept.iter().filter_map(|place| self.files.get(*place));
        let files = FileGroup::new(files.map(SnapshotFile::planned).collect());
        let schema = Arc::clone(&self.schema);
        let groups = compute_all_files_statistics(files.split_files(partitions), schema, true, false)?;
        let groups = Arc::new(groups);
        if all {
            *cached = Some((partitions, Arc::clone(&groups)));
        }
        Ok(groups)
    }

    /// Keeps the files' handles open until the last holder is gone.
    pub(crate) fn lease(&self) -> Arc<Lease> {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Lease::new(
                self.files.iter().map(|file| Arc::clone(&file.data)).collect(),
                Vec::new(),
            ));
            *lease = Arc::downgrade(&new);
            new
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.data.size()).sum()
    }
}

/// The same files have other columns once all their rows were looked at.
fn version(files: &[(Arc<DataFile>, Arc<FileFacts>)], options: &ReadOptions) -> TableVersion {
    let identities = files.iter().map(|(data, _)| (data.path(), data.identity()));
    match files.iter().any(|(_, facts)| facts.is_of_all_rows()) {
        true => TableVersion::of(identities, &of_all_rows(options)),
        false => TableVersion::of(identities, options),
    }
}

fn of_all_rows(options: &ReadOptions) -> ReadOptions {
    ReadOptions { sample_rows: Some(usize::MAX), ..options.clone() }
}

pub(crate) type LookedAt = Result<(Arc<DataFile>, Arc<FileFacts>), Error>;

/// One result per file, in order; several threads, since each file costs a wait for the disk.
pub(crate) fn look_at(
    found: &[FoundFile],
    known: &KnownFiles,
    (options, workshop): (&ReadOptions, &Workshop),
) -> Vec<LookedAt> {
    let results: Vec<OnceLock<LookedAt>> = found.iter().map(|_| OnceLock::new()).collect();
    let (mut open, all_rows) = (Vec::new(), of_all_rows(options));
    for (index, file) in found.iter().enumerate() {
        match known.get(&file.path) {
            Some((data, facts))
                if *data.identity() == file.identity && file.identity.settled && !facts.is_outgrown() =>
            {
                let _ = results[index].set(Ok((Arc::clone(data), Arc::clone(facts))));
            }
            // What has had strange rows once may have some again when it has grown.
            Some((_, facts)) if facts.is_outgrown() || facts.is_of_all_rows() => {
                open.push((index, &all_rows))
            }
            _ => open.push((index, options)),
        }
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((index, options)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = results[*index].set(look_at_one(&found[*index], options, workshop));
        }
    };
    let remote = found.iter().any(|file| file.remote.is_some());
    // These wait for a network, not for a disk or a processor.
    let most = if remote { workshop.threads.max(REMOTE_THREADS) } else { workshop.threads };
    let threads = most.min(open.len());
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let missing =
        |file: &FoundFile| Error::Interrupted { path: file.path.clone(), detail: "no result".to_owned() };
    results
        .into_iter()
        .zip(found)
        .map(|(result, file)| result.into_inner().unwrap_or_else(|| Err(missing(file))))
        .collect()
}

fn look_at_one(found: &FoundFile, options: &ReadOptions, workshop: &Workshop) -> LookedAt {
    let data = found.data(&workshop.pool);
    // A file of noise can make a reader panic; that is this table's problem and nobody else's.
    let facts =
        catch_unwind(AssertUnwindSafe(|| FileFacts::read(&data, &found.kind, options, &workshop.sources)))
            .unwrap_or_else(|_| Err(Error::corrupt(&found.path, "it cannot be decoded")))
            .map_err(|error| data.fault().cloned().unwrap_or(error));
    data.close();
    Ok((data, Arc::new(facts?)))
}

/// The files' columns without those that the partitions give, since the folder's value is the one that counts.
fn file_schema(
    files: &[(Arc<DataFile>, Arc<FileFacts>)],
    format: Format,
    partitions: &Partitions,
) -> Result<SchemaRef, Error> {
    let typing = match format {
        Format::Csv | Format::Json | Format::Excel | Format::Text => Typing::Guessed,
        Format::Parquet | Format::Arrow | Format::Avro | Format::Orc => Typing::Declared,
    };
    let united = schema::unite(files.iter().map(|(data, facts)| (data.path(), facts.as_ref())), typing)?;
    let without_rows = || files.iter().all(|(_, facts)| matches!(facts.detail, Detail::Nothing));
    if format == Format::Json && united.fields().is_empty() && without_rows() {
        // `[]` shows no column, and a table has one: that of the objects themselves.
        return Ok(Arc::new(Schema::new(vec![Field::new(OBJECTS, DataType::Utf8, true)])));
    }
    let given = |name: &str| partitions.fields.iter().any(|field| field.name() == name);
    let kept: Fields = united.fields().iter().filter(|field| !given(field.name())).cloned().collect();
    Ok(Arc::new(Schema::new(kept)))
}

/// What the planner may believe about a file, column by column of the table.
fn statistics(
    data: &DataFile,
    facts: &FileFacts,
    file_schema: &Schema,
    partition_values: &[ScalarValue],
) -> Statistics {
    let exact = matches!(
        facts.detail,
        Detail::Parquet { .. } | Detail::ArrowFile { .. } | Detail::Orc(_) | Detail::Nothing
    );
    let rows = match facts.rows {
        Some(rows) if exact => Precision::Exact(rows),
        Some(rows) => Precision::Inexact(rows),
        None => Precision::Absent,
    };
    let places = Places::of(&facts.columns);
    let of_column = |(place, field): (usize, &Arc<Field>)| {
        column_statistics(field, (facts, places.find(field.name(), place)), rows)
    };
    let columns = file_schema.fields().iter().enumerate().map(of_column);
    let partitions = partition_values.iter().map(|value| partition_statistics(value, rows));
    let size = usize::try_from(data.size()).unwrap_or(usize::MAX);
    let total = match &facts.detail {
        Detail::Parquet { statistics, .. } => statistics.total_byte_size.to_inexact(),
        _ => Precision::Inexact(size),
    };
    Statistics {
        num_rows: rows,
        total_byte_size: total,
        column_statistics: columns.chain(partitions).collect(),
    }
}

fn column_statistics(
    field: &Field,
    (facts, place): (&FileFacts, Option<usize>),
    rows: Precision<usize>,
) -> ColumnStatistics {
    let Some(place) = place else {
        // The file lacks the column: all its rows are null there.
        return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
    };
    let Detail::Parquet { statistics, .. } = &facts.detail else {
        return ColumnStatistics::new_unknown();
    };
    let Some(known) = statistics.column_statistics.get(place) else {
        return ColumnStatistics::new_unknown();
    };
    ColumnStatistics {
        null_count: known.null_count,
        min_value: as_type(&known.min_value, field.data_type()),
        max_value: as_type(&known.max_value, field.data_type()),
        byte_size: known.byte_size,
        distinct_count: known.distinct_count,
        sum_value: Precision::Absent,
    }
}

fn partition_statistics(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    if value.is_null() {
        return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
    }
    ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: Precision::Exact(value.clone()),
        max_value: Precision::Exact(value.clone()),
        distinct_count: Precision::Exact(1),
        ..ColumnStatistics::new_unknown()
    }
}

/// A bound in the table's type; none if it does not fit, since a wrong bound gives wrong rows.
fn as_type(bound: &Precision<ScalarValue>, data_type: &DataType) -> Precision<ScalarValue> {
    let cast = |value: &ScalarValue| {
        let plain = match data_type {
            DataType::Dictionary(_, value) => value.as_ref(),
            other => other,
        };
        match value.data_type() {
            same if same == *plain => Some(value.clone()),
            other if keeps_order(&other, plain) => value.cast_to(plain).ok(),
            _ => None,
        }
    };
    match bound {
        Precision::Exact(value) => {
            cast(value).filter(|v| !v.is_null()).map_or(Precision::Absent, Precision::Exact)
        }
        Precision::Inexact(value) => {
            cast(value).filter(|v| !v.is_null()).map_or(Precision::Absent, Precision::Inexact)
        }
        Precision::Absent => Precision::Absent,
    }
}

/// Whether of two values of a type the greater one is not the lesser one in another type: as text, 9 is more than 10.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let of_both = |is: fn(&DataType) -> bool| is(from) && is(to);
    of_both(DataType::is_numeric)
        || of_both(DataType::is_string)
        || of_both(DataType::is_binary)
        || of_both(|of| matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)))
        || of_both(|of| matches!(of, DataType::Time32(_) | DataType::Time64(_)))
}
