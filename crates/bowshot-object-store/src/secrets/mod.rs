//! Secrets: credentials of sources that administrators give in SQL (`CREATE SECRET`), kept sealed among the notes of the tables.
//!
//! ```text
//! CREATE SECRET ─ what it says is checked (kinds) ─ sealed ─▶ a note of the snapshot, committed as all notes are (note)
//! the newest committed notes ─ opened, once for each note ─▶ what is in force ─ by address ─▶ who is asked for credentials
//! ```
//!
//! Whoever opens a source asks for the secret each time ([`Secrets::named`], [`Secrets::all`]; the object stores for each request), and
//! tells a changed one by its address in memory: nothing has to be told to anybody when one is made or dropped. Secrets of a
//! transaction that is open are in force for nobody.
//!
//! Nothing here goes anywhere, and no address becomes one that statements may name because there is a secret for it. Values leave this
//! module as [`Secret`]s alone, which do not print. What cannot be opened is in force as just that: an address that it is about has no
//! credentials then, instead of those of somebody else.

mod kinds;
mod secret_record;
#[cfg(test)]
mod tests;

use crate::remote::StoreScope;
use bowshot_api::{Error, Result, Secret, SecretCipher};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

pub use kinds::{NewSecret, SecretKind};

/// Most secrets of a server: each request to an object store looks through them.
pub const MAX_SECRETS: usize = 1_000;

pub struct Secrets {
    cipher: Arc<dyn SecretCipher>,
    /// Endpoints of object stores that the operator has named, without a slash at their end.
    endpoints: BTreeSet<String>,
    newest: OnceLock<Box<NewestTexts>>,
    known: Mutex<Known>,
}

/// Short texts by key, which a catalog keeps; those of secrets are among them.
pub type Texts = BTreeMap<String, String>;

/// The newest committed texts, as long as there is a catalog.
type NewestTexts = dyn Fn() -> Option<Arc<Texts>> + Send + Sync;

/// What is in force, and the notes that say so.
#[derive(Debug, Default)]
struct Known {
    notes: Option<Arc<Texts>>,
    in_force: Arc<InForce>,
}

/// Secrets by name.
pub type InForce = BTreeMap<String, Arc<KeptSecret>>;

/// A secret that is in force, or cannot be opened. It prints without its values.
pub struct KeptSecret {
    name: String,
    /// As the note has it.
    text: String,
    /// `None` for a note that cannot be read at all.
    about: Option<secret_record::About>,
    place: Option<StoreScope>,
    values: std::result::Result<BTreeMap<String, Secret>, String>,
}

/// What is told of a secret.
#[derive(Debug, Clone)]
pub struct SecretSummary {
    pub name: String,
    pub kind: Option<&'static str>,
    /// What addresses it is about; all of its type when `None`.
    pub scope: Option<String>,
    /// Who made it.
    pub owner: Option<String>,
    /// When, in microseconds since 1970.
    pub made: Option<i64>,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
}

impl Secrets {
    /// Secrets that this key seals. `endpoints` are those of object stores that the operator has named.
    pub fn new(cipher: Arc<dyn SecretCipher>, endpoints: BTreeSet<String>) -> Arc<Self> {
        let endpoints = endpoints.iter().map(|endpoint| endpoint.trim_end_matches('/').to_owned()).collect();
        Arc::new(Self { cipher, endpoints, newest: OnceLock::new(), known: Mutex::default() })
    }

    /// From now on the secrets among the newest texts are in force. The first call counts.
    pub fn read_from(&self, newest: impl Fn() -> Option<Arc<Texts>> + Send + Sync + 'static) {
        let _ = self.newest.set(Box::new(newest));
    }

    /// Checks what a statement says of a secret.
    ///
    /// # Errors
    /// `Invalid` with the key that cannot be used, never with its value; `Denied` for an endpoint that is not the operator's.
    pub fn checked(&self, name: String, options: Vec<(String, Secret)>) -> Result<NewSecret> {
        NewSecret::read(name, options, &self.endpoints)
    }

    /// The note of a new secret: key and text.
    ///
    /// # Errors
    /// When there is no key to seal it with.
    pub fn sealed(&self, new: &NewSecret, owner: &str, made: i64) -> Result<(String, String)> {
        Ok((secret_record::key(&new.name), secret_record::sealed(new, (owner, made), self.cipher.as_ref())?))
    }

    /// The key of the note of a secret.
    pub fn note(name: &str) -> String {
        secret_record::key(name)
    }

    /// Whether a note is a secret's.
    pub fn is_note(key: &str) -> bool {
        key.starts_with(secret_record::PREFIX)
    }

    /// How many secrets there are in some notes.
    pub fn count(notes: &Texts) -> usize {
        notes.keys().filter(|key| Self::is_note(key)).count()
    }

    /// What is told of the secrets in some notes, by name.
    pub fn told(&self, notes: &Texts) -> Vec<SecretSummary> {
        let in_force = self.in_force();
        self.read(notes, &in_force).values().map(|secret| secret.summary()).collect()
    }

    pub fn named(&self, name: &str) -> Result<Arc<KeptSecret>> {
        self.in_force().get(name).cloned().ok_or_else(|| not_there(name))
    }

    pub fn all(&self) -> Vec<Arc<KeptSecret>> {
        self.in_force().values().cloned().collect()
    }

    /// Whether the operator has named an endpoint.
    pub(crate) fn permits(&self, endpoint: &str) -> bool {
        self.endpoints.contains(endpoint.trim_end_matches('/'))
    }

    /// What the newest notes say, which is the same in memory as long as no secret is made or dropped. Never waits for anything.
    pub fn in_force(&self) -> Arc<InForce> {
        let mut known = self.known.lock();
        // Before there are tables, nothing is in force; when they are gone, what was.
        let Some(notes) = self.newest.get().and_then(|newest| newest()) else {
            return Arc::clone(&known.in_force);
        };
        if !same(known.notes.as_ref(), Some(&notes)) {
            let now = self.read(&notes, &known.in_force);
            let is_same = now.len() == known.in_force.len()
                && now.iter().all(|(name, secret)| same(Some(secret), known.in_force.get(name)));
            if !is_same {
                known.in_force = Arc::new(now);
            }
            known.notes = Some(notes);
        }
        Arc::clone(&known.in_force)
    }

    /// The secrets of some notes; those that are known already stay the same.
    fn read(&self, notes: &Texts, known: &InForce) -> InForce {
        let texts = notes.range(secret_record::PREFIX.to_owned()..);
        let texts = texts.take_while(|(key, _)| Self::is_note(key));
        let read = texts.filter_map(|(key, text)| {
            let name = secret_record::name(key)?;
            let same = known.get(&name).filter(|secret| secret.text == *text).cloned();
            let secret = same.unwrap_or_else(|| Arc::new(KeptSecret::of(&name, text, self.cipher.as_ref())));
            Some((name, secret))
        });
        read.collect()
    }
}

bowshot_api::debug_fields!(Secrets { cipher });

bowshot_api::debug_fields!(KeptSecret { name, about });

/// Whether both are the very same, or none.
pub fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// The error for a secret that is not there.
pub fn not_there(name: &str) -> Error {
    Error::not_found(format!("secret `{name}` not found"))
        .with_hint("administrators can list them: `SELECT name, type, scope FROM system.secrets`")
}

impl KeptSecret {
    fn of(name: &str, text: &str, cipher: &dyn SecretCipher) -> Self {
        let unreadable = |problem: &str| Self {
            name: name.to_owned(),
            text: text.to_owned(),
            about: None,
            place: None,
            values: Err(problem.to_owned()),
        };
        let Some((about, sealed)) = secret_record::read(text) else {
            return unreadable("its catalog entry cannot be read");
        };
        let place = about.scope.as_deref().filter(|_| about.kind.scheme().is_some()).map(StoreScope::parse);
        let Ok(place) = place.transpose() else { return unreadable("its scope cannot be read") };
        let opened = secret_record::opened(name, &about, &sealed, cipher);
        if let Err(error) = &opened {
            tracing::warn!(secret = name, reason = error.message(), "a secret cannot be decrypted");
        }
        let values = opened.map_err(|error| error.message().to_owned());
        Self { name: name.to_owned(), text: text.to_owned(), about: Some(about), place, values }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type; `None` where the note says none.
    pub fn kind(&self) -> Option<SecretKind> {
        self.about.as_ref().map(|about| about.kind)
    }

    /// What addresses it is about; all of its type when `None`.
    pub fn scope(&self) -> Option<&str> {
        self.about.as_ref()?.scope.as_deref()
    }

    /// The values by key.
    ///
    /// # Errors
    /// Why it cannot be opened, with the name of the key that is needed.
    pub fn values(&self) -> std::result::Result<&BTreeMap<String, Secret>, &str> {
        self.values.as_ref().map_err(String::as_str)
    }

    /// The scope of a secret of an object store.
    pub fn place(&self) -> Option<&StoreScope> {
        self.place.as_ref()
    }

    fn summary(&self) -> SecretSummary {
        let about = self.about.as_ref();
        SecretSummary {
            name: self.name.clone(),
            kind: about.map(|about| about.kind.name()),
            scope: about.and_then(|about| about.scope.clone()),
            owner: about.map(|about| about.owner.clone()),
            made: about.map(|about| about.made),
            problem: self.values.as_ref().err().cloned(),
        }
    }
}
