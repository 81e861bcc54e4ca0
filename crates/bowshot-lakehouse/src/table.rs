//! The table that DataFusion sees: groups of files that are read alike, each with its own plan, and all of them together.

use super::columns::{LakeColumn, Source};
use super::deletes::Gone;
use super::row_lineage::{self, LineageExec, RowLineage, deleted_places};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_formats::data_file::{DataFile, Lease};
use bowshot_formats::decoded_columns::ColumnScan;
use bowshot_formats::parquet::source::{NamedSource, parquet_source};
use bowshot_formats::snapshot_file::{Groups, SnapshotFile};
use bowshot_formats::snapshot_store::SnapshotStore;
use bowshot_formats::table_version::{TableVersion, Versioned};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{JoinType, NullEquality, Result, internal_datafusion_err, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::{CaseExpr, Column, Literal, is_not_null};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_datasource::compute_all_files_statistics;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub(super) struct LakeSnapshot {
    /// Those of the schema, and behind them those of the lineage of rows, if these have some.
    pub(super) columns: Vec<LakeColumn>,
    pub(super) schema: SchemaRef,
    pub(super) groups: Vec<Group>,
    pub(super) files: usize,
    /// Rows that are in no file.
    pub(super) rows: Vec<RecordBatch>,
    pub(super) lease: Mutex<Weak<Lease>>,
}

/// Files whose columns have the same names, and of which the same values were deleted.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) sources: Vec<Source>,
    /// The columns that the files have, under the names that they have there, in the table's types.
    pub(super) file_schema: SchemaRef,
    pub(super) files: Vec<Arc<LakeFile>>,
    pub(super) gone: Vec<Gone>,
    /// The files as the partitions of a scan have them, for the number of partitions that came last.
    pub(super) planned: Mutex<Option<(usize, Groups)>>,
}

#[derive(Debug)]
pub(super) struct LakeFile {
    pub(super) file: SnapshotFile,
    /// Set where rows have been deleted by their places.
    pub(super) left: Option<RowSelection>,
    /// Set where rows have numbers.
    pub(super) lineage: Option<RowLineage>,
}

impl LakeFile {
    pub(super) fn planned(&self) -> PartitionedFile {
        self.file.planned_without(self.left.clone())
    }
}

pub(super) fn file_schema(columns: &[LakeColumn], sources: &[Source]) -> SchemaRef {
    let named = |(column, source): (&LakeColumn, &Source)| match source {
        Source::Column(name) => Some(column.field.as_ref().clone().with_name(name)),
        Source::Replaced { name, data_type, .. } => Some(Field::new(name, data_type.clone(), true)),
        Source::Constant(_) => None,
    };
    Arc::new(Schema::new(columns.iter().zip(sources).filter_map(named).collect::<Vec<Field>>()))
}

#[derive(Debug)]
pub struct LakeTable {
    pub(super) name: String,
    pub(super) snapshot: Arc<LakeSnapshot>,
    pub(super) version: Option<TableVersion>,
    pub(super) store: Arc<SnapshotStore>,
    /// The columns with those of the lineage of rows, where they are seen.
    pub(super) lineage: Option<SchemaRef>,
}

impl Versioned for LakeTable {
    bowshot_api::getters!(name: &str);

    fn settled_version(&self) -> Option<TableVersion> {
        self.version
    }

    /// Always: what metadata say of a version is never changed, nor are the files that they name.
    fn is_pinned(&self) -> bool {
        true
    }
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.lineage.as_ref().unwrap_or(&self.snapshot.schema))
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.schema();
        let wanted = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let lease = self.snapshot.lease();
        let scan = Scan { state, lease, limit };
        let groups = self.snapshot.groups.iter();
        let mut plans = match wanted.iter().any(|place| *place >= self.snapshot.schema.fields().len()) {
            true => {
                let files = groups.flat_map(|group| group.files.iter().map(move |file| (group, file)));
                let of_file = |(group, file): (&Group, &Arc<LakeFile>)| {
                    self.with_lineage_of_file(&group.alone(file), &wanted, &scan)
                };
                files.map(of_file).collect::<Result<Vec<_>>>()?
            }
            false => groups.map(|group| self.of_group(group, &wanted, &scan)).collect::<Result<Vec<_>>>()?,
        };
        if !self.snapshot.rows.is_empty() {
            let (rows, schema) = (self.snapshot.rows.clone(), Arc::clone(&self.snapshot.schema));
            plans.push(MemorySourceConfig::try_new_exec(&[rows], schema, projection.cloned())?);
        }
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(project_schema(&schema, projection)?))),
            _ => UnionExec::try_new(plans),
        }
    }

    /// Conditions are evaluated above the scan, and reach it as physical ones, which rule out files, row groups and pages.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

struct Scan<'a> {
    state: &'a dyn Session,
    lease: Arc<Lease>,
    limit: Option<usize>,
}

impl LakeSnapshot {
    pub(super) fn bytes(&self) -> u64 {
        self.data().map(|file| file.size()).sum()
    }

    /// Whether a file was found to be another one when it was read.
    pub(super) fn has_fault(&self) -> bool {
        self.data().any(|file| file.fault().is_some())
    }

    fn data(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.groups.iter().flat_map(|group| &group.files).map(|file| &file.file.data)
    }

    /// Keeps the files' handles open until the last holder is gone.
    fn lease(&self) -> Arc<Lease> {
        Lease::shared(&self.lease, || self.data().cloned().collect())
    }
}

impl LakeTable {
    pub(super) fn has_deleted_rows(&self) -> bool {
        let groups = &self.snapshot.groups;
        groups
            .iter()
            .any(|group| !group.gone.is_empty() || group.files.iter().any(|file| file.left.is_some()))
    }

    pub(super) fn single_files(&self) -> Vec<(PathBuf, Self)> {
        let one = &|(group, file): (&Group, &Arc<LakeFile>)| {
            let snapshot = LakeSnapshot {
                columns: self.snapshot.columns.clone(),
                schema: Arc::clone(&self.snapshot.schema),
                groups: vec![group.alone(file)],
                files: 1,
                rows: Vec::new(),
                lease: Mutex::default(),
            };
            let (name, store) = (self.name.clone(), Arc::clone(&self.store));
            let (snapshot, lineage) = (Arc::new(snapshot), self.lineage.clone());
            let table = Self { name, snapshot, version: None, store, lineage };
            (file.file.data.path().to_path_buf(), table)
        };
        let groups = self.snapshot.groups.iter();
        groups.flat_map(|group| group.files.iter().map(move |file| one((group, file)))).collect()
    }

    /// The same table, in which the lineage of rows is seen; `None` where they have none.
    pub(super) fn with_lineage(&self) -> Option<Self> {
        if self.snapshot.columns.len() == self.snapshot.schema.fields().len() {
            return None;
        }
        let fields = self.snapshot.columns.iter().map(|column| Arc::clone(&column.field));
        let fields: Vec<FieldRef> = fields.chain([row_lineage::place_field()]).collect();
        let (name, snapshot) = (self.name.clone(), Arc::clone(&self.snapshot));
        let (store, lineage) = (Arc::clone(&self.store), Some(Arc::new(Schema::new(fields))));
        Some(Self { name, snapshot, version: None, store, lineage })
    }

    /// Of a table of one file whose rows have a lineage: the places of those that are deleted by them, and how many rows it had.
    pub(super) fn places(&self) -> Option<(RoaringTreemap, u64)> {
        let file = self.snapshot.groups.first()?.files.first()?;
        Some((deleted_places(file.left.as_ref()), file.lineage?.rows))
    }

    pub(super) fn deleted_rows(&self) -> usize {
        let files = self.snapshot.groups.iter().flat_map(|group| &group.files);
        files.filter_map(|file| file.left.as_ref()).map(RowSelection::skipped_row_count).sum()
    }

    fn of_group(&self, group: &Group, wanted: &[usize], scan: &Scan<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let read = group.with_compared(wanted);
        let files = self.files(group, &read, scan)?;
        let mut plan = self.under_table_names(group, &read, files)?;
        for gone in &group.gone {
            plan = without_values(plan, gone)?;
        }
        if read.len() > wanted.len() {
            plan = columns_at(plan, 0..wanted.len())?;
        }
        Ok(plan)
    }

    /// The same of a group of one file, with the lineage of its rows.
    fn with_lineage_of_file(
        &self,
        group: &Group,
        wanted: &[usize],
        scan: &Scan<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let file = group.files.first();
        let known = file.and_then(|file| Some((file.lineage?, file.left.clone())));
        let (lineage, left) =
            known.ok_or_else(|| internal_datafusion_err!("the rows of a file have no lineage"))?;
        // The places of rows are no column of a file, and stand behind those that it has.
        let place = self.snapshot.columns.len();
        let stored: Vec<usize> = wanted.iter().copied().filter(|column| *column != place).collect();
        let read = group.with_compared(&stored);
        let whole = Scan { state: scan.state, lease: Arc::clone(&scan.lease), limit: None };
        let files = self.files(group, &read, &whole)?;
        let files = self.under_table_names(group, &read, files)?;
        let mut plan: Arc<dyn ExecutionPlan> = Arc::new(LineageExec::new(files, lineage, left));
        for gone in &group.gone {
            plan = without_values(plan, gone)?;
        }
        let at = |column: &usize| read.iter().position(|known| known == column).unwrap_or(read.len());
        columns_at(plan, wanted.iter().map(at))
    }

    fn files(&self, group: &Group, read: &[usize], scan: &Scan<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = TableSchema::builder(Arc::clone(&group.file_schema)).build();
        let columns = ColumnScan::of_found(self.store.columns());
        let parquet = parquet_source(&self.store, scan.state, schema);
        let source: Arc<dyn FileSource> =
            Arc::new(NamedSource::new(parquet, Arc::clone(&scan.lease), columns));
        let groups = group.partitions(scan.state.config().target_partitions())?;
        let (groups, statistics) = groups.as_ref();
        let projection: Vec<usize> = read.iter().filter_map(|place| group.place_in_files(*place)).collect();
        let config = FileScanConfigBuilder::new(self.store.url().clone(), source)
            .with_file_groups(groups.clone())
            .with_statistics(statistics.clone())
            .with_projection_indices(Some(projection))?
            .with_limit(scan.limit.filter(|_| group.gone.is_empty()));
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    fn under_table_names(
        &self,
        group: &Group,
        read: &[usize],
        files: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (mut next, mut expressions, mut is_same) = (0, Vec::new(), true);
        for place in read {
            let (Some(column), Some(source)) = (self.snapshot.columns.get(*place), group.sources.get(*place))
            else {
                continue;
            };
            let name = column.field.name();
            let expr: Arc<dyn PhysicalExpr> = match source {
                Source::Column(in_file) => {
                    is_same &= in_file == name;
                    next += 1;
                    Arc::new(Column::new(in_file, next - 1))
                }
                Source::Replaced { name, record, .. } => {
                    is_same = false;
                    next += 1;
                    let value = Literal::new(record.clone());
                    match column.field.is_nullable() {
                        true => {
                            let is_there = is_not_null(Arc::new(Column::new(name, next - 1)))?;
                            Arc::new(CaseExpr::try_new(None, vec![(is_there, Arc::new(value))], None)?)
                        }
                        false => Arc::new(value),
                    }
                }
                Source::Constant(value) => {
                    is_same = false;
                    Arc::new(Literal::new(value.clone()))
                }
            };
            expressions.push(ProjectionExpr { expr, alias: name.clone() });
        }
        if is_same {
            return Ok(files);
        }
        Ok(Arc::new(ProjectionExec::try_new(expressions, files)?))
    }
}

impl Group {
    /// The files in so many partitions, with their statistics. Cached: merging statistics can take longer than planning.
    fn partitions(&self, count: usize) -> Result<Groups> {
        let mut kept = self.planned.lock();
        if let Some((_, groups)) = kept.as_ref().filter(|(of, _)| *of == count) {
            return Ok(Arc::clone(groups));
        }
        let files = FileGroup::new(self.files.iter().map(|file| file.planned()).collect());
        let schema = Arc::clone(&self.file_schema);
        let groups = Arc::new(compute_all_files_statistics(files.split_files(count), schema, true, false)?);
        *kept = Some((count, Arc::clone(&groups)));
        Ok(groups)
    }

    fn alone(&self, file: &Arc<LakeFile>) -> Self {
        Self {
            sources: self.sources.clone(),
            file_schema: Arc::clone(&self.file_schema),
            files: vec![Arc::clone(file)],
            gone: self.gone.clone(),
            planned: Mutex::default(),
        }
    }

    /// The columns that are wanted, and behind them those by whose values rows are deleted.
    fn with_compared(&self, wanted: &[usize]) -> Vec<usize> {
        let mut read = wanted.to_vec();
        for place in self.gone.iter().flat_map(|gone| &gone.columns) {
            if !read.contains(place) {
                read.push(*place);
            }
        }
        read
    }

    fn place_in_files(&self, place: usize) -> Option<usize> {
        let is_read = |source: &&Source| !matches!(source, Source::Constant(_));
        self.sources.get(place).filter(is_read)?;
        Some(self.sources.iter().take(place).filter(is_read).count())
    }
}

/// The rows that are not among the deleted ones. NULL equals NULL there (Iceberg specification, "Equality Delete Files").
fn without_values(rows: Arc<dyn ExecutionPlan>, deleted: &Gone) -> Result<Arc<dyn ExecutionPlan>> {
    let gone = deleted.rows.schema();
    let schema = rows.schema();
    let pair = |(place, field): (usize, &Arc<Field>)| {
        let left: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
        let right: Arc<dyn PhysicalExpr> = Arc::new(Column::new_with_schema(field.name(), &schema)?);
        Ok((left, right))
    };
    let on = gone.fields().iter().enumerate().map(pair).collect::<Result<Vec<_>>>()?;
    let gone = MemorySourceConfig::try_new_exec(&[vec![deleted.rows.clone()]], gone, None)?;
    let join = HashJoinExec::try_new(
        gone,
        rows,
        on,
        None,
        &JoinType::RightAnti,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNull,
        false,
    )?;
    Ok(Arc::new(join))
}

fn columns_at(
    plan: Arc<dyn ExecutionPlan>,
    places: impl Iterator<Item = usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let column = |place: usize| {
        let name = schema.fields().get(place)?.name();
        Some(ProjectionExpr { expr: Arc::new(Column::new(name, place)), alias: name.clone() })
    };
    let expressions: Vec<ProjectionExpr> = places.filter_map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}
