//! The steps from a file of a scan to the batches of its row groups.

use super::choose::{Choice, choose};
use super::read::{KeptRun, OpenFile};
use super::scan::Scan;
use crate::row_source::PlannedFile;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use datafusion::physical_optimizer::pruning::FilePruner;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::file::metadata::PageIndexPolicy;
use std::fmt;
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

/// A file whose footer is known.
struct Opened {
    open: OpenFile,
    plain: Arc<dyn Morselizer>,
}

impl MorselPlanner for Opened {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { open, plain } = *self;
        let chosen = choose(&open.scan, &open.file, &open.planned, &open.metadata);
        let Some(Choice { kept, places, groups, plain: others }) = chosen else {
            return plain.plan_file(open.file)?.plan();
        };
        let mut planners: Vec<Box<dyn MorselPlanner>> = Vec::new();
        if !others.is_empty() {
            let mut access = ParquetAccessPlan::new_none(open.metadata.num_row_groups());
            others.into_iter().for_each(|number| access.scan(number));
            planners.push(plain.plan_file(open.file.clone().with_extension(access))?);
        }
        let run: Box<dyn Morsel> = Box::new(KeptRun { open, kept, places, groups });
        // In no promised order.
        Ok(Some(MorselPlan::new().with_morsels(vec![run]).with_planners(planners)))
    }
}

impl fmt::Debug for ColumnPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnPlanner").field("file", &self.planned.data.path()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("file", &self.open.planned.data.path()).finish_non_exhaustive()
    }
}
