//! Which row groups of a file a scan reads, and which of them from cached columns.

use super::PIECE_ROWS;
use super::file::{ChunkId, FileColumns};
use super::scan::Scan;
use crate::row_source::PlannedFile;
use crate::schema::Places;
use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileMetrics;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetRowSelection, RowGroupAccessPlanFilter,
};
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use std::collections::HashMap;
use std::sync::Arc;

/// Conditions are selective if statistics leave at most one of so many row groups: the column is in order then, and pages
/// of the groups that are left can be skipped too.
const SELECTIVE_SHARE: usize = 4;

pub(super) struct Choice {
    pub(super) kept: Arc<FileColumns>,
    /// Places in the file of the columns that are read.
    pub(super) places: Vec<usize>,
    /// Row groups that are read by way of the kept columns.
    pub(super) groups: Vec<Group>,
    /// Those that DataFusion's source reads.
    pub(super) plain: Vec<usize>,
    /// For each row of the file whether it is left, where some are deleted.
    pub(super) left: Option<BooleanBuffer>,
}

/// A row group that is read by way of the kept columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) number: usize,
    /// Whether this says nothing about the use of whole columns: nothing is counted, and nothing more kept.
    pub(super) passing: bool,
}

/// The row groups that a scan reads of a file; `None` if all of it is DataFusion's to read.
pub(super) fn choose(
    scan: &Scan,
    file: &PartitionedFile,
    planned: &PlannedFile,
    metadata: &ParquetMetaData,
) -> Option<Choice> {
    let (kept, places) = (scan.columns_of(planned)?, places(scan, planned)?);
    if file.extension::<ParquetAccessPlan>().is_some() || will_learn(scan) {
        return None;
    }
    let left = file.extension::<ParquetRowSelection>().map(|left| mask(left.selection()));
    let rows = || metadata.row_groups().iter().map(RowGroupMetaData::num_rows).sum::<i64>();
    if left.as_ref().is_some_and(|left| i64::try_from(left.len()) != Ok(rows())) {
        // DataFusion's source has an error for that.
        return None;
    }
    let pruning = pruning(scan, file, planned);
    let chosen = row_groups(file, planned, metadata, pruning.as_ref());
    let (mut groups, mut plain) = (Vec::new(), Vec::new());
    for (number, skips_pages) in chosen {
        let Some(group) = metadata.row_groups().get(number) else { continue };
        let passing = scan.limited || skips_pages || is_looked_up(scan, group);
        if takes_kept_way(&kept, number, &places, passing, scan.limited) {
            groups.push(Group { number, passing });
        } else {
            plain.push(number);
        }
    }
    (!groups.is_empty()).then_some(Choice { kept, places, groups, plain, left })
}

fn mask(selection: &RowSelection) -> BooleanBuffer {
    if let Some(mask) = selection.as_mask() {
        return mask.clone();
    }
    let mut mask = BooleanBufferBuilder::new(selection.row_count() + selection.skipped_row_count());
    selection.iter().for_each(|rows| mask.append_n(rows.row_count, !rows.skip));
    mask.finish()
}

/// Whether conditions may still get tighter while the file is read, as those of `ORDER BY … LIMIT` do. DataFusion's source
/// reads the most promising row groups first then, and stops early. Not so below a join, which takes its rows from the scan
/// in any order, and has its own condition ready before it asks for the first one.
fn will_learn(scan: &Scan) -> bool {
    let Some(predicate) = &scan.predicate else { return false };
    let all = DynamicFilterTracking::classify(predicate);
    let mut parts = split_conjunction(predicate).into_iter().map(DynamicFilterTracking::classify);
    matches!(all, DynamicFilterTracking::Watching(_))
        && !parts.any(|part| matches!(part, DynamicFilterTracking::AllComplete))
}

/// Where the file has the columns that are read; `None` unless it has all, in the types of the table.
fn places(scan: &Scan, planned: &PlannedFile) -> Option<Vec<usize>> {
    let there = &planned.facts.columns;
    let places = Places::of(there);
    let place = |(expected, field): (usize, &Arc<Field>)| {
        let place = places.find(field.name(), expected)?;
        (there.field(place).data_type() == field.data_type()).then_some(place)
    };
    scan.read_schema.fields().iter().enumerate().map(place).collect()
}

/// What the query's conditions say about statistics of the file; joins may have added theirs by now. Conditions that say
/// nothing about them are none.
fn pruning(scan: &Scan, file: &PartitionedFile, planned: &PlannedFile) -> Option<PruningPredicate> {
    let mut predicate = scan.predicate.clone()?;
    let partitions = scan.table_schema.fields().iter().skip(scan.file_schema.fields().len());
    let values: HashMap<&str, &ScalarValue> =
        partitions.map(|field| field.name().as_str()).zip(&file.partition_values).collect();
    if !values.is_empty() {
        predicate = replace_columns_with_literals(predicate, &values).ok()?;
    }
    let there = &planned.facts.columns;
    if there.fields() != scan.file_schema.fields() {
        // The file's columns are others, or in another order.
        predicate = adapted(scan, planned, predicate).ok()?;
    }
    let built = PruningPredicateBuilder::new().with_file_schema(Arc::clone(there));
    built.try_build(predicate).ok().filter(|pruning| !pruning.always_true())
}

fn adapted(
    scan: &Scan,
    planned: &PlannedFile,
    predicate: Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let there = &planned.facts.columns;
    let adapter =
        DefaultPhysicalExprAdapterFactory.create(Arc::clone(&scan.file_schema), Arc::clone(there))?;
    PhysicalExprSimplifier::new(there).simplify(adapter.rewrite(predicate)?)
}

/// The row groups of the file's range that may hold rows that pass, each with whether most of its pages may be skipped.
fn row_groups(
    file: &PartitionedFile,
    planned: &PlannedFile,
    metadata: &ParquetMetaData,
    pruning: Option<&PruningPredicate>,
) -> Vec<(usize, bool)> {
    let groups = metadata.row_groups();
    let mut chosen = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(groups.len()));
    if let Some(range) = &file.range {
        chosen.prune_by_range(groups, range);
    }
    let there = chosen.remaining_row_group_count();
    if let Some(pruning) = pruning {
        // DataFusion's source counts what it prunes itself; this is for the choice alone.
        let uncounted = ParquetFileMetrics::new(0, "", &ExecutionPlanMetricsSet::new());
        let leaves = metadata.file_metadata().schema_descr();
        chosen.prune_by_statistics(&planned.facts.columns, leaves, groups, pruning, &uncounted);
    }
    let selective = SELECTIVE_SHARE * chosen.remaining_row_group_count() <= there;
    let skips_pages = |number: usize| {
        let all_pass = chosen.is_fully_matched().get(number).copied().unwrap_or(false);
        let indexed = |group: &RowGroupMetaData| {
            group.columns().iter().any(|chunk| chunk.column_index_offset().is_some())
        };
        selective && !all_pass && groups.get(number).is_some_and(indexed)
    };
    chosen.row_group_indexes().map(|number| (number, skips_pages(number))).collect()
}

/// Whether a Bloom filter may rule out a row group, which takes no reading of columns.
fn is_looked_up(scan: &Scan, group: &RowGroupMetaData) -> bool {
    let filtered = |name: &String| {
        let of_name = |path: &[String]| path.len() == 1 && path.first() == Some(name);
        let mut chunks = group.columns().iter();
        chunks.any(|chunk| chunk.bloom_filter_offset().is_some() && of_name(chunk.column_path().parts()))
    };
    scan.looked_up.iter().any(filtered)
}

/// Whether a row group is read by way of the kept columns. If it is not, its use is counted here; else when it is read.
fn takes_kept_way(kept: &FileColumns, number: usize, places: &[usize], passing: bool, limited: bool) -> bool {
    let mut chunks = places.iter().map(|place| ChunkId::new(number, *place));
    match (passing, limited) {
        // Whatever is there saves reading it.
        (true, true) => chunks.any(|chunk| kept.find(chunk).is_some()),
        // Only if that is less work than finding the rows in the file.
        (true, false) => chunks.all(|chunk| kept.find(chunk).is_some()),
        (false, _) => {
            let of_use = chunks.clone().any(|chunk| kept.is_of_use(chunk));
            if !of_use {
                chunks.for_each(|chunk| _ = kept.use_chunk(chunk));
            }
            of_use
        }
    }
}

/// Bytes that a column of a row group will take, roughly: texts may take more than this.
pub(super) fn estimate(data_type: &DataType, place: usize, group: &RowGroupMetaData) -> u64 {
    // A footer may claim anything.
    let rows = u64::try_from(group.num_rows()).unwrap_or(0).min(1 << 40);
    let pieces = rows.div_ceil(PIECE_ROWS as u64);
    let nulls = rows / 8 + 256 * pieces;
    let leaves = group.schema_descr();
    let mut chunks = group
        .columns()
        .iter()
        .enumerate()
        .filter(|(leaf, _)| leaves.get_column_root_idx(*leaf) == place)
        .map(|(_, chunk)| chunk);
    if let Some(width) = data_type.primitive_width() {
        let packed = chunks.next().and_then(|chunk| packed_width(data_type, width, chunk));
        return nulls + rows * packed.unwrap_or(width) as u64;
    }
    let texts = chunks.map(|chunk| {
        // Of a dictionary, each text is there once, as in the file.
        let once = matches!(data_type, DataType::Dictionary(..));
        let texts = chunk.unencoded_byte_array_data_bytes().filter(|_| !once);
        let written = texts.unwrap_or_else(|| chunk.uncompressed_size());
        u64::try_from(written).unwrap_or(0)
    });
    nulls + 4 * rows + texts.fold(0, u64::saturating_add).min(1 << 50)
}

/// Bytes of each value of a column chunk if its pieces are packed, as far as the statistics tell.
fn packed_width(data_type: &DataType, width: usize, chunk: &ColumnChunkMetaData) -> Option<usize> {
    let statistics = chunk.statistics()?;
    let range = match statistics {
        Statistics::Int32(range) => i64::from(*range.max_opt()?).checked_sub(i64::from(*range.min_opt()?)),
        Statistics::Int64(range) => range.max_opt()?.checked_sub(*range.min_opt()?),
        _ => None,
    };
    // A NULL's place holds a zero as a rule, which may be far away.
    let range = range.filter(|_| statistics.null_count_opt() == Some(0));
    let needed = match (range, data_type) {
        (Some(range), _) => {
            (1 + u64::try_from(range).ok()?.checked_ilog2().unwrap_or(0)).div_ceil(8) as usize
        }
        (None, DataType::Decimal128(precision, _)) if *precision <= DECIMAL64_MAX_PRECISION => 8,
        (None, _) => return None,
    };
    let needed = needed.next_power_of_two();
    (needed <= width / 2 && !data_type.is_floating()).then_some(needed)
}
