//! Scans the rows of a table that are in files, with DataFusion's Parquet source: row groups and pages are skipped by
//! the query's conditions. Addresses are made of the file's place in the table and Parquet's own numbers of rows.

use super::durable::Disk;
use super::segment::Segment;
use super::table::address;
use super::{Error, Table};
use ::parquet::arrow::RowNumber;
use arrow::datatypes::{DataType, Field, SchemaRef};
use bowshot_formats::data_file::Lease;
use bowshot_formats::decoded_columns::ColumnScan;
use bowshot_formats::parquet::source::{NamedSource, parquet_source};
use bowshot_formats::snapshot_file::SnapshotFile;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion_datasource::compute_all_files_statistics;
use std::any::Any;
use std::sync::Arc;

/// The address of the first row of a file.
const FIRST: &str = "__bowshot_first";
/// The number of a row in its file.
const ROW: &str = "__bowshot_row";

/// The files of a table as a plan. `schema` has the columns of the table, perhaps with the address at the end.
pub(super) struct FileScan<'a> {
    pub(super) table: &'a Table,
    pub(super) schema: &'a SchemaRef,
    pub(super) disk: &'a Disk,
    pub(super) state: &'a dyn Session,
}

impl FileScan<'_> {
    /// The columns at these places; each partition gives at most `limit` rows. `None` if the table has no files.
    pub(super) fn plan(
        &self,
        projection: &[usize],
        limit: Option<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let address_place = self.table.schema().fields().len();
        let addressed = projection.contains(&address_place);
        let files = self.files(addressed).map_err(bowshot_api::Error::from).map_err(external)?;
        if files.is_empty() {
            return Ok(None);
        }
        let columns = projection.iter().copied().filter(|place| *place < address_place);
        let more = if addressed { address_place..address_place + 2 } else { 0..0 };
        let read: Vec<usize> = columns.chain(more).collect();
        let scan = self.scan(&files, addressed, read, limit)?;
        Ok(Some(if addressed { self.with_addresses(scan, projection)? } else { scan }))
    }

    fn files(&self, addressed: bool) -> Result<Vec<(SnapshotFile, Arc<Segment>)>, Error> {
        let file_schema = self.table.schema();
        let mut files = Vec::new();
        for (position, segment) in self.table.shared_segments().iter().enumerate() {
            let Some(file) = segment.file() else { continue };
            let first = addressed.then(|| ScalarValue::UInt64(Some(address(position, 0))));
            files.push((file.planned(&file_schema, first.into_iter().collect())?, Arc::clone(segment)));
        }
        Ok(files)
    }

    fn scan(
        &self,
        files: &[(SnapshotFile, Arc<Segment>)],
        addressed: bool,
        read: Vec<usize>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let data = files.iter().map(|(file, _)| Arc::clone(&file.data)).collect();
        let held = |(_, segment): &(_, Arc<Segment>)| Arc::clone(segment) as Arc<dyn Any + Send + Sync>;
        let segments = files.iter().map(held).collect();
        let lease = Arc::new(Lease::new(data, segments));
        let mut schema = TableSchema::builder(self.table.schema());
        if addressed {
            let row = Field::new(ROW, DataType::Int64, false).with_extension_type(RowNumber);
            schema = schema
                .with_table_partition_cols(vec![Arc::new(Field::new(FIRST, DataType::UInt64, false))])
                .with_virtual_columns(vec![Arc::new(row)]);
        }
        let schema = schema.build();
        let table_schema = Arc::clone(schema.table_schema());
        let source = parquet_source(self.disk.store(), self.state, schema);
        let columns = ColumnScan::of_owned(self.disk.store().columns());
        let mut source = NamedSource::new(source, lease, columns);
        if addressed && limit.is_none() {
            // Statements that change rows ask for addresses, and change few rows as a rule.
            source = source.filtering_early();
        }
        let source: Arc<dyn FileSource> = Arc::new(source);
        let planned = |(file, segment): &(SnapshotFile, Arc<Segment>)| {
            file.planned_without(segment.deleted().left(segment.stored_rows()))
        };
        let group = FileGroup::new(files.iter().map(planned).collect());
        let groups = group.split_files(self.state.config().target_partitions());
        let mut config = FileScanConfigBuilder::new(self.disk.store().url().clone(), source);
        config = if addressed {
            // Joins with other tables are planned by how many rows there are.
            let rows = files.iter().map(|(_, segment)| segment.rows()).sum();
            let statistics = Statistics::new_unknown(&table_schema).with_num_rows(Precision::Exact(rows));
            config.with_file_groups(groups).with_statistics(statistics)
        } else {
            let (groups, statistics) = compute_all_files_statistics(groups, table_schema, true, false)?;
            config.with_file_groups(groups).with_statistics(statistics)
        };
        let config = config.with_projection_indices(Some(read))?.with_limit(limit);
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    /// The columns in the order that was asked for, with the sum of both parts as the address.
    fn with_addresses(
        &self,
        scan: Arc<dyn ExecutionPlan>,
        projection: &[usize],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let read = scan.schema();
        let column = |name: &str| -> Result<Arc<dyn PhysicalExpr>> {
            Ok(Arc::new(Column::new_with_schema(name, &read)?))
        };
        let row = Arc::new(CastExpr::new(column(ROW)?, DataType::UInt64, None));
        let address: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column(FIRST)?, Operator::Plus, row));
        let columns = projection.iter().map(|place| {
            let name = self.schema.field(*place).name();
            let value = if *place == self.table.schema().fields().len() {
                Arc::clone(&address)
            } else {
                column(name)?
            };
            Ok((value, name.clone()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, scan)?))
    }
}

fn external(error: bowshot_api::Error) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::External(Box::new(error))
}
