//! The table that DataFusion sees: groups of files that are read alike, each with its own plan, and all of them together.

use super::columns::{LakeColumn, Source};
use super::deletes::Gone;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bowshot_formats::data_file::{DataFile, Lease};
use bowshot_formats::decoded_columns::ColumnScan;
use bowshot_formats::parquet::source::{NamedSource, parquet_source};
use bowshot_formats::snapshot_file::{Groups, SnapshotFile};
use bowshot_formats::snapshot_store::SnapshotStore;
use bowshot_formats::table_version::{TableVersion, Versioned};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{JoinType, NullEquality, Result, project_schema};
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
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// What the metadata of a table say of one moment.
#[derive(Debug)]
pub(super) struct LakeSnapshot {
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

/// A data file.
#[derive(Debug)]
pub(super) struct LakeFile {
    pub(super) file: SnapshotFile,
    /// Set where rows have been deleted by their places.
    pub(super) left: Option<RowSelection>,
}

impl LakeFile {
    pub(super) fn planned(&self) -> PartitionedFile {
        self.file.planned_without(self.left.clone())
    }
}

/// The columns that the files of a group have.
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
        Arc::clone(&self.snapshot.schema)
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
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.snapshot.columns.len()).collect());
        let lease = self.snapshot.lease();
        let scan = Scan { state, lease, limit };
        let of_group = |group| self.of_group(group, &wanted, &scan);
        let mut plans = self.snapshot.groups.iter().map(of_group).collect::<Result<Vec<_>>>()?;
        if !self.snapshot.rows.is_empty() {
            let (rows, schema) = (self.snapshot.rows.clone(), Arc::clone(&self.snapshot.schema));
            plans.push(MemorySourceConfig::try_new_exec(&[rows], schema, projection.cloned())?);
        }
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(project_schema(&self.snapshot.schema, projection)?))),
            _ => UnionExec::try_new(plans),
        }
    }

    /// Conditions are evaluated above the scan, and reach it as physical ones, which rule out files, row groups and pages.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// What the plans of one scan share.
struct Scan<'a> {
    state: &'a dyn Session,
    lease: Arc<Lease>,
    limit: Option<usize>,
}

impl LakeSnapshot {
    /// Bytes of the data files.
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
    /// Whether rows of its files were deleted, and are in the files still.
    pub(super) fn has_deleted_rows(&self) -> bool {
        let groups = &self.snapshot.groups;
        groups
            .iter()
            .any(|group| !group.gone.is_empty() || group.files.iter().any(|file| file.left.is_some()))
    }

    /// Each data file as a table of its own, with where it is.
    pub(super) fn single_files(&self) -> Vec<(PathBuf, Self)> {
        let one = &|(group, file): (&Group, &Arc<LakeFile>)| {
            let alone = Group {
                sources: group.sources.clone(),
                file_schema: Arc::clone(&group.file_schema),
                files: vec![Arc::clone(file)],
                gone: group.gone.clone(),
                planned: Mutex::default(),
            };
            let snapshot = LakeSnapshot {
                columns: self.snapshot.columns.clone(),
                schema: Arc::clone(&self.snapshot.schema),
                groups: vec![alone],
                files: 1,
                rows: Vec::new(),
                lease: Mutex::default(),
            };
            let (name, store) = (self.name.clone(), Arc::clone(&self.store));
            let table = Self { name, snapshot: Arc::new(snapshot), version: None, store };
            (file.file.data.path().to_path_buf(), table)
        };
        let groups = self.snapshot.groups.iter();
        groups.flat_map(|group| group.files.iter().map(move |file| one((group, file)))).collect()
    }

    /// The wanted columns of the files of one group, under the table's names, without deleted rows.
    fn of_group(&self, group: &Group, wanted: &[usize], scan: &Scan<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut read = wanted.to_vec();
        for place in group.gone.iter().flat_map(|gone| &gone.columns) {
            if !read.contains(place) {
                read.push(*place);
            }
        }
        let files = self.files(group, &read, scan)?;
        let mut plan = self.under_table_names(group, &read, files)?;
        for gone in &group.gone {
            plan = without_values(plan, gone)?;
        }
        if read.len() > wanted.len() {
            plan = first_columns(plan, wanted.len())?;
        }
        Ok(plan)
    }

    /// The columns of those places that the files have.
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
                        true => where_there(Column::new(name, next - 1), value)?,
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
    /// The files in so many partitions, and what the planner may believe about all of them. It is kept: to unite the statistics of
    /// many files takes longer than planning the rest of a query.
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

    /// Where a column of the table is among those of the files.
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

/// A value in the rows in which a column is not NULL.
fn where_there(column: Column, value: Literal) -> Result<Arc<dyn PhysicalExpr>> {
    let is_there = is_not_null(Arc::new(column))?;
    Ok(Arc::new(CaseExpr::try_new(None, vec![(is_there, Arc::new(value))], None)?))
}

fn first_columns(plan: Arc<dyn ExecutionPlan>, count: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let column = |(place, field): (usize, &Arc<Field>)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), place)),
        alias: field.name().clone(),
    };
    let expressions: Vec<ProjectionExpr> =
        schema.fields().iter().enumerate().take(count).map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}
