//! Rows of a file that are deleted while the file stays as it is, as a bitmap.

use super::Error;
use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringBitmap;
use std::iter;
use std::sync::Arc;

/// A statement that leaves a file without more than one of so many rows writes it anew.
const MIN_ROWS_FOR_EACH: usize = 5;
/// Deleted rows of one file take at most as many bytes of the catalog as the file has, or this; then the file is rewritten.
const MIN_NOTED_BYTES: u64 = 1 << 20;
/// Bytes of a row in the catalog, about.
const ROW_BYTES: u64 = 2;
/// Rows of a file for each deleted one, above which ranges take less room than a bit for each row.
const SPARSE_ROWS: usize = 256;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DeletedRows {
    rows: Arc<RoaringBitmap>,
    /// Bytes that the catalog has taken for these and for those from which they were made, about.
    noted_bytes: u64,
}

impl DeletedRows {
    fn new(rows: RoaringBitmap, noted_before: u64) -> Self {
        let noted_bytes = noted_before.saturating_add(ROW_BYTES * rows.len());
        Self { rows: Arc::new(rows), noted_bytes }
    }

    pub(super) fn all_but(left: &[u32], rows: usize) -> Self {
        let mut all = RoaringBitmap::new();
        all.insert_range(0..u32::try_from(rows).unwrap_or(u32::MAX));
        Self::new(all - left.iter().collect::<RoaringBitmap>(), 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() as usize
    }

    /// Their numbers, in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter()
    }

    pub(super) fn contains(&self, row: usize) -> bool {
        u32::try_from(row).is_ok_and(|row| self.rows.contains(row))
    }

    pub(super) fn with(&self, others: &[u32]) -> Self {
        let mut rows = RoaringBitmap::clone(&self.rows);
        rows.extend(others);
        Self::new(rows, self.noted_bytes)
    }

    /// Whether a file of so many rows and bytes may stay without these.
    pub(super) fn are_few(&self, file_rows: usize, file_bytes: u64) -> bool {
        self.len() <= file_rows / MIN_ROWS_FOR_EACH && self.noted_bytes <= file_bytes.max(MIN_NOTED_BYTES)
    }

    pub(super) fn beyond(&self, others: &Self) -> Vec<u32> {
        (&*self.rows - &*others.rows).iter().collect()
    }

    /// The number that a row has among those that are left, of which it is one.
    pub(super) fn place_among_left(&self, row: u32) -> u32 {
        row - self.rows.rank(row) as u32
    }

    /// The numbers that rows which are left had before these were deleted; both are in order.
    pub(super) fn numbers_before(&self, places: impl Iterator<Item = u32>) -> Vec<u32> {
        let (mut gone, mut before) = (self.numbers().peekable(), 0);
        let number = |place: u32| {
            while gone.next_if(|row| *row <= place + before).is_some() {
                before += 1;
            }
            place + before
        };
        places.map(number).collect()
    }

    pub(super) fn left_mask(&self, rows: usize) -> BooleanBuffer {
        let mut left = BooleanBufferBuilder::new(rows);
        left.append_n(rows, true);
        self.numbers().for_each(|row| left.set_bit(row as usize, false));
        left.finish()
    }

    /// The rows of a file that are left, where not all are.
    pub(super) fn left(&self, rows: usize) -> Option<RowSelection> {
        if self.is_empty() {
            return None;
        }
        if self.len() > rows / SPARSE_ROWS {
            return Some(RowSelection::from_boolean_buffer(self.left_mask(rows)));
        }
        let deleted = || self.numbers().map(|row| row as usize);
        let starts = iter::once(0).chain(deleted().map(|row| row + 1));
        let ranges = starts.zip(deleted().chain([rows])).map(|(start, end)| start..end);
        Some(RowSelection::from_consecutive_ranges(ranges, rows))
    }

    /// As the catalog has them: the distances between them in groups of seven bits, the lowest first.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (mut bytes, mut next) = (Vec::new(), 0);
        for row in self.numbers() {
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
        let (mut all, mut next, mut distance, mut shift) = (RoaringBitmap::new(), 0_u64, 0_u64, 0);
        for byte in bytes {
            distance |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                let row = u32::try_from(next + distance).ok().filter(|row| (*row as usize) < rows);
                all.insert(row.ok_or_else(damaged)?);
                (next, distance, shift) = (next + distance + 1, 0, 0);
            } else if shift > 28 {
                return Err(damaged());
            }
        }
        if shift == 0 { Ok(Self::new(all, 0)) } else { Err(damaged()) }
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
        DeletedRows::default().with(rows)
    }

    #[test]
    fn what_is_written_is_read() {
        let many: Vec<u32> = (0..200_000).filter(|row| row % 5 != 0).collect();
        for rows in [&[][..], &[0], &[5, 0, 5, 1], &[127, 128, 129, 300, 70_000], &many[..], &[u32::MAX - 1]]
        {
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
        // Few are left out by ranges, many by a mask.
        let few = of(&[3, 4, 999]).left(1000).unwrap();
        assert!(
            few.as_mask().is_none()
                && few == RowSelection::from_boolean_buffer(of(&[3, 4, 999]).left_mask(1000))
        );
        assert_eq!([1, 4].map(|row| of(&[0, 2, 3]).place_among_left(row)), [0, 1]);
        assert_eq!(of(&[0, 2, 3, 6]).numbers_before([0, 1, 2, 3].into_iter()), [1, 4, 5, 7]);
        assert_eq!(of(&[1, 2, 7]).beyond(&of(&[2])), [1, 7]);
        assert_eq!(DeletedRows::all_but(&[1, 4], 6), of(&[0, 2, 3, 5]));
    }

    #[test]
    fn a_file_that_loses_much_is_written_anew() {
        let many: Vec<u32> = (0..300_000).collect();
        let stays = |count: usize, rows| of(&many[..count]).are_few(rows, 0);
        assert!(stays(10, 50) && !stays(11, 50) && stays(200_000, 1 << 20) && !stays(300_000, 1 << 20));
        // Nor is all that is noted of it, one commit after the other, more than it has itself.
        let mut deleted = of(&many[..100_000]);
        let commits = many[100_000..].chunks(1).take_while(|row| {
            deleted = deleted.with(row);
            deleted.are_few(1 << 20, 8 << 20)
        });
        assert_eq!(commits.count(), 40);
    }
}
