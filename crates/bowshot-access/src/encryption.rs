//! Encryption of secrets: AES-256-GCM by AWS-LC with a random nonce per text and authenticated associated data.
//!
//! The key is the operator's (`env:NAME`, `file:PATH`), or generated on first use in a file beside the catalog, so
//! that a copy of the catalog alone is useless. Without a folder it stays in memory. Two keys are derived: one
//! encrypts, the other identifies the key.

use crate::Error;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bowshot_api::{EncryptedText, Error as ApiError, ErrorKind, Result, Secret, SecretCipher};
use parking_lot::Mutex;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY_BYTES: usize = 32;
/// Bytes that name a key.
const NAME_BYTES: usize = 8;
/// Longest key file or variable.
const MAX_KEY_BYTES: usize = 256;
/// The file in a data folder.
const FILE: &str = "secrets.key";

pub struct EncryptionKey {
    place: KeySource,
    keys: Mutex<Option<Arc<Keys>>>,
}

/// Where the key is.
#[derive(Debug)]
enum KeySource {
    /// A place that the operator names.
    Named(String),
    /// A file, created on first use.
    File(PathBuf),
    Memory,
}

/// The derived keys.
struct Keys {
    sealing: RandomizedNonceKey,
    name: String,
}

impl EncryptionKey {
    /// The key that the operator names, read at once.
    ///
    /// # Errors
    /// When there is none. The value is never told.
    pub fn named(place: &str) -> Result<Self, Error> {
        let text = read_named(place)?;
        let reason = || "invalid key: expected 32 bytes in Base64, or 64 hexadecimal digits".to_owned();
        let key = decoded(&text).ok_or_else(|| unusable(reason()))?;
        let keys = Keys::of(&key).map_err(|()| unusable("the key cannot be used".to_owned()))?;
        Ok(Self { place: KeySource::Named(place.to_owned()), keys: Mutex::new(Some(Arc::new(keys))) })
    }

    /// A key file in a folder, created on first use.
    pub fn beside(folder: &Path) -> Self {
        Self { place: KeySource::File(folder.join(FILE)), keys: Mutex::default() }
    }

    /// A key that ends with the process.
    pub fn in_memory() -> Self {
        Self { place: KeySource::Memory, keys: Mutex::default() }
    }

    /// The keys; `make` creates missing ones.
    fn keys(&self, make: bool) -> Result<Option<Arc<Keys>>> {
        let mut keys = self.keys.lock();
        if let Some(keys) = keys.as_ref() {
            return Ok(Some(Arc::clone(keys)));
        }
        let key = match &self.place {
            KeySource::File(path) => match read_file(path)? {
                Some(key) => key,
                None if make => new_file(path)?,
                None => return Ok(None),
            },
            KeySource::Named(_) | KeySource::Memory if make => random()?,
            KeySource::Named(_) | KeySource::Memory => return Ok(None),
        };
        let made = Arc::new(Keys::of(&key).map_err(|()| failed("the key cannot be used"))?);
        *keys = Some(Arc::clone(&made));
        Ok(Some(made))
    }

    /// The error for a text that needs another key.
    fn other(&self, needed: &str, there: Option<&str>) -> ApiError {
        let has = there.map_or_else(|| "has none".to_owned(), |name| format!("has the key `{name}`"));
        let place = match &self.place {
            KeySource::Named(place) => format!("{has}, of `{place}`"),
            KeySource::File(path) => format!("{has}, of the file `{}`", path.display()),
            KeySource::Memory => has,
        };
        let message = format!("it is encrypted with the key `{needed}`, and the server {place}");
        ApiError::new(ErrorKind::Unavailable, message)
            .with_hint("restore that key, or name it with the setting `secrets.key`; or create the secret again with CREATE OR REPLACE SECRET")
    }
}

bowshot_api::debug_fields!(EncryptionKey { place });

impl SecretCipher for EncryptionKey {
    fn encrypt(&self, about: &str, text: &Secret) -> Result<EncryptedText> {
        let keys = self.keys(true)?.ok_or_else(|| failed("there is no key"))?;
        let mut sealed = text.expose().as_bytes().to_vec();
        let nonce = keys.sealing.seal_in_place_append_tag(Aad::from(about.as_bytes()), &mut sealed);
        let nonce = nonce.map_err(|_| failed("encryption failed"))?;
        let whole = [nonce.as_ref().as_slice(), &sealed].concat();
        Ok(EncryptedText { key: keys.name.clone(), text: STANDARD.encode(whole) })
    }

    fn decrypt(&self, about: &str, sealed: &EncryptedText) -> Result<Secret> {
        let keys = self.keys(false)?;
        let there = keys.as_ref().map(|keys| keys.name.as_str());
        let keys = match &keys {
            Some(keys) if keys.name == sealed.key => keys,
            _ => return Err(self.other(&sealed.key, there)),
        };
        let changed = || {
            ApiError::new(ErrorKind::Corrupt, "it was changed after its encryption").with_hint(
                "restore the catalog from a backup, or create the secret again with CREATE OR REPLACE SECRET",
            )
        };
        let whole = STANDARD.decode(&sealed.text).map_err(|_| changed())?;
        let (nonce, rest) = whole.split_first_chunk::<NONCE_LEN>().ok_or_else(changed)?;
        let (nonce, mut rest) = (Nonce::assume_unique_for_key(*nonce), rest.to_vec());
        let opened = keys.sealing.open_in_place(nonce, Aad::from(about.as_bytes()), &mut rest);
        let opened = opened.map_err(|_| changed())?;
        Ok(Secret::new(std::str::from_utf8(opened).map_err(|_| changed())?))
    }
}

impl Keys {
    fn of(key: &[u8; KEY_BYTES]) -> std::result::Result<Self, ()> {
        let made = Salt::new(HKDF_SHA256, b"bowshot secrets").extract(key);
        let sealing: [u8; KEY_BYTES] = expanded(&made, b"seal")?;
        let name: [u8; NAME_BYTES] = expanded(&made, b"name")?;
        let sealing = RandomizedNonceKey::new(&AES_256_GCM, &sealing).map_err(|_| ())?;
        Ok(Self { sealing, name: name.iter().map(|byte| format!("{byte:02x}")).collect() })
    }
}

/// Number of derived bytes.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expanded<const N: usize>(key: &Prk, purpose: &[u8]) -> std::result::Result<[u8; N], ()> {
    let mut bytes = [0; N];
    let purposes = [purpose];
    let made = key.expand(&purposes, Bytes(N)).map_err(|_| ())?;
    made.fill(&mut bytes).map_err(|_| ())?;
    Ok(bytes)
}

/// Reads the key from the named place.
fn read_named(place: &str) -> Result<String, Error> {
    if let Some(name) = place.strip_prefix("env:") {
        return std::env::var(name)
            .map_err(|_| unusable(format!("the environment has no variable `{name}`")));
    }
    // The value may be the key itself: do not show it.
    let path = place
        .strip_prefix("file:")
        .ok_or_else(|| unusable("invalid place of a key: expected `env:NAME` or `file:PATH`".to_owned()))?;
    let read =
        File::open(path).and_then(|file| io::read_to_string(io::Read::take(file, MAX_KEY_BYTES as u64)));
    read.map_err(|error| unusable(format!("cannot read `{path}`: {error}")))
}

/// 32 bytes, in Base64 of any kind or in hexadecimal digits.
fn decoded(text: &str) -> Option<[u8; KEY_BYTES]> {
    let text = text.trim();
    if text.len() == KEY_BYTES * 2 {
        let mut key = [0; KEY_BYTES];
        for (place, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            *place = u8::from_str_radix(digits, 16).ok()?;
        }
        return Some(key);
    }
    let text = text.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()?;
    bytes.try_into().ok()
}

/// The key of a file, if it is there.
fn read_file(path: &Path) -> Result<Option<[u8; KEY_BYTES]>> {
    let told = |reason: String| {
        ApiError::new(
            ErrorKind::Unavailable,
            format!("the key file `{}` cannot be used: {reason}", path.display()),
        )
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error.to_string())),
    };
    let others = file.metadata().map_err(|error| told(error.to_string()))?.permissions().mode() & 0o077;
    if others != 0 {
        return Err(told("other users of this machine may read it".to_owned())
            .with_hint("run `chmod 600`, and create the secrets again if others may have read it"));
    }
    let text = io::read_to_string(io::Read::take(file, MAX_KEY_BYTES as u64));
    let key = decoded(&text.map_err(|error| told(error.to_string()))?);
    key.map(Some)
        .ok_or_else(|| told("it has no key of 32 bytes".to_owned()).with_hint("restore the file from a copy"))
}

/// Makes a key, and its file, which is on disk before anything is sealed.
fn new_file(path: &Path) -> Result<[u8; KEY_BYTES]> {
    let key = random()?;
    let unfinished = path.with_extension("key.unfinished");
    let written = || {
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unfinished)?;
        writeln!(file, "{}", STANDARD.encode(key))?;
        file.sync_all()?;
        // Fails if the file was created in between.
        fs::hard_link(&unfinished, path)?;
        fs::remove_file(&unfinished)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|error| {
        failed("cannot write the key file")
            .with_message(format!("cannot write the key file `{}`: {error}", path.display()))
    })?;
    tracing::info!(path = %path.display(), "a key for secrets was made: keep a copy of the file apart from backups");
    Ok(key)
}

fn random() -> Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| failed("the system returned no random numbers"))?;
    Ok(key)
}

fn failed(reason: &str) -> ApiError {
    ApiError::new(ErrorKind::Unavailable, format!("cannot encrypt secrets: {reason}"))
}

fn unusable(reason: String) -> Error {
    Error::EncryptionKey { reason }
}

#[cfg(test)]
mod tests;
