//! Signatures (HMAC-SHA-256) that every node can check. With a shared secret all nodes derive the same key from it. With certificates each
//! node makes a key when it starts and sends it in its encrypted heartbeats; what a third node says of a key is ignored.

use crate::membership::error::Error;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::rand;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use uuid::Uuid;

/// Bytes of a key.
const LENGTH: usize = 32;
/// Most keys of other nodes.
const MOST_KEYS: usize = 1_000;

/// A node's key in a message. It does not print.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SigningKey([u8; LENGTH]);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The keys that this node signs and checks with.
#[derive(Debug)]
pub(crate) struct Signing {
    mine: Key,
    /// The key for other nodes; `None` if they have it.
    distributed: Option<SigningKey>,
    theirs: Mutex<HashMap<Uuid, Key>>,
}

impl Signing {
    pub(crate) fn new(common: Option<Key>) -> Result<Self, Error> {
        let theirs = Mutex::default();
        if let Some(mine) = common {
            return Ok(Self { mine, distributed: None, theirs });
        }
        let mut bytes = [0; LENGTH];
        rand::fill(&mut bytes).map_err(|_| {
            Error::setting("cannot get random numbers", "check the machine's source of randomness")
        })?;
        Ok(Self { mine: Key::new(HMAC_SHA256, &bytes), distributed: Some(SigningKey(bytes)), theirs })
    }

    /// What the other nodes have to be distributed.
    pub(crate) fn public(&self) -> Option<SigningKey> {
        self.distributed.clone()
    }

    /// A node has told its own key. `is_known` says whose keys are still wanted.
    pub(crate) fn hear(&self, node: Uuid, key: Option<SigningKey>, is_known: impl Fn(Uuid) -> bool) {
        let (Some(SigningKey(bytes)), true) = (key, self.distributed.is_some()) else { return };
        let mut theirs = self.theirs.lock();
        if !theirs.contains_key(&node) {
            theirs.retain(|node, _| is_known(*node));
        }
        if theirs.len() < MOST_KEYS || theirs.contains_key(&node) {
            theirs.insert(node, Key::new(HMAC_SHA256, &bytes));
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        hmac::sign(&self.mine, message).as_ref().to_vec()
    }

    /// Whether a node has signed this; compares in constant time. With a key in common, any node may have.
    pub(crate) fn is_signed(&self, by: (Uuid, Uuid), message: &[u8], tag: &[u8]) -> bool {
        let (node, me) = by;
        if self.distributed.is_none() || node == me {
            return hmac::verify(&self.mine, message, tag).is_ok();
        }
        self.theirs.lock().get(&node).is_some_and(|key| hmac::verify(key, message, tag).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_nodes_key_can_check_what_it_signs() {
        let (one, other) = (Signing::new(None).expect("a key"), Signing::new(None).expect("a key"));
        let (id, me) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let tag = one.sign(b"text");
        assert!(one.is_signed((id, id), b"text", &tag));
        assert!(!other.is_signed((id, me), b"text", &tag));
        other.hear(id, one.public(), |_| true);
        assert!(other.is_signed((id, me), b"text", &tag));
        assert!(!other.is_signed((id, me), b"texts", &tag));
        assert!(!other.is_signed((Uuid::from_u128(3), me), b"text", &tag));
        assert!(!other.is_signed((id, me), b"text", &[]));
        assert!(!format!("{:?}", one.public()).contains(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn a_common_key_is_told_to_nobody() {
        let key = || Key::new(HMAC_SHA256, b"common");
        let (one, other) =
            (Signing::new(Some(key())).expect("a key"), Signing::new(Some(key())).expect("a key"));
        let tag = one.sign(b"text");
        assert!(other.is_signed((Uuid::from_u128(1), Uuid::from_u128(2)), b"text", &tag));
        assert!(one.public().is_none());
        // Nor is one heard.
        other.hear(Uuid::from_u128(1), Signing::new(None).expect("a key").public(), |_| true);
        assert!(other.is_signed((Uuid::from_u128(1), Uuid::from_u128(2)), b"text", &tag));
    }
}
