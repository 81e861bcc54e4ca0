//! Encryption of the credentials that administrators store with SQL. Only the implementation of [`SecretCipher`] has
//! the key; an encrypted text names its key.

use crate::{Result, Secret};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedText {
    /// Identifies the key without revealing it.
    pub key: String,
    /// The ciphertext, printable.
    pub text: String,
}

/// Encrypts and decrypts secrets.
pub trait SecretCipher: fmt::Debug + Send + Sync {
    /// Encrypts a text. `about` is authenticated with it: decryption needs the same `about`.
    ///
    /// # Errors
    /// When there is no key and none can be made.
    fn encrypt(&self, about: &str, text: &Secret) -> Result<EncryptedText>;

    /// Decrypts a text.
    ///
    /// # Errors
    /// `Unavailable` with the key that is needed when it is another one than there is; `Corrupt` for what was changed. Nothing of the
    /// text is told.
    fn decrypt(&self, about: &str, sealed: &EncryptedText) -> Result<Secret>;
}
