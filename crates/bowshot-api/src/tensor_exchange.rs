//! Tensor exchange: workers send tensors in rounds, and each gets the reduction of all of them.

use std::num::NonZeroUsize;
use std::time::Duration;

/// A tensor exchange. The first member creates it; the others must describe it equally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorExchange {
    /// Its name, unique within a visibility group.
    pub name: String,
    /// The role of its members; `None` restricts it to one user.
    pub role: Option<String>,
    /// Contributions that complete a round.
    pub members: NonZeroUsize,
    /// Contributions that suffice when the round times out.
    pub minimum: NonZeroUsize,
    /// How contributions are combined.
    pub combination: Reduction,
    /// Timeout of a round, from its first contribution.
    pub patience: Duration,
}

/// How the contributions of a round are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The sum of all, element by element.
    Sum,
    /// Their mean.
    Mean,
    /// The mean, weighted by column `weight` of each, which is not part of the result.
    WeightedMean,
}
