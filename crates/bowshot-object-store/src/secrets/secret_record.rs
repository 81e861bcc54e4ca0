//! The stored form of a secret: readable type, scope, owner and time, which authenticate the encrypted values.

use super::kinds::{NewSecret, SecretKind};
use bowshot_api::{EncryptedText, Error, ErrorKind, Result, Secret, SecretCipher};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How keys of such notes begin.
pub(super) const PREFIX: &str = "[\"secret\",";
/// What is sealed is filled up to a multiple of this, so that its length tells little.
const PAGE_BYTES: usize = 512;

/// What may be read of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) kind: SecretKind,
    pub(super) scope: Option<String>,
    pub(super) owner: String,
    /// Microseconds since 1970.
    pub(super) made: i64,
}

/// The key of the note of a secret.
pub(super) fn key(name: &str) -> String {
    json!(["secret", name]).to_string()
}

pub(super) fn name(key: &str) -> Option<String> {
    let (kind, name): (String, String) = serde_json::from_str(key).ok()?;
    (kind == "secret").then_some(name)
}

impl About {
    /// What the sealed part is bound to.
    fn bound(&self, name: &str) -> String {
        json!(["bowshot secret", 1, name, self.kind.name(), self.scope, self.owner, self.made]).to_string()
    }
}

/// The text of a note.
pub(super) fn sealed(
    new: &NewSecret,
    (owner, made): (&str, i64),
    cipher: &dyn SecretCipher,
) -> Result<String> {
    let NewSecret { name, kind, scope, values } = new;
    let about = About { kind: *kind, scope: scope.clone(), owner: owner.to_owned(), made };
    let values: Map<String, Value> =
        values.iter().map(|(key, value)| (key.clone(), Value::from(value.expose()))).collect();
    let mut text = Value::Object(values).to_string();
    let length = text.len().next_multiple_of(PAGE_BYTES);
    text.extend(std::iter::repeat_n(' ', length - text.len()));
    let EncryptedText { key, text } = cipher.encrypt(&about.bound(name), &Secret::new(text))?;
    let About { kind, scope, owner, made } = about;
    let note = json!({ "type": kind.name(), "scope": scope, "owner": owner, "made": made, "key": key, "sealed": text });
    Ok(note.to_string())
}

/// What a note says, and what is sealed in it; `None` for what is no such note.
pub(super) fn read(text: &str) -> Option<(About, EncryptedText)> {
    let note: Value = serde_json::from_str(text).ok()?;
    let text = |key: &str| note.get(key)?.as_str().map(str::to_owned);
    let about = About {
        kind: SecretKind::parse(&text("type")?)?,
        scope: match note.get("scope")? {
            Value::Null => None,
            scope => Some(scope.as_str()?.to_owned()),
        },
        owner: text("owner")?,
        made: note.get("made")?.as_i64()?,
    };
    Some((about, EncryptedText { key: text("key")?, text: text("sealed")? }))
}

/// The values of a secret.
pub(super) fn opened(
    name: &str,
    about: &About,
    sealed: &EncryptedText,
    cipher: &dyn SecretCipher,
) -> Result<BTreeMap<String, Secret>> {
    let opened = cipher.decrypt(&about.bound(name), sealed)?;
    let none = || Error::new(ErrorKind::Corrupt, "its encrypted values cannot be decoded");
    let Ok(Value::Object(values)) = serde_json::from_str(opened.expose()) else { return Err(none()) };
    let secret = |(key, value): (String, Value)| Some((key, Secret::new(value.as_str()?)));
    values.into_iter().map(secret).collect::<Option<_>>().ok_or_else(none)
}
