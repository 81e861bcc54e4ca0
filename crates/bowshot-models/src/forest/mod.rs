//! Forests of decision trees. Readers describe trees as in their files ([`build::Node`]); [`build::Builder`] checks them and lays nodes out;
//! [`Forest::scores`] evaluates blocks of rows. `T` is the type of features, `S` that of sums: 32 bits for XGBoost, 64 for LightGBM.

pub(crate) mod build;
mod evaluation;
mod number;

pub(crate) use number::Number;
use std::ops::Range;

/// Rows that go through the forest together: their features stay in the fastest cache while all trees are walked.
pub(crate) const BLOCK: usize = 128;

/// The bit of [`Packed::feature`] that sends a missing value to the left.
const MISSING_LEFT: u32 = 1 << 31;
/// The bit of [`Packed::feature`] that says that [`Packed::threshold`] is the place of a [`Special`].
const SPECIAL: u32 = 1 << 30;
/// The bits of [`Packed::feature`] that are the feature.
const FEATURE: u32 = SPECIAL - 1;

/// A node as it is walked: left if the feature is below the threshold. A leaf leads to itself on both sides, so that a
/// walk needs no question whether it has arrived.
#[derive(Debug, Clone, Copy)]
struct Packed<T> {
    /// What the feature is compared with. Of a leaf: the place of its weights, where it has several.
    threshold: T,
    feature: u32,
    left: u32,
    right: u32,
}

/// A question that is no comparison with a threshold; yes leads to the left.
#[derive(Debug, Clone)]
enum Special<T> {
    /// Is the feature one of these categories? They are bits of `Forest::words`.
    OneOf { words: Range<usize>, truncated: bool },
    /// At most this, where zero counts as missing.
    AtMostZeroMissing(T),
    /// Exactly this.
    Equal(T),
    /// Anything that is there.
    Present,
}

/// A tree: its first node, and what its leaves give.
#[derive(Debug, Clone, Copy)]
struct Tree {
    root: u32,
    /// The output that its leaves add to; none if each leaf has weights for all.
    output: Option<u32>,
    /// Splits between its root and its farthest leaf.
    depth: u32,
}

/// Trees whose leaves are summed up.
#[derive(Debug)]
pub(crate) struct Forest<T, S> {
    nodes: Vec<Packed<T>>,
    /// For each node what it adds, where its tree adds to one output.
    values: Vec<S>,
    /// What leaves with weights for all outputs add.
    weights: Vec<S>,
    specials: Vec<Special<T>>,
    words: Vec<u32>,
    trees: Vec<Tree>,
    features: usize,
    base: Vec<S>,
    /// Where the sums are divided by this before they are scores.
    divisor: Option<S>,
}

impl<T, S> Forest<T, S> {
    /// How many numbers there are for each row.
    pub(crate) fn outputs(&self) -> usize {
        self.base.len()
    }

    /// How many columns the trees may ask for.
    pub(crate) fn features(&self) -> usize {
        self.features
    }

    /// How many trees there are.
    pub(crate) fn trees(&self) -> usize {
        self.trees.len()
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }
}
