//! How large a model may be. A file comes from whoever may name it, so each count that it states is held against one of
//! these before memory is asked for.

use crate::error::{Error, Result};

pub const FILE_BYTES: usize = 256 << 20;
/// Trees of a forest.
pub(crate) const TREES: usize = 100_000;
/// Nodes of all trees together. The evaluator keeps places as numbers of 32 bits with a fraction of 24, so not above that.
pub(crate) const NODES: usize = 1 << 24;
/// Splits between a tree's root and any of its leaves.
pub(crate) const DEPTH: usize = 4_096;
/// Columns that a model takes.
pub(crate) const FEATURES: usize = 65_536;
/// Classes, or numbers, that a model gives for each row.
pub(crate) const OUTPUTS: usize = 4_096;
/// Weights of leaves that have one for each output.
pub(crate) const LEAF_WEIGHTS: usize = 1 << 25;
/// Words of 32 bits that sets of categories take.
pub(crate) const CATEGORY_WORDS: usize = 1 << 24;
/// Values of a document, where a list of numbers is one.
pub(crate) const DOCUMENT_VALUES: usize = 1 << 22;
/// Bytes of an ONNX graph that is no tree ensemble: a library has it several times while it plans.
pub(crate) const NETWORK_BYTES: usize = 128 << 20;
/// Numbers in one result of such a graph, for a block of rows.
pub(crate) const NETWORK_NUMBERS: usize = 1 << 25;
/// Numbers in all its results and constants.
pub(crate) const NETWORK_ALL_NUMBERS: usize = 1 << 27;
/// Multiplications for a block of rows: some seconds.
pub(crate) const NETWORK_WORK: usize = 1 << 36;
/// What a row costs where nobody knows: as much as so many nodes of trees.
pub(crate) const NETWORK_COST: usize = 1_000;
/// Lists and objects within one another.
pub(crate) const DOCUMENT_DEPTH: usize = 32;

/// An error if there are more than `most`.
pub(crate) fn within(what: &'static str, count: usize, most: usize) -> Result<()> {
    if count > most {
        return Err(Error::TooLarge { what, most });
    }
    Ok(())
}
