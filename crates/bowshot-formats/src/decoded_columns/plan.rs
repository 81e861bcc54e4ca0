//! The steps from a file of a scan to the batches of its row groups.

use super::read::{KeptRun, OpenFile};
use super::row_group_selection::{Choice, choose};
use super::scan::Scan;
use crate::row_source::PlannedFile;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetRowSelection};
use datafusion::physical_optimizer::pruning::FilePruner;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector};
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use std::sync::Arc;

pub(crate) struct ColumnPlanner {
    scan: Arc<Scan>,
    /// DataFusion's way.
    plain: Arc<dyn Morselizer>,
    file: PartitionedFile,
    planned: PlannedFile,
}

impl ColumnPlanner {
    /// The planner of a file, if its columns may be kept.
    pub(crate) fn of(
        scan: &Arc<Scan>,
        plain: &Arc<dyn Morselizer>,
        file: &PartitionedFile,
        planned: &PlannedFile,
    ) -> Option<Box<dyn MorselPlanner>> {
        scan.columns_of(planned)?;
        Some(Box::new(Self {
            scan: Arc::clone(scan),
            plain: Arc::clone(plain),
            file: file.clone(),
            planned: planned.clone(),
        }))
    }

    /// Whether the file's statistics say that no row passes. Joins may have learned that since the query was planned.
    fn is_pruned(&self) -> Result<bool> {
        let Some(predicate) = &self.scan.predicate else { return Ok(false) };
        let pruner =
            FilePruner::try_new(Arc::clone(predicate), &self.scan.file_schema, &self.file, Count::new());
        pruner.map_or(Ok(false), |mut pruner| pruner.should_prune())
    }

    /// Reads the footer, which is in the cache of footers as a rule.
    async fn open(self) -> Result<Box<dyn MorselPlanner>> {
        let Self { scan, plain, file, planned } = self;
        let uncounted = ExecutionPlanMetricsSet::new();
        let mut reader = scan.factory.create_reader(scan.partition, file.clone(), None, &uncounted)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let metadata = reader.get_metadata(Some(&options)).await?;
        Ok(Box::new(Opened { open: OpenFile { scan, file, planned, metadata }, plain }))
    }
}

impl MorselPlanner for ColumnPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        // Before anything is counted as used.
        if self.is_pruned()? {
            return Ok(None);
        }
        Ok(Some(MorselPlan::new().with_pending_planner(self.open())))
    }
}

struct Opened {
    open: OpenFile,
    plain: Arc<dyn Morselizer>,
}

impl MorselPlanner for Opened {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { open, plain } = *self;
        let chosen = choose(&open.scan, &open.file, &open.planned, &open.metadata);
        let Some(Choice { kept, places, groups, plain: others, left }) = chosen else {
            return plain.plan_file(open.file)?.plan();
        };
        let mut planners: Vec<Box<dyn MorselPlanner>> = Vec::new();
        if !others.is_empty() {
            planners.push(plain.plan_file(open.of_groups(&others))?);
        }
        let run: Box<dyn Morsel> = Box::new(KeptRun { open, kept, places, groups, left });
        // In no promised order.
        Ok(Some(MorselPlan::new().with_morsels(vec![run]).with_planners(planners)))
    }
}

impl OpenFile {
    /// The file with only these of its row groups, for DataFusion's source.
    fn of_groups(&self, numbers: &[usize]) -> PartitionedFile {
        let file = self.file.clone();
        let Some(left) = self.file.extension::<ParquetRowSelection>() else {
            let mut access = ParquetAccessPlan::new_none(self.metadata.num_row_groups());
            numbers.iter().for_each(|number| access.scan(*number));
            return file.with_extension(access);
        };
        let rows = |(number, group): (usize, &RowGroupMetaData)| {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            if numbers.contains(&number) { RowSelector::select(rows) } else { RowSelector::skip(rows) }
        };
        let groups: RowSelection = self.metadata.row_groups().iter().enumerate().map(rows).collect();
        file.with_extension(ParquetRowSelection::new(groups.intersection(left.selection())))
    }
}

bowshot_api::debug_fields!(ColumnPlanner {});

bowshot_api::debug_fields!(Opened {});
