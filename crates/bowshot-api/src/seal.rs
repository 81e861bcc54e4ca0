//! What keeps credentials that administrators give in SQL closed wherever they are kept: [`Seal`]. Who implements it has the key,
//! and nobody else; a sealed text says which key that is, and nothing of what is in it.

use crate::{Result, Secret};
use std::fmt;

/// A text that was sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Tells the key from others, and nothing of it.
    pub key: String,
    /// What can be written down.
    pub text: String,
}

/// Seals texts, and opens them again.
pub trait Seal: fmt::Debug + Send + Sync {
    /// Seals a text. It can be opened with the same `about` alone, so that what is said beside it cannot be changed either.
    ///
    /// # Errors
    /// When there is no key and none can be made.
    fn seal(&self, about: &str, text: &Secret) -> Result<Sealed>;

    /// Opens what was sealed.
    ///
    /// # Errors
    /// `Unavailable` with the key that is needed when it is another one than there is; `Corrupt` for what was changed. Nothing of the
    /// text is told.
    fn open(&self, about: &str, sealed: &Sealed) -> Result<Secret>;
}
