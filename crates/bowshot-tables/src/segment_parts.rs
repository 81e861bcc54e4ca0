//! The segments that one was made of, by which a commit finds their rows again: those that were united, and the one that lost
//! rows and was written anew.

use super::deleted_rows::DeletedRows;
use super::segment::Segment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a segment remembers, so that what is known of a table that is changed for ever does not grow for ever: its parts,
const MAX_PARTS: usize = 4096;
/// and, as much as one of them, so many rows that were deleted.
const ROWS_AS_PART: usize = 256;
/// Segments below one another that are remembered, and how many stay of more. Each commit that changes rows in memory adds one, so that
/// a transaction finds its rows again after as many commits of others.
const MAX_DEPTH: usize = 1024;
const KEPT_DEPTH: usize = 512;

/// See the module: segments whose rows were put one behind the other, in their order.
#[derive(Debug)]
pub(super) struct Parts {
    direct: Vec<Part>,
    /// Segments in this and below, and what their deleted rows count.
    count: usize,
    /// Segments below one another.
    depth: usize,
}

#[derive(Debug, Clone)]
struct Part {
    id: u64,
    /// The number under which the rows were first stored.
    origin: u64,
    /// Rows as they were stored, deleted ones among them.
    stored: usize,
    /// Those of them that are not in the segment that was made of it.
    deleted: DeletedRows,
    /// What went into it.
    below: Option<Arc<Parts>>,
}

impl Parts {
    /// Of a segment that has the rows of these.
    pub(super) fn united(parts: &[Arc<Segment>]) -> Arc<Self> {
        let direct = parts.iter().map(|segment| Part::from_segment(segment, segment.deleted().clone()));
        Arc::new(Self::bounded(direct.collect()))
    }

    /// Of a segment that has the rows of this one but for some.
    pub(super) fn rest(whole: &Segment, gone: &[u32]) -> Arc<Self> {
        Arc::new(Self::bounded(vec![Part::from_segment(whole, whole.deleted().with(gone))]))
    }

    fn bounded(direct: Vec<Part>) -> Self {
        let mut all = Self::new(direct);
        if all.depth > MAX_DEPTH {
            all = all.to_depth(KEPT_DEPTH);
        }
        let mut depth = all.depth;
        while all.count > MAX_PARTS && depth > 1 {
            depth /= 2;
            all = all.to_depth(depth);
        }
        all
    }

    fn new(direct: Vec<Part>) -> Self {
        let below = || direct.iter().filter_map(|part| part.below.as_ref());
        let own = direct.iter().map(|part| 1 + part.deleted.len() / ROWS_AS_PART);
        let count = own.chain(below().map(|parts| parts.count)).sum();
        let depth = 1 + below().map(|parts| parts.depth).max().unwrap_or(0);
        Self { direct, count, depth }
    }

    /// The same without what is deeper.
    fn to_depth(&self, depth: usize) -> Self {
        let below = |part: &Part| {
            let parts = part.below.as_ref().filter(|_| depth > 1)?;
            Some(Arc::new(parts.to_depth(depth - 1)))
        };
        Self::new(self.direct.iter().map(|part| Part { below: below(part), ..part.clone() }).collect())
    }

    /// Those of `there` whose rows these are, if they are all there.
    pub(super) fn among(&self, there: &HashMap<u64, &Arc<Segment>>) -> Option<Vec<Arc<Segment>>> {
        let mut found = Vec::new();
        self.find(there, &mut found)?;
        Some(found)
    }

    fn find(&self, there: &HashMap<u64, &Arc<Segment>>, found: &mut Vec<Arc<Segment>>) -> Option<()> {
        for part in &self.direct {
            match (there.get(&part.id), &part.below) {
                (Some(segment), _) if part.deleted == *segment.deleted() => found.push(Arc::clone(segment)),
                (None, Some(below)) if part.deleted.is_empty() => below.find(there, found)?,
                _ => return None,
            }
        }
        Some(())
    }

    /// For each row whether it was stored under none of these numbers.
    pub(super) fn rows_beyond(&self, origins: &HashSet<u64>) -> Vec<bool> {
        let mut all = Vec::new();
        for part in &self.direct {
            let rows = match &part.below {
                _ if origins.contains(&part.origin) => vec![false; part.stored],
                Some(below) => below.rows_beyond(origins),
                None => vec![true; part.stored],
            };
            if part.deleted.is_empty() {
                all.extend(rows);
                continue;
            }
            let mut deleted = part.deleted.numbers().peekable();
            let left = rows.into_iter().zip(0..).filter(|(_, row)| deleted.next_if_eq(row).is_none());
            all.extend(left.map(|(is_new, _)| is_new));
        }
        all
    }

    /// Whether what was stored under a number is among these or below.
    pub(super) fn have(&self, origin: u64) -> bool {
        let is_in = |part: &Part| part.below.as_ref().is_some_and(|below| below.have(origin));
        self.direct.iter().any(|part| part.origin == origin || is_in(part))
    }

    /// Where a row that was stored under a number is among all rows. `None` if it is not among them.
    pub(super) fn place_of_row(&self, origin: u64, row: u32) -> Option<u32> {
        let mut first = 0;
        for part in &self.direct {
            let place = match &part.below {
                _ if part.origin == origin => Some(row),
                Some(below) => below.place_of_row(origin, row),
                None => None,
            };
            if let Some(place) = place {
                let is_left = !part.deleted.contains(place as usize);
                return is_left.then(|| first + part.deleted.place_among_left(place));
            }
            first += u32::try_from(part.stored - part.deleted.len()).ok()?;
        }
        None
    }

    /// The rows stored under a number, of which alone these are what is left, that are gone, sorted; `deleted` are the rows that have gone
    /// since.
    pub(super) fn lost_of(&self, origin: u64, deleted: &DeletedRows) -> Option<Vec<u32>> {
        let [part] = self.direct.as_slice() else { return None };
        let mut lost: Vec<u32> = if part.origin == origin {
            part.deleted.numbers().collect()
        } else {
            part.below.as_ref()?.lost_of(origin, &part.deleted)?
        };
        let since = DeletedRows::default().with(&lost).numbers_before(deleted.numbers());
        lost.extend(since);
        lost.sort_unstable();
        Some(lost)
    }
}

impl Part {
    fn from_segment(segment: &Segment, deleted: DeletedRows) -> Self {
        let (id, origin, stored) = (segment.id(), segment.origin(), segment.stored_rows());
        Self { id, origin, stored, deleted, below: segment.parts().cloned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: u64, stored: usize, deleted: &[u32], below: Option<Parts>) -> Part {
        let deleted = DeletedRows::default().with(deleted);
        Part { id, origin: id, stored, deleted, below: below.map(Arc::new) }
    }

    #[test]
    fn rows_are_found_again_through_what_was_made_of_them() {
        // 1 has lost row 2, what was left of it row 1, and that was united with 3 behind 4.
        let first = Parts::new(vec![part(1, 5, &[2], None)]);
        let second = Parts::new(vec![part(2, 4, &[1], Some(first))]);
        assert_eq!(second.lost_of(1, &DeletedRows::default()), Some(vec![1, 2]));
        let more = DeletedRows::default().with(&[1]);
        assert_eq!(second.lost_of(1, &more), Some(vec![1, 2, 3]));
        let all =
            Parts::new(vec![part(4, 2, &[], None), part(3, 3, &[], Some(second)), part(5, 1, &[], None)]);
        let places: Vec<Option<u32>> = (0..5).map(|row| all.place_of_row(1, row)).collect();
        assert_eq!(places, [Some(2), None, None, Some(3), Some(4)]);
        assert_eq!((all.place_of_row(5, 0), all.place_of_row(9, 0)), (Some(5), None));
        assert!(all.have(1) && all.have(5) && !all.have(9));
        assert_eq!((all.lost_of(1, &DeletedRows::default()), all.count, all.depth), (None, 5, 3));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut parts = Parts::bounded(vec![part(0, 1000, &[], None)]);
        for id in 1..2000 {
            parts = Parts::bounded(vec![part(id, 1000, &[], Some(parts))]);
            assert!(parts.depth <= MAX_DEPTH);
        }
        assert!(parts.have(1999) && parts.have(1500) && !parts.have(0));
        let wide = |first: u64| (first..first + 3000).map(|id| part(id, 1, &[], None)).collect::<Vec<Part>>();
        let narrow = Parts::bounded(vec![
            part(9000, 3000, &[], Some(Parts::new(wide(0)))),
            part(9001, 3000, &[], Some(Parts::new(wide(4000)))),
        ]);
        assert_eq!(narrow.count, 2);
    }
}
