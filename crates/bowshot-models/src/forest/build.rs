//! Checks trees and makes a [`Forest`] of them. Every index of a file is checked, so that evaluation can neither leave a tree nor loop.

use super::{Forest, MISSING_LEFT, Number, Packed, SPECIAL, Special, Tree};
use crate::error::{Error, Result};
use crate::limits::{self, within};
use std::ops::Range;

/// A question that a split asks; yes leads to the left.
#[derive(Debug, Clone)]
pub(crate) enum Test<T> {
    Below(T),
    AtMost(T),
    /// At most this, where zero counts as missing.
    AtMostZeroMissing(T),
    /// One of the categories whose bits are set. `truncated` is true if a category is cut off to a whole number before it
    /// is looked at, as LightGBM does, so that -0.5 is category 0.
    OneOf {
        words: Vec<u32>,
        truncated: bool,
    },
    /// Exactly this.
    Equal(T),
}

/// A node as a file describes it; places are those of its tree's list.
#[derive(Debug, Clone)]
pub(crate) enum Node<T> {
    /// A question about a feature.
    Split { feature: usize, test: Test<T>, missing_left: bool, left: usize, right: usize },
    /// An end: a part of the tree's weights.
    Leaf(Range<usize>),
}

/// A tree as a file describes it.
#[derive(Debug)]
pub(crate) struct Described<'a, T, S> {
    pub(crate) nodes: &'a [Node<T>],
    pub(crate) root: usize,
    /// What leaves add: output and weight.
    pub(crate) weights: &'a [(usize, S)],
}

#[derive(Debug)]
pub(crate) struct Builder<T, S> {
    forest: Forest<T, S>,
}

impl<T: Number, S: Number> Builder<T, S> {
    /// A forest of no trees. `base` has one number for each output.
    pub(crate) fn new(features: usize, base: Vec<S>) -> Result<Self> {
        within("features", features, limits::FEATURES)?;
        within("outputs", base.len(), limits::OUTPUTS)?;
        if base.is_empty() {
            return Err(Error::damaged("it has no outputs"));
        }
        let forest = Forest {
            nodes: Vec::new(),
            values: Vec::new(),
            weights: Vec::new(),
            specials: Vec::new(),
            words: Vec::new(),
            trees: Vec::new(),
            features,
            base,
            divisor: None,
        };
        Ok(Self { forest })
    }

    /// The forest, whose sums are divided by `divisor` if there is one.
    pub(crate) fn finish(mut self, divisor: Option<S>) -> Forest<T, S> {
        self.forest.divisor = divisor;
        self.forest
    }

    /// Adds a tree: from its root down, the nodes get the places in which the walk comes to them.
    pub(crate) fn add(&mut self, tree: &Described<'_, T, S>) -> Result<()> {
        within("trees", self.forest.trees.len() + 1, limits::TREES)?;
        let outputs = self.forest.base.len();
        if tree.weights.iter().any(|(output, _)| *output >= outputs) {
            return Err(Error::damaged("a leaf has an output out of range"));
        }
        let output = common_output(tree);
        let root = self.forest.nodes.len();
        let mut seen = vec![false; tree.nodes.len()];
        self.reserve(1)?;
        // Place in the file, place in the forest, splits above.
        let mut open = vec![(tree.root, root, 0)];
        let mut deepest = 0;
        while let Some((from, to, depth)) = open.pop() {
            deepest = deepest.max(depth);
            within("levels in a tree", depth, limits::DEPTH)?;
            let node =
                tree.nodes.get(from).ok_or_else(|| Error::damaged("a tree refers to a missing node"))?;
            if std::mem::replace(&mut seen[from], true) {
                return Err(Error::damaged("a tree reaches a node twice"));
            }
            match node {
                Node::Leaf(weights) => self.leaf(to, tree, weights, output)?,
                Node::Split { feature, test, missing_left, left, right } => {
                    let below = self.forest.nodes.len();
                    self.reserve(2)?;
                    let (threshold, special) = self.question(test)?;
                    self.check_feature(*feature)?;
                    let flags =
                        if *missing_left { MISSING_LEFT } else { 0 } | if special { SPECIAL } else { 0 };
                    self.forest.nodes[to] = Packed {
                        threshold,
                        feature: small(*feature)? | flags,
                        left: small(below)?,
                        right: small(below + 1)?,
                    };
                    open.push((*right, below + 1, depth + 1));
                    open.push((*left, below, depth + 1));
                }
            }
        }
        self.forest.trees.push(Tree {
            root: small(root)?,
            output: output.map(small).transpose()?,
            depth: small(deepest)?,
        });
        Ok(())
    }

    /// Room for further nodes, which are filled when the walk comes to them.
    fn reserve(&mut self, count: usize) -> Result<()> {
        let total = self.forest.nodes.len() + count;
        within("nodes", total, limits::NODES)?;
        self.forest.nodes.resize(total, Packed { threshold: T::default(), feature: 0, left: 0, right: 0 });
        self.forest.values.resize(total, S::default());
        Ok(())
    }

    fn check_feature(&self, feature: usize) -> Result<()> {
        if feature >= self.forest.features {
            let (asked, features) = (feature + 1, self.forest.features);
            return Err(Error::damaged(format!("a tree uses feature {asked} of {features}")));
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        to: usize,
        tree: &Described<'_, T, S>,
        range: &Range<usize>,
        output: Option<usize>,
    ) -> Result<()> {
        let weights = tree
            .weights
            .get(range.clone())
            .ok_or_else(|| Error::damaged("a leaf refers to missing weights"))?;
        let mut threshold = T::default();
        if output.is_some() {
            for (_, weight) in weights {
                self.forest.values[to] += *weight;
            }
        } else {
            let (first, outputs) = (self.forest.weights.len(), self.forest.base.len());
            within("weights of leaves", first + outputs, limits::LEAF_WEIGHTS)?;
            threshold = T::of_place(first / outputs);
            self.forest.weights.resize(first + outputs, S::default());
            for (output, weight) in weights {
                self.forest.weights[first + output] += *weight;
            }
        }
        self.forest.nodes[to] = Packed { threshold, feature: 0, left: small(to)?, right: small(to)? };
        Ok(())
    }

    /// The threshold of a test, or the place of what it asks instead.
    fn question(&mut self, test: &Test<T>) -> Result<(T, bool)> {
        let special = match test {
            Test::Below(threshold) => return Ok((*threshold, false)),
            // Nothing is above infinity, which trees use for "anything that is there".
            Test::AtMost(threshold) if threshold.wide() == f64::INFINITY => Special::Present,
            Test::AtMost(threshold) => return Ok((threshold.above(), false)),
            Test::AtMostZeroMissing(threshold) => Special::AtMostZeroMissing(*threshold),
            Test::Equal(value) => Special::Equal(*value),
            Test::OneOf { words, truncated } => {
                let first = self.forest.words.len();
                within("categories", first + words.len(), limits::CATEGORY_WORDS)?;
                self.forest.words.extend_from_slice(words);
                Special::OneOf { words: first..self.forest.words.len(), truncated: *truncated }
            }
        };
        self.forest.specials.push(special);
        Ok((T::of_place(self.forest.specials.len() - 1), true))
    }
}

/// The output that all leaves of a tree add to, if there is one.
fn common_output<T, S>(tree: &Described<'_, T, S>) -> Option<usize> {
    let first = tree.weights.first().map_or(0, |(output, _)| *output);
    tree.weights.iter().all(|(output, _)| *output == first).then_some(first)
}

fn small(place: usize) -> Result<u32> {
    u32::try_from(place).map_err(|_| Error::damaged("an index in the model is too large"))
}
