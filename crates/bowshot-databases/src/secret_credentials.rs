//! Credentials of secrets (`CREATE SECRET`) for attached databases: of the secret that ATTACH names, or of the one with the longest matching
//! scope. A replaced secret counts from the next statement on; a dropped one leaves the database without credentials.

use crate::location::Location;
use crate::settings::DatabaseSettings;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_object_store::secrets::{KeptSecret, Secrets};
use std::sync::Arc;

/// The settings with the credentials of a matching secret.
///
/// # Errors
/// `NotFound` without the named secret; `Invalid` for one of another kind or scope, or that cannot be decrypted, and
/// without a required user.
pub(crate) fn resolve(settings: DatabaseSettings, secrets: Option<&Secrets>) -> Result<DatabaseSettings> {
    let secret = match (&settings.secret, secrets) {
        (None, None) => None,
        (None, Some(secrets)) => most_exact(&settings, secrets),
        (Some(name), Some(secrets)) => Some(secrets.named(name)?),
        (Some(_), None) => return Err(Error::unsupported("this server has no secrets")),
    };
    match secret {
        Some(secret) => with(settings, secret),
        None => settings.check_user().map(|()| settings),
    }
}

/// New settings if the secret was replaced.
///
/// # Errors
/// `Unavailable` if it was dropped or cannot be used any more.
pub(crate) fn refresh(
    settings: &DatabaseSettings,
    secrets: Option<&Secrets>,
) -> Result<Option<DatabaseSettings>> {
    let (Some(opened), Some(secrets)) = (&settings.opened_secret, secrets) else { return Ok(None) };
    let gone = |reason: &str| {
        let (database, name) = (&settings.name, opened.name());
        let message = format!("the database `{database}` has no credentials: its secret `{name}` {reason}");
        Error::new(ErrorKind::Unavailable, message)
            .with_hint("create the secret again with CREATE SECRET, or DETACH and ATTACH the database")
    };
    let now = secrets.named(opened.name()).map_err(|_| gone("was dropped"))?;
    if Arc::ptr_eq(&now, opened) {
        return Ok(None);
    }
    let renewed = with(settings.clone(), now);
    renewed.map(Some).map_err(|error| gone(&format!("was replaced, and {}", error.message())))
}

/// The most specific secret for a database without credentials.
fn most_exact(settings: &DatabaseSettings, secrets: &Secrets) -> Option<Arc<KeptSecret>> {
    if settings.user.is_some() || settings.password.is_some() || settings.forward_token {
        return None;
    }
    let about = |secret: &Arc<KeptSecret>| {
        let scope = secret.scope()?;
        let is_of_kind = secret.kind().is_some_and(|kind| kind.name() == settings.kind.name());
        (is_of_kind && covers(settings, scope))
            .then(|| (scope.trim_end_matches('/').len(), Arc::clone(secret)))
    };
    let about = secrets.all().into_iter().filter_map(|secret| about(&secret));
    about.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, secret)| secret)
}

/// Whether a scope covers the location of a database.
fn covers(settings: &DatabaseSettings, scope: &str) -> bool {
    let scope = Location::parse(settings.kind, scope, None);
    scope.is_ok_and(|scope| settings.place.is_within(&scope))
}

fn with(mut settings: DatabaseSettings, secret: Arc<KeptSecret>) -> Result<DatabaseSettings> {
    let wrong = |reason: &str| {
        let (database, name) = (&settings.name, secret.name());
        Error::invalid(format!("the secret `{name}` cannot be used for the database `{database}`: {reason}"))
    };
    if secret.kind().is_none_or(|kind| kind.name() != settings.kind.name()) {
        return Err(wrong(&format!("it is not of type {}", settings.kind.name())));
    }
    if secret.scope().is_some_and(|scope| !covers(&settings, scope)) {
        return Err(wrong("its scope is another location"));
    }
    let values = secret.values().map_err(wrong)?;
    let (user, password) = (values.get("user"), values.get("password"));
    let user = user.map(|user| user.expose().to_owned());
    let password = password.cloned();
    settings.user = user;
    settings.password = password;
    settings.secret = Some(secret.name().to_owned());
    settings.opened_secret = Some(secret);
    settings.check_user()?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowshot_api::{EncryptedText, Secret, SecretCipher};
    use bowshot_tables::TableStore;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Debug)]
    struct Open;

    impl SecretCipher for Open {
        fn encrypt(&self, _: &str, text: &Secret) -> Result<EncryptedText> {
            Ok(EncryptedText { key: String::new(), text: text.expose().to_owned() })
        }

        fn decrypt(&self, _: &str, sealed: &EncryptedText) -> Result<Secret> {
            Ok(Secret::new(sealed.text.as_str()))
        }
    }

    struct World {
        secrets: Arc<Secrets>,
        store: Arc<TableStore>,
    }

    impl World {
        fn new() -> Self {
            let (secrets, store) =
                (Secrets::new(Arc::new(Open), BTreeSet::new()), TableStore::in_memory("c", "s", 1 << 20));
            secrets.read_from(store.newest_texts());
            Self { secrets, store }
        }

        fn make(&self, name: &str, kind: &str, scope: &str, password: &str) {
            let all = [("type", kind), ("scope", scope), ("user", name), ("password", password)];
            let options = all.into_iter().filter(|(_, value)| !value.is_empty());
            let options = options.map(|(key, value)| (key.to_owned(), Secret::new(value))).collect();
            let new = self.secrets.checked(name.to_owned(), options).unwrap();
            let (key, text) = self.secrets.sealed(&new, "root", 1).unwrap();
            self.commit(key, Some(text));
        }

        fn commit(&self, key: String, text: Option<String>) {
            let base = self.store.snapshot();
            let changed = Arc::new(base.with_notes([(key, text)]).unwrap());
            self.store.commit(&base, &changed).unwrap();
        }

        fn attached(&self, uri: &str, more: &[(&str, &str)]) -> Result<DatabaseSettings> {
            let values: BTreeMap<String, Vec<String>> =
                more.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect();
            resolve(DatabaseSettings::attached("d", uri, &values)?, Some(&self.secrets))
        }
    }

    #[test]
    fn a_database_gets_what_it_names_or_what_is_most_exact() {
        let world = World::new();
        world.make("host", "postgres", "postgres://h:5432", "p1");
        world.make("shop", "postgres", "postgresql://H:5432/shop", "p2");
        world.make("any", "postgres", "", "p3");
        world.make("flight", "flightsql", "grpc+tls://h:1", "p4");
        world.make("my", "mysql", "mysql://h/shop", "p6");
        let password = |settings: &DatabaseSettings| settings.password.clone().unwrap().expose().to_owned();
        for (uri, expected) in [
            ("postgres://h:5432/shop", "p2"),
            ("postgres://h:5432/other", "p1"),
            ("grpc+tls://h:1", "p4"),
            ("mysql://h/shop", "p6"),
            ("mariadb://h/shop", "p6"),
        ] {
            assert_eq!(password(&world.attached(uri, &[]).unwrap()), expected, "{uri}");
        }
        for uri in ["postgres://h:5433/shop", "postgres://other:5432/shop", "grpc://h:1"] {
            assert!(world.attached(uri, &[]).unwrap().password.is_none(), "{uri}");
        }
        assert!(world.attached("mysql://h/other", &[]).is_err(), "nobody says who logs in");
        let named = |name: &str| world.attached("postgres://h:5432/shop", &[("secret", name)]);
        assert_eq!(password(&named("any").unwrap()), "p3");
        assert_eq!(named("none").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(named("flight").is_err(), "of another type");
        world.make("other", "postgres", "postgres://other", "p5");
        assert!(named("other").is_err(), "about another place");
        let own = world.attached("postgres://h:5432/shop", &[("user", "u")]).unwrap();
        assert!(
            own.opened_secret.is_none() && own.password.is_none(),
            "whoever names a user names the password too"
        );
        assert!(world.attached("postgres://h:5432/shop", &[("user", "u"), ("secret", "any")]).is_err());
    }

    #[test]
    fn a_changed_secret_counts_and_a_dropped_one_leaves_nothing() {
        let world = World::new();
        world.make("shop", "postgres", "postgres://h", "p1");
        let opened = world.attached("postgres://h/d", &[]).unwrap();
        let again = || refresh(&opened, Some(&world.secrets));
        assert!(again().unwrap().is_none());
        world.make("shop", "postgres", "postgres://h", "p2");
        assert_eq!(again().unwrap().unwrap().password.as_ref().map(Secret::expose), Some("p2"));
        world.make("shop", "postgres", "postgres://elsewhere", "p3");
        assert_eq!(again().unwrap_err().kind(), ErrorKind::Unavailable);
        world.commit(Secrets::note("shop"), None);
        let error = again().unwrap_err();
        assert!(error.message().contains("dropped") && !format!("{error:?} {opened:?}").contains("p1"));
    }
}
