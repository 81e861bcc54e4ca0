//! Small sets of relations.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RelationSet(pub(super) u64);

impl RelationSet {
    /// So many relations a set can tell apart.
    pub(super) const LIMIT: usize = u64::BITS as usize;

    /// The set of one relation; of none if there are more than a set can tell apart.
    pub(super) fn of(relation: usize) -> Self {
        Self(u32::try_from(relation).ok().and_then(|shift| 1_u64.checked_shl(shift)).unwrap_or(0))
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) fn has(self, relation: usize) -> bool {
        self.meets(Self::of(relation))
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(next)
        })
    }
}
