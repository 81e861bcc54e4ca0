//! Signatures that every node of the cluster can check: a keyed hash (HMAC-SHA-256) over what was signed.
//!
//! Nodes with a shared secret have a key of it in common, which never crosses a connection. Nodes with certificates have
//! nothing in common that is secret: each makes a key when it starts, and tells it to the others in its heartbeats, which are
//! encrypted and go to nodes alone. What a third node says of somebody's key counts for nothing.

use crate::membership::error::Error;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::rand;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Bytes of a key.
const LENGTH: usize = 32;
/// Nodes whose keys are kept, at most.
const MOST_KEYS: usize = 1_000;

/// A node's key on its way to another node. It does not print.
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
    /// What the others are told of it; `None` where they have it.
    told: Option<SigningKey>,
    theirs: Mutex<HashMap<Uuid, Key>>,
}

impl Signing {
    /// With a key that all nodes have, or one of this node's own.
    ///
    /// # Errors
    /// When the machine gives no random numbers.
    pub(crate) fn new(common: Option<Key>) -> Result<Self, Error> {
        let theirs = Mutex::default();
        if let Some(mine) = common {
            return Ok(Self { mine, told: None, theirs });
        }
        let mut bytes = [0; LENGTH];
        rand::fill(&mut bytes).map_err(|_| {
            Error::setting("the machine gives no random numbers", "look at its source of randomness")
        })?;
        Ok(Self { mine: Key::new(HMAC_SHA256, &bytes), told: Some(SigningKey(bytes)), theirs })
    }

    /// What the other nodes have to be told.
    pub(crate) fn told(&self) -> Option<SigningKey> {
        self.told.clone()
    }

    /// A node has told its own key. `is_known` says whose keys are still wanted.
    pub(crate) fn hear(&self, node: Uuid, key: Option<SigningKey>, is_known: impl Fn(Uuid) -> bool) {
        let (Some(SigningKey(bytes)), true) = (key, self.told.is_some()) else { return };
        let mut theirs = self.lock();
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
        if self.told.is_none() || node == me {
            return hmac::verify(&self.mine, message, tag).is_ok();
        }
        self.lock().get(&node).is_some_and(|key| hmac::verify(key, message, tag).is_ok())
    }

    /// A poisoned lock still guards whole keys.
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Key>> {
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner)
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
        other.hear(id, one.told(), |_| true);
        assert!(other.is_signed((id, me), b"text", &tag));
        assert!(!other.is_signed((id, me), b"texts", &tag));
        assert!(!other.is_signed((Uuid::from_u128(3), me), b"text", &tag));
        assert!(!other.is_signed((id, me), b"text", &[]));
        assert!(!format!("{:?}", one.told()).contains(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn a_common_key_is_told_to_nobody() {
        let key = || Key::new(HMAC_SHA256, b"common");
        let (one, other) =
            (Signing::new(Some(key())).expect("a key"), Signing::new(Some(key())).expect("a key"));
        let tag = one.sign(b"text");
        assert!(other.is_signed((Uuid::from_u128(1), Uuid::from_u128(2)), b"text", &tag));
        assert!(one.told().is_none());
        // Nor is one heard.
        other.hear(Uuid::from_u128(1), Signing::new(None).expect("a key").told(), |_| true);
        assert!(other.is_signed((Uuid::from_u128(1), Uuid::from_u128(2)), b"text", &tag));
    }
}
