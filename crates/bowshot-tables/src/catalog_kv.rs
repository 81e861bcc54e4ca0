//! Notes: short texts by key that belong to a snapshot as its tables do. The engine keeps in them who may do what, and which
//! models, types, functions, secrets and pipes there are. They are written in the same transaction as the tables, and each key is merged
//! by itself: two transactions that changed the same one conflict.
//!
//! What the notes mean is their reader's affair, who reads them once for each state ([`Notes::read`]).

use super::merge::Sides;
use super::{Error, What};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Notes of one snapshot: with those of all others, every snapshot holds them.
const MAX_NOTES: usize = 100_000;
const MAX_NOTE_BYTES: usize = 64 << 10;

/// See the module. Immutable: each change gives a copy.
#[derive(Debug, Default)]
pub struct Notes {
    texts: Arc<BTreeMap<String, String>>,
    /// The committed notes that a transaction began with; `None` for committed ones.
    base: Option<Arc<Self>>,
    /// What their reader has made of them.
    read: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Notes {
    pub(super) fn restored(texts: BTreeMap<String, String>) -> Self {
        Self { texts: Arc::new(texts), ..Self::default() }
    }

    /// All notes, by key.
    pub fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }

    pub(super) fn shared_texts(&self) -> &Arc<BTreeMap<String, String>> {
        &self.texts
    }

    /// What `make` makes of the notes, made once.
    pub fn read<T: Any + Send + Sync>(&self, make: impl FnOnce(&BTreeMap<String, String>) -> T) -> Arc<T> {
        let mut make = Some(make);
        let kept = self.read.get_or_init(|| match make.take() {
            Some(make) => Arc::new(make(&self.texts)),
            None => Arc::new(()),
        });
        if let Ok(read) = Arc::clone(kept).downcast::<T>() {
            return read;
        }
        match make.take() {
            Some(make) => Arc::new(make(&self.texts)),
            None => unreachable!("what was just made is of the type that was asked for"),
        }
    }

    /// The notes that hold for a transaction in which these stand: what others have committed since counts at once, and
    /// what it has changed itself counts too.
    pub fn with_newest(self: &Arc<Self>, newest: &Arc<Self>) -> Result<Arc<Self>, Error> {
        match &self.base {
            _ if Arc::ptr_eq(self, newest) => Ok(Arc::clone(newest)),
            None => Ok(Arc::clone(newest)),
            Some(base) if Arc::ptr_eq(base, newest) => Ok(Arc::clone(self)),
            Some(base) => merge(&Sides { base, changed: self, head: newest }),
        }
    }

    /// The same as what a transaction has made of the committed notes `base`.
    pub(super) fn changed_since(self: &Arc<Self>, base: &Arc<Self>) -> Arc<Self> {
        if Arc::ptr_eq(self, base) {
            return Arc::clone(base);
        }
        let texts = Arc::clone(&self.texts);
        Arc::new(Self { texts, base: Some(Arc::clone(base)), read: OnceLock::new() })
    }

    pub(super) fn changed(
        self: &Arc<Self>,
        changes: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Arc<Self>, Error> {
        let mut texts = BTreeMap::clone(&self.texts);
        for (key, text) in changes {
            match text {
                Some(text) if key.len() + text.len() > MAX_NOTE_BYTES => {
                    return Err(Error::TooMuch(format!(
                        "a rule about access, or what is kept of a model, a type, a function, a secret or a pipe, has more than {MAX_NOTE_BYTES} bytes"
                    )));
                }
                Some(text) => drop(texts.insert(key, text)),
                None => drop(texts.remove(&key)),
            }
        }
        if texts.len() > MAX_NOTES {
            return Err(Error::TooMuch(format!(
                "there would be more than {MAX_NOTES} rules about access, models, types, functions, secrets and notes of pipes"
            )));
        }
        let base = self.base.clone().unwrap_or_else(|| Arc::clone(self));
        Ok(Arc::new(Self { texts: Arc::new(texts), base: Some(base), read: OnceLock::new() }))
    }

    pub(super) fn same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.texts == other.texts
    }
}

/// The head's notes with the changes between base and changed; committed once more.
pub(super) fn merge(sides: &Sides<'_, Arc<Notes>>) -> Result<Arc<Notes>, Error> {
    let Sides { base, changed, head } = sides;
    if base.same(changed) {
        return Ok(Arc::clone(head));
    }
    let mut texts = BTreeMap::clone(&head.texts);
    let keys: BTreeSet<&String> = base.texts.keys().chain(changed.texts.keys()).collect();
    for key in keys {
        let (before, after) = (base.texts.get(key), changed.texts.get(key));
        if before == after {
            continue;
        }
        let now = head.texts.get(key);
        if now != before && now != after {
            let (what, name) = told(key);
            return Err(Error::Conflict { what, name, change: "changed" });
        }
        match after {
            Some(text) => texts.insert(key.clone(), text.clone()),
            None => texts.remove(key),
        };
    }
    Ok(Arc::new(Notes::restored(texts)))
}

/// What a note is about, for who changed it at the same time as somebody else.
fn told(key: &str) -> (What, String) {
    match serde_json::from_str::<(String, Vec<String>)>(key) {
        Ok((kind, place)) if kind == "model" => {
            let parts: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
            (What::Model, parts.join("."))
        }
        Ok((kind, name)) if kind == "type" => (What::Type, name.join(".")),
        Ok((kind, name)) if kind == "function" => (What::Function, name.join(".")),
        _ => match serde_json::from_str::<Vec<String>>(key).as_deref() {
            Ok([kind, name]) if kind == "secret" => (What::Secret, name.clone()),
            Ok([kind, name, ..]) if kind == "pipe" => (What::Pipe, name.clone()),
            _ => (What::Rule, key.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(texts: &[(&str, &str)]) -> Arc<Notes> {
        let texts = texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        Arc::new(Notes::restored(texts.collect()))
    }

    fn with(notes: &Arc<Notes>, key: &str, text: Option<&str>) -> Arc<Notes> {
        notes.changed([(key.to_owned(), text.map(str::to_owned))]).expect("changes")
    }

    #[test]
    fn changes_of_different_notes_are_merged_and_of_the_same_one_conflict() {
        let base = notes(&[("a", "1"), ("b", "1")]);
        let (one, other) = (with(&base, "a", None), with(&base, "b", Some("2")));
        let merged = merge(&Sides { base: &base, changed: &one, head: &other }).expect("merges");
        assert!(merged.same(&notes(&[("b", "2")])));
        let third = with(&base, "a", Some("3"));
        let error = merge(&Sides { base: &base, changed: &one, head: &third }).expect_err("both changed it");
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
    }

    #[test]
    fn a_conflict_names_the_model() {
        assert_eq!(told("[\"model\",[\"c\",\"s\",\"\",\"m\"]]"), (What::Model, "c.s.m".to_owned()));
        assert_eq!(told("[\"role\",\"r\"]").0, What::Rule);
        assert_eq!(told("[\"secret\",\"lake\"]"), (What::Secret, "lake".to_owned()));
        assert_eq!(told("[\"pipe\",\"p\",\"f\",\"000001\"]"), (What::Pipe, "p".to_owned()));
    }

    #[test]
    fn what_others_commit_counts_in_an_open_transaction() {
        let base = notes(&[("a", "1")]);
        let newest = notes(&[]);
        assert!(base.with_newest(&newest).expect("nothing changed").same(&newest), "a right taken away");
        let mine = with(&base, "b", Some("1"));
        assert!(mine.with_newest(&base).expect("nobody else").same(&mine));
        assert!(mine.with_newest(&newest).expect("merges").same(&notes(&[("b", "1")])));
        let rebased = mine.with_newest(&newest).expect("merges").changed_since(&newest);
        assert!(rebased.with_newest(&newest).expect("nobody else").same(&notes(&[("b", "1")])));
        let later = with(&newest, "c", Some("1"));
        assert!(rebased.with_newest(&later).expect("merges").same(&notes(&[("b", "1"), ("c", "1")])));
    }

    #[test]
    fn they_are_read_once_for_each_state() {
        let notes = notes(&[("a", "1")]);
        let first = notes.read(BTreeMap::len);
        assert!(Arc::ptr_eq(&first, &notes.read(|_| 7_usize)));
        assert_eq!(*first, 1);
        assert_eq!(*with(&notes, "b", Some("2")).read(BTreeMap::len), 2);
    }
}
