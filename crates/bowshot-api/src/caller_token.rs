//! The caller's login token, forwarded to other servers that accept it.

use crate::Secret;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A token of an identity provider, held for the lifetime of the caller's session. Values derived from it for one
/// server, such as connections, are cached with it and dropped with it.
///
/// ```
/// use bowshot_api::{CallerToken, Secret};
/// let held = CallerToken::new(Secret::new("x.y.z"));
/// assert_eq!(*held.cached("elsewhere", |_: &u8| true, || 7_u8).unwrap(), 7);
/// held.forget();
/// assert!(held.token().is_none() && held.cached("elsewhere", |_: &u8| true, || 7_u8).is_none());
/// ```
pub struct CallerToken(Mutex<Option<Held>>);

struct Held {
    token: Secret,
    derived: BTreeMap<String, Arc<dyn Any + Send + Sync>>,
}

crate::debug_fields!(CallerToken {});

impl CallerToken {
    pub fn new(token: Secret) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(Held { token, derived: BTreeMap::new() }))))
    }

    /// The token; `None` after [`Self::forget`].
    pub fn token(&self) -> Option<Secret> {
        self.0.lock().as_ref().map(|held| held.token.clone())
    }

    /// Replaces the token by that of `newer`, and drops the values derived from the old one.
    pub fn take_over(&self, newer: &Self) {
        let Some(token) = newer.token() else { return };
        let mut held = self.0.lock();
        if held.as_ref().is_some_and(|held| held.token.expose() != token.expose()) {
            *held = Some(Held { token, derived: BTreeMap::new() });
        }
    }

    /// Drops the token and all values derived from it.
    pub fn forget(&self) {
        let gone = self.0.lock().take();
        drop(gone);
    }

    /// The value cached under a name if `fits`, else a new one from `make`. `None` after [`Self::forget`].
    pub fn cached<T: Any + Send + Sync>(
        &self,
        name: &str,
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Option<Arc<T>> {
        let mut held = self.0.lock();
        let held = held.as_mut()?;
        let there = held.derived.get(name).cloned().and_then(|value| value.downcast::<T>().ok());
        if let Some(there) = there.filter(|there| fits(there)) {
            return Some(there);
        }
        let made = Arc::new(make());
        held.derived.insert(name.to_owned(), Arc::<T>::clone(&made));
        Some(made)
    }
}
