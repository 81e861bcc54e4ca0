//! Splits the files of a scan between tasks. Equal shares of all bytes would leave slivers at the ends of files, which cost a whole row
//! group each. So files are cut into equal pieces, and the largest piece goes to the task with the least bytes (Graham, "Bounds on
//! multiprocessing timing anomalies", 1969). The same files give the same pieces, so that cached columns stay where they are.

use datafusion::catalog::memory::DataSourceExec;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{DistributedLeafExec, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse};
use std::cmp::Reverse;
use std::sync::Arc;

/// Smaller pieces hardly contain a row group.
const LEAST_BYTES: u64 = 4 << 20;
/// By how much pieces may be smaller than an equal share.
const MAX_SPLIT_FACTOR: u64 = 4;
/// By how many percent a group may exceed its share before files are split finer.
const TOLERANCE_PERCENT: u64 = 5;

/// The scan of each task, with as many partitions as the scan has here. Scans with an order or a partitioning are left
/// to datafusion-distributed.
pub(crate) fn split_files(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    if scan.output_partitioning.is_some() || !scan.output_ordering.is_empty() {
        return None;
    }
    let groups = event.plan.output_partitioning().partition_count() * event.task_count;
    let files = scan.file_groups.iter().flat_map(FileGroup::iter);
    let mut rest = scan.clone();
    rest.file_groups.clear();
    let mut scans = vec![rest; event.task_count];
    for (index, group) in distribute(merge_ranges(files), groups).into_iter().enumerate() {
        scans[index % event.task_count].file_groups.push(FileGroup::new(group));
    }
    let scans =
        scans.into_iter().map(|scan| DataSourceExec::from_data_source(scan) as Arc<dyn ExecutionPlan>);
    let leaf = DistributedLeafExec::try_new(Arc::clone(event.plan), scans);
    Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// Joins adjacent ranges of files.
fn merge_ranges<'a>(pieces: impl Iterator<Item = &'a PartitionedFile>) -> Vec<PartitionedFile> {
    let mut files: Vec<PartitionedFile> = Vec::new();
    for piece in pieces {
        let (start, end) = piece.range();
        match files.last_mut() {
            Some(last)
                if last.object_meta.location == piece.object_meta.location && last.range().1 == start =>
            {
                let (first, _) = last.range();
                last.range = Some(range(first, end));
            }
            _ => files.push(piece.clone()),
        }
    }
    files
}

/// Distributes files over groups, as evenly as splits allow.
fn distribute(files: Vec<PartitionedFile>, groups: usize) -> Vec<Vec<PartitionedFile>> {
    let total: u64 = files.iter().map(PartitionedFile::effective_size).sum();
    let share = total.div_ceil(groups.max(1) as u64).max(1);
    let bound = share + share * TOLERANCE_PERCENT / 100;
    let attempts = (1..=MAX_SPLIT_FACTOR).map(|finer| {
        let most = (share / finer).max(LEAST_BYTES.min(share));
        assign(files.iter().flat_map(|file| cut(file, most)).collect(), groups)
    });
    let mut best: Option<(u64, Vec<Vec<PartitionedFile>>)> = None;
    for (largest, assigned) in attempts {
        if best.as_ref().is_none_or(|(least, _)| largest < *least) {
            best = Some((largest, assigned));
        }
        if largest <= bound {
            break;
        }
    }
    best.map(|(_, assigned)| assigned).unwrap_or_default()
}

/// Splits a file into equal pieces of about `bytes`.
fn cut(file: &PartitionedFile, bytes: u64) -> Vec<PartitionedFile> {
    let (start, end) = file.range();
    let size = end.saturating_sub(start);
    let pieces = ((size + bytes / 2) / bytes).max(1);
    if pieces == 1 {
        return vec![file.clone()];
    }
    let at = |piece: u64| start + size / pieces * piece + size % pieces * piece / pieces;
    let piece = |number| PartitionedFile { range: Some(range(at(number), at(number + 1))), ..file.clone() };
    (0..pieces).map(piece).collect()
}

/// Assigns the largest piece first, each to the smallest group; within a group the order of the table stays. Also returns the
/// bytes of the largest group.
fn assign(pieces: Vec<PartitionedFile>, groups: usize) -> (u64, Vec<Vec<PartitionedFile>>) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&index| Reverse(pieces.get(index).map_or(0, PartitionedFile::effective_size)));
    let mut loads = vec![(0u64, Vec::new()); groups.max(1)];
    for index in order {
        let Some(piece) = pieces.get(index) else { continue };
        if let Some((load, taken)) = loads.iter_mut().min_by_key(|(load, _)| *load) {
            *load += piece.effective_size();
            taken.push(index);
        }
    }
    let largest = loads.iter().map(|(load, _)| *load).max().unwrap_or(0);
    let group = |mut taken: Vec<usize>| {
        taken.sort_unstable();
        taken.into_iter().filter_map(|index| pieces.get(index).cloned()).collect()
    };
    (largest, loads.into_iter().map(|(_, taken)| group(taken)).collect())
}

fn range(start: u64, end: u64) -> FileRange {
    FileRange { start: start.cast_signed(), end: end.cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn file(name: &str, bytes: u64) -> PartitionedFile {
        PartitionedFile::new(name, bytes)
    }

    fn bytes(groups: &[Vec<PartitionedFile>]) -> Vec<u64> {
        groups.iter().map(|group| group.iter().map(PartitionedFile::effective_size).sum()).collect()
    }

    #[test]
    fn files_of_one_size_are_cut_in_the_middle_and_not_beside_it() {
        let files: Vec<_> = [54_251_453, 54_255_739, 54_299_932, 54_300_618]
            .into_iter()
            .enumerate()
            .map(|(number, bytes)| file(&number.to_string(), bytes))
            .collect();
        let groups = distribute(files, 8);
        assert!(groups.iter().all(|group| group.len() == 1), "{groups:?}");
    }

    #[test]
    fn no_byte_is_lost_or_doubled() {
        for (sizes, groups) in [
            (vec![1], 4),
            (vec![0, 0, 7], 3),
            (vec![100 * MB], 8),
            (vec![100 * MB, 3, 17 * MB + 1, 64 * MB], 6),
            ((1..200).map(|n| n * 91_331).collect(), 8),
            (vec![MB; 3], 8),
            (vec![], 2),
        ] {
            let files: Vec<_> =
                sizes.iter().enumerate().map(|(n, bytes)| file(&n.to_string(), *bytes)).collect();
            let assigned = distribute(files.clone(), groups);
            assert_eq!(assigned.len(), groups);
            for of in &files {
                let mut ranges: Vec<_> = assigned
                    .iter()
                    .flatten()
                    .filter(|piece| piece.object_meta.location == of.object_meta.location)
                    .map(PartitionedFile::range)
                    .collect();
                ranges.sort_unstable();
                assert_eq!(ranges.first().map(|range| range.0), Some(0));
                assert_eq!(ranges.last().map(|range| range.1), Some(of.object_meta.size));
                assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
            }
        }
    }

    #[test]
    fn no_group_has_much_more_than_its_share() {
        for (sizes, groups) in [
            (vec![1000 * MB], 8),
            (vec![54 * MB; 3], 8),
            (vec![900 * MB, 30 * MB, 60 * MB, 10 * MB], 8),
            ((1..300).map(|n| n * 91_331).collect::<Vec<_>>(), 16),
        ] {
            let files = sizes.iter().enumerate().map(|(n, bytes)| file(&n.to_string(), *bytes)).collect();
            let share = sizes.iter().sum::<u64>() / groups as u64;
            let largest = bytes(&distribute(files, groups)).into_iter().max().unwrap();
            assert!(largest * 100 <= share * 115, "{largest} of {share}");
        }
    }

    #[test]
    fn pieces_that_were_cut_before_are_put_together() {
        let piece = |from, to| PartitionedFile { range: Some(range(from, to)), ..file("a", 100) };
        let files = merge_ranges([piece(0, 40), piece(40, 100), file("b", 5), file("a", 100)].iter());
        let found: Vec<_> =
            files.iter().map(|file| (file.object_meta.location.to_string(), file.range())).collect();
        let a = || "a".to_owned();
        assert_eq!(found, [(a(), (0, 100)), ("b".to_owned(), (0, 5)), (a(), (0, 100))]);
    }
}
