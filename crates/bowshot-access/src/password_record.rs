//! The stored form of a password: its Argon2 hash in PHC format and its SCRAM verifier, separated by a space. Records
//! without a verifier are older, and valid except for SCRAM.

use crate::Error;
use crate::password::{check_argon2, hash_argon2};
use crate::scram::Verifier;
use bowshot_api::Secret;

/// Longest password that is looked at, so that a client cannot make the server hash megabytes.
pub(crate) const MAX_PASSWORD_BYTES: usize = 1_024;

/// Hashes a password for the configuration and the catalog: Argon2id with a random salt, in PHC form, and after a space a
/// SCRAM-SHA-256 verifier with another one.
///
/// # Errors
/// For an empty, very long or multi-line password, and when there is no randomness for the salt.
pub fn hash_password(password: &Secret) -> Result<String, Error> {
    let text = password.expose();
    if text.is_empty() || text.len() > MAX_PASSWORD_BYTES {
        return Err(Error::BadPassword("a password has 1 to 1024 bytes"));
    }
    if text.contains(['\n', '\r', '\0']) {
        return Err(Error::BadPassword("a password has no line breaks and no zero bytes"));
    }
    Ok(format!("{} {}", hash_argon2(password)?, Verifier::from_password(password)?))
}

#[derive(Clone, PartialEq)]
pub(crate) struct PasswordRecord {
    pub(crate) argon2: String,
    pub(crate) scram: Option<Verifier>,
}

impl PasswordRecord {
    /// Parses and validates a configured record.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub(crate) fn checked(text: &str) -> Result<Self, &'static str> {
        let stored = Self::parse_trusted(text);
        check_argon2(&stored.argon2)?;
        if text.contains(' ') && stored.scram.is_none() {
            return Err("what stands behind the Argon2 hash is not a SCRAM-SHA-256 verifier");
        }
        Ok(stored)
    }

    /// Parses a record that was validated before.
    pub(crate) fn parse_trusted(text: &str) -> Self {
        let (argon2, scram) = text.split_once(' ').unwrap_or((text, ""));
        Self { argon2: argon2.to_owned(), scram: Verifier::parse(scram) }
    }
}

bowshot_api::debug_fields!(PasswordRecord {});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_a_hash_and_a_verifier() {
        let text = hash_password(&Secret::new("correct horse")).expect("hash");
        assert!(!text.contains("horse"));
        let stored = PasswordRecord::checked(&text).expect("is good");
        assert!(stored.argon2.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", stored.argon2);
        assert!(stored.scram.is_some());
        let older = PasswordRecord::checked(&stored.argon2).expect("is good without the verifier");
        assert!(older.scram.is_none());
        for bad in [format!("{} ", stored.argon2), format!("{text} x"), text.replace("SCRAM", "scram")] {
            assert!(PasswordRecord::checked(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unusable_passwords_are_refused() {
        for bad in ["", "two\nlines", "zero\0byte", &"x".repeat(1025)] {
            assert!(hash_password(&Secret::new(bad)).is_err(), "{bad:?}");
        }
    }
}
