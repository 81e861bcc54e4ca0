//! What nodes tell one another. Unknown fields are passed over, so that nodes of neighbouring versions understand one
//! another; `version` changes when that would be wrong.

use crate::membership::settings::is_address;
use crate::membership::signing::SigningKey;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The version of these messages.
pub(crate) const VERSION: u32 = 1;
/// Longest text of a node about itself.
const LONGEST_TEXT: usize = 300;
/// Members of a message, at most.
pub(crate) const MAX_MEMBERS: usize = 1_000;

/// A node, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    #[serde(with = "uuid_text")]
    pub(crate) id: Uuid,
    pub(crate) address: String,
    pub(crate) public: String,
    pub(crate) build: String,
    /// Of two nodes with one address, the one that counts is the one whose number is greater.
    pub(crate) incarnation: u64,
    pub(crate) leaving: bool,
    /// Whether somebody serves what comes for work.
    pub(crate) serves: bool,
    /// Whether it has rules of access.
    #[serde(default)]
    pub(crate) guarded: bool,
    pub(crate) threads: u32,
    pub(crate) memory: u64,
}

impl Node {
    /// Whether it may be kept: what a member sends is limited like all else.
    pub(crate) fn is_sound(&self) -> bool {
        let is_short = |text: &String| text.len() <= LONGEST_TEXT && !text.chars().any(char::is_control);
        is_address(&self.address) && is_short(&self.public) && is_short(&self.build)
    }
}

/// A heartbeat, and the answer to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) version: u32,
    /// The cluster of the sender.
    #[serde(with = "uuid_text")]
    pub(crate) cluster: Uuid,
    /// Whether its data says so; else it takes the receiver's word.
    pub(crate) firm: bool,
    pub(crate) from: Node,
    /// Whether the receiver has lately answered the sender.
    pub(crate) reaches_you: bool,
    /// Microseconds since 1970 by the clock of the sender.
    pub(crate) now_us: u64,
    /// Nodes that the sender has lately heard itself.
    pub(crate) known: Vec<Node>,
    /// What the receiver checks the sender's signatures with; `None` where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signing_key: Option<SigningKey>,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Answer {
    Beat(Beat),
    Refused { reason: String },
}

/// Identifiers as text.
mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        Uuid::parse_str(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
