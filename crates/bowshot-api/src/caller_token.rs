//! The token by which a caller has logged in, for other servers that take it too.

use crate::Secret;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A token of an identity provider, held as long as the session of its caller. What is made of it for one server, such as
/// connections, is held beside it and goes when it does.
///
/// ```
/// use bowshot_api::{CallerToken, Secret};
/// let held = CallerToken::new(Secret::new("x.y.z"));
/// assert_eq!(*held.kept("elsewhere", |_: &u8| true, || 7_u8).unwrap(), 7);
/// held.forget();
/// assert!(held.token().is_none() && held.kept("elsewhere", |_: &u8| true, || 7_u8).is_none());
/// ```
pub struct CallerToken(Mutex<Option<Held>>);

struct Held {
    token: Secret,
    kept: BTreeMap<String, Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for CallerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerToken")
    }
}

impl CallerToken {
    /// Holds a token.
    pub fn new(token: Secret) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(Held { token, kept: BTreeMap::new() }))))
    }

    /// The token, until it is forgotten.
    pub fn token(&self) -> Option<Secret> {
        self.lock().as_ref().map(|held| held.token.clone())
    }

    /// Takes the token of another one in the place of this, and lets go of what was made of this.
    pub fn take_over(&self, newer: &Self) {
        let Some(token) = newer.token() else { return };
        let mut held = self.lock();
        if held.as_ref().is_some_and(|held| held.token.expose() != token.expose()) {
            *held = Some(Held { token, kept: BTreeMap::new() });
        }
    }

    /// Lets go of the token, and of all that was made of it.
    pub fn forget(&self) {
        let gone = self.lock().take();
        drop(gone);
    }

    /// What was made of the token under a name, if it still fits, else what `make` makes. `None` once it is forgotten.
    pub fn kept<T: Any + Send + Sync>(
        &self,
        name: &str,
        fits: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Option<Arc<T>> {
        let mut held = self.lock();
        let held = held.as_mut()?;
        let there = held.kept.get(name).cloned().and_then(|kept| kept.downcast::<T>().ok());
        if let Some(there) = there.filter(|there| fits(there)) {
            return Some(there);
        }
        let made = Arc::new(make());
        held.kept.insert(name.to_owned(), Arc::<T>::clone(&made));
        Some(made)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
