//! Rooms: workers that compute together exchange tensors in rounds, through the server.

use std::num::NonZeroUsize;
use std::time::Duration;

/// A room, as one of its members describes it: the first one makes it, and the others must say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Its name, which is one of those that the same people see.
    pub name: String,
    /// Who may come in: those with this role; without one those who are the same user.
    pub role: Option<String>,
    /// How many contributions complete a round.
    pub members: NonZeroUsize,
    /// How many are enough when the time for a round is over.
    pub minimum: NonZeroUsize,
    /// What becomes of them.
    pub combination: Combination,
    /// How long a round waits after its first contribution.
    pub patience: Duration,
}

/// What the server makes of the contributions to a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// The sum of all, element by element.
    Sum,
    /// Their mean.
    Mean,
    /// Their mean by the column `weight` of each, which is no part of the result.
    WeightedMean,
}
