//! Messages between nodes. Unknown fields are ignored, so that nodes of neighbouring versions understand one another; `version` changes
//! when that would be wrong.

use crate::membership::settings::is_address;
use crate::membership::signing::SigningKey;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version of these messages.
pub(crate) const VERSION: u32 = 1;
/// Longest text in the description of a node.
const LONGEST_TEXT: usize = 300;
/// Members of a message, at most.
pub(crate) const MAX_MEMBERS: usize = 1_000;

/// A node, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: Uuid,
    pub(crate) address: String,
    pub(crate) public: String,
    pub(crate) build: String,
    /// Of two nodes with one address, the one with the greater number counts.
    pub(crate) incarnation: u64,
    pub(crate) leaving: bool,
    /// Whether it serves connections for work.
    pub(crate) serves: bool,
    /// Whether it has access rules.
    #[serde(default)]
    pub(crate) guarded: bool,
    pub(crate) threads: u32,
    pub(crate) memory: u64,
}

impl Node {
    /// Whether its texts are valid and within limits.
    pub(crate) fn is_sound(&self) -> bool {
        let is_short = |text: &String| text.len() <= LONGEST_TEXT && !text.chars().any(char::is_control);
        is_address(&self.address) && is_short(&self.public) && is_short(&self.build)
    }
}

/// A heartbeat, and the answer to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) version: u32,
    /// The cluster of the sender.
    pub(crate) cluster: Uuid,
    /// Whether its data says so; else it adopts the receiver's.
    pub(crate) firm: bool,
    pub(crate) from: Node,
    /// Whether the receiver has lately answered the sender.
    pub(crate) reaches_you: bool,
    /// Microseconds since 1970 by the clock of the sender.
    pub(crate) now_us: u64,
    /// Nodes from which the sender has lately heard.
    pub(crate) known: Vec<Node>,
    /// The key for signatures of the sender; `None` with a shared secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signing_key: Option<SigningKey>,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Answer {
    Beat(Heartbeat),
    Refused { reason: String },
}
