//! A table as it was at one moment: files with their identities, facts and statistics. A new listing gives a new
//! snapshot only if a file changed, and then only changed files are looked at again.

use crate::csv_agreement;
use crate::partition::{self, Partitions};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use bowshot_formats::data_file::{DataFile, Lease};
use bowshot_formats::file_metadata::{Detail, FileFacts};
use bowshot_formats::inspection::{KnownFiles, Workshop, look_at, of_all_rows};
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::schema::{self, Typing};
use bowshot_formats::snapshot_file::{Groups, SnapshotFile};
use bowshot_formats::table_version::TableVersion;
use bowshot_object_store::Error;
use bowshot_object_store::file_name::Format;
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion_datasource::compute_all_files_statistics;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

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

impl Snapshot {
    /// Looks at the files that `known` does not have with the same identity, and unites them all to a table.
    pub(crate) fn build(
        found: &[ListedFile],
        known: &mut KnownFiles,
        options: &ReadOptions,
        workshop: &Workshop,
    ) -> Result<Self, Error> {
        let format = found.first().map_or(Format::Parquet, |file| file.kind.format);
        options.check(format)?;
        let looked_at = look_at(found, known, (options, workshop));
        let mut looked_at = looked_at.into_iter().collect::<Result<Vec<_>, Error>>()?;
        csv_agreement::agree(&mut looked_at, found, options, workshop)?;
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
                SnapshotFile::new((data, facts), found.kind.compression, &file_schema, partition_values)
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
    pub(crate) fn is_of(&self, found: &[ListedFile]) -> bool {
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
        let mut cached = self.groups.lock();
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
        Lease::shared(&self.lease, || self.files.iter().map(|file| Arc::clone(&file.data)).collect())
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
