//! Evaluates a forest for blocks of rows. Features lie column by column; eight rows go through a tree at a time, so that the processor has
//! eight independent loads in flight.

use super::{BLOCK, FEATURE, Forest, MISSING_LEFT, Number, Packed, SPECIAL, Special, Tree};

/// Rows that walk side by side.
const LANES: usize = 8;

impl<T: Number, S: Number> Forest<T, S> {
    /// Scores of `rows` rows, row by row. `fill(feature, first, into)` gives the values of one feature from row `first` on.
    pub(crate) fn scores(&self, rows: usize, mut fill: impl FnMut(usize, usize, &mut [T])) -> Vec<f64> {
        let outputs = self.outputs();
        let mut scores = Vec::with_capacity(rows * outputs);
        // A forest without features still has leaves, which read the first.
        let mut block = vec![T::default(); self.features.max(1) * BLOCK];
        let mut sums = vec![S::default(); outputs * BLOCK];
        for first in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - first);
            for feature in 0..self.features {
                fill(feature, first, &mut block[feature * BLOCK..feature * BLOCK + count]);
            }
            self.block(&block, &mut sums, count);
            for row in 0..count {
                scores.extend((0..outputs).map(|output| sums[output * BLOCK + row].wide()));
            }
        }
        scores
    }

    /// Sums of one block, tree by tree in their order, since sums of floats depend on it.
    fn block(&self, block: &[T], sums: &mut [S], count: usize) {
        for (output, base) in self.base.iter().enumerate() {
            sums[output * BLOCK..(output + 1) * BLOCK].fill(*base);
        }
        for tree in &self.trees {
            for first in (0..count).step_by(LANES) {
                let leaves = if self.specials.is_empty() {
                    walk(tree, |at, lane| step(&self.nodes[at as usize], block, first + lane))
                } else {
                    walk(tree, |at, lane| self.any_step(&self.nodes[at as usize], block, first + lane))
                };
                match tree.output {
                    Some(output) => {
                        let sums = &mut sums[output as usize * BLOCK + first..][..LANES];
                        for (sum, leaf) in sums.iter_mut().zip(leaves) {
                            *sum += self.values[leaf as usize];
                        }
                    }
                    None => self.add_weights(leaves, &mut sums[first..]),
                }
            }
        }
        if let Some(divisor) = self.divisor {
            sums.iter_mut().for_each(|sum| *sum = *sum / divisor);
        }
    }

    /// Adds the weights of leaves that have one for each output; the first sum is that of the first lane.
    fn add_weights(&self, leaves: [u32; LANES], sums: &mut [S]) {
        let outputs = self.outputs();
        for (lane, leaf) in leaves.into_iter().enumerate() {
            let place = self.nodes[leaf as usize].threshold.place() * outputs;
            for (output, weight) in self.weights[place..place + outputs].iter().enumerate() {
                sums[output * BLOCK + lane] += *weight;
            }
        }
    }

    /// A step in a forest that asks more than thresholds.
    #[inline]
    fn any_step(&self, node: &Packed<T>, block: &[T], row: usize) -> u32 {
        if node.feature & SPECIAL == 0 {
            return step(node, block, row);
        }
        let value = block[(node.feature & FEATURE) as usize * BLOCK + row];
        let yes = self.answer(&self.specials[node.threshold.place()], value);
        if yes.unwrap_or(node.feature & MISSING_LEFT != 0) { node.left } else { node.right }
    }

    /// What a special question answers; nothing if the value counts as missing.
    fn answer(&self, special: &Special<T>, value: T) -> Option<bool> {
        if value.missing() {
            return None;
        }
        match special {
            Special::OneOf { words, truncated } => {
                Some(contains(&self.words[words.clone()], value.wide(), *truncated))
            }
            // The bound is LightGBM's, which takes less for zero.
            Special::AtMostZeroMissing(_) if value.wide().abs() <= f64::from(1e-35_f32) => None,
            Special::AtMostZeroMissing(threshold) => Some(value <= *threshold),
            Special::Equal(other) => Some(value == *other),
            Special::Present => Some(true),
        }
    }
}

/// Eight rows from the root to their leaves.
#[inline]
fn walk(tree: &Tree, step: impl Fn(u32, usize) -> u32) -> [u32; LANES] {
    let mut at = [tree.root; LANES];
    for _ in 0..tree.depth {
        let mut moved = 0;
        for (lane, at) in at.iter_mut().enumerate() {
            let next = step(*at, lane);
            moved |= next ^ *at;
            *at = next;
        }
        if moved == 0 {
            break;
        }
    }
    at
}

/// One step, without a branch that depends on the value.
#[inline]
fn step<T: Number>(node: &Packed<T>, block: &[T], row: usize) -> u32 {
    let value = block[(node.feature & FEATURE) as usize * BLOCK + row];
    let left = (value < node.threshold) | (value.missing() & (node.feature & MISSING_LEFT != 0));
    if left { node.left } else { node.right }
}

/// True if the bit of the category is set.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
fn contains(words: &[u32], value: f64, truncated: bool) -> bool {
    let lowest = if truncated { value > -1.0 } else { value >= 0.0 };
    // Beyond this neither library has categories, and the cast stays exact.
    if !lowest || value >= f64::from(1 << 30) {
        return false;
    }
    let category = value as usize;
    words.get(category / 32).is_some_and(|word| word >> (category % 32) & 1 == 1)
}
