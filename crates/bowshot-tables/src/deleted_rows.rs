//! Rows of a file that are deleted while the file stays as it is. They are few: a scan skips them one by one.

use super::Error;
use parquet::arrow::arrow_reader::RowSelection;
use std::iter;
use std::sync::Arc;

/// Rows that a file may lose before it is written anew.
const MAX_ROWS: usize = 4096;
/// It may lose one of so many.
const MIN_ROWS_FOR_EACH: usize = 8;

/// Numbers of rows of a file, sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeletedRows(Arc<[u32]>);

impl DeletedRows {
    /// All rows of a file of so many but these, which are sorted.
    pub(super) fn all_but(left: &[u32], rows: usize) -> Self {
        let all = 0..u32::try_from(rows).unwrap_or(u32::MAX);
        Self(all.filter(|row| left.binary_search(row).is_err()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn numbers(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn contains(&self, row: usize) -> bool {
        u32::try_from(row).is_ok_and(|row| self.0.binary_search(&row).is_ok())
    }

    /// These and others. `None` if a file of so many rows is to be written anew.
    pub(super) fn with(&self, others: &[u32], rows: usize) -> Option<Self> {
        let mut all = [&self.0[..], others].concat();
        all.sort_unstable();
        all.dedup();
        (all.len() <= MAX_ROWS.min(rows / MIN_ROWS_FOR_EACH)).then(|| Self(all.into()))
    }

    /// Those of these that are not among others.
    pub(super) fn beyond(&self, others: &Self) -> Vec<u32> {
        self.0.iter().copied().filter(|row| !others.contains(*row as usize)).collect()
    }

    /// The number that a row has among those that are left.
    pub(super) fn place_among_left(&self, row: u32) -> u32 {
        row - self.0.partition_point(|deleted| *deleted < row) as u32
    }

    /// The rows of a file that are left, where not all are.
    pub(super) fn left(&self, rows: usize) -> Option<RowSelection> {
        let deleted = || self.0.iter().map(|row| *row as usize);
        let starts = iter::once(0).chain(deleted().map(|row| row + 1));
        let ranges = starts.zip(deleted().chain([rows])).map(|(start, end)| start..end);
        (!self.is_empty()).then(|| RowSelection::from_consecutive_ranges(ranges, rows))
    }

    /// As the catalog has them: the distances between them in groups of seven bits, the lowest first.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (mut bytes, mut next) = (Vec::new(), 0);
        for row in self.0.iter().copied() {
            let mut distance = row - next;
            while distance >= 0x80 {
                bytes.push(distance as u8 | 0x80);
                distance >>= 7;
            }
            bytes.push(distance as u8);
            next = row + 1;
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] has written of a file of so many rows.
    ///
    /// # Errors
    /// For bytes that mean no rows of it.
    pub(super) fn from_bytes(bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let (mut all, mut next, mut distance, mut shift) = (Vec::new(), 0_u64, 0_u64, 0);
        for byte in bytes {
            distance |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                let row = u32::try_from(next + distance).ok().filter(|row| (*row as usize) < rows);
                all.push(row.ok_or_else(damaged)?);
                (next, distance, shift) = (next + distance + 1, 0, 0);
            } else if shift > 28 {
                return Err(damaged());
            }
        }
        if shift == 0 { Ok(Self(all.into())) } else { Err(damaged()) }
    }
}

fn damaged() -> Error {
    let reason = "the numbers of the rows that are deleted from a file cannot be read".to_owned();
    Error::Catalog { doing: "is damaged", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[u32]) -> DeletedRows {
        DeletedRows::default().with(rows, usize::MAX).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        for rows in [&[][..], &[0], &[5, 0, 5, 1], &[127, 128, 129, 300, 70_000], &[u32::MAX - 1]] {
            let there = of(rows);
            assert_eq!(DeletedRows::from_bytes(&there.to_bytes(), u32::MAX as usize).unwrap(), there);
        }
        for bytes in [&[0x80][..], &[0xff; 6], &[9]] {
            assert!(DeletedRows::from_bytes(bytes, 9).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn those_that_are_left_are_selected() {
        let selected = |rows: &[u32]| of(rows).left(6).map(|left| left.row_count());
        assert_eq!([selected(&[]), selected(&[0]), selected(&[2, 3, 5])], [None, Some(5), Some(3)]);
        assert_eq!([1, 4].map(|row| of(&[0, 2, 3]).place_among_left(row)), [0, 1]);
        assert_eq!(of(&[1, 2, 7]).beyond(&of(&[2])), [1, 7]);
        assert_eq!(DeletedRows::all_but(&[1, 4], 6).numbers(), [0, 2, 3, 5]);
    }

    #[test]
    fn a_file_that_loses_much_is_written_anew() {
        let many: Vec<u32> = (0..5000).collect();
        let fits = |count: usize, rows| DeletedRows::default().with(&many[..count], rows).is_some();
        assert!(fits(10, 80) && !fits(11, 80) && fits(4096, 1 << 20) && !fits(4097, 1 << 20));
    }
}
