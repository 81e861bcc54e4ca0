//! Secrets among the texts of a catalog: in force or not, changed beside their seal, refused.

use super::*;
use bowshot_api::{EncryptedText, ErrorKind};

/// Seals by turning letters: what is tested here is what is done with a seal, not a seal.
#[derive(Debug)]
struct Turned(&'static str);

fn turned(text: &str) -> String {
    text.chars().rev().collect()
}

impl SecretCipher for Turned {
    fn encrypt(&self, about: &str, text: &Secret) -> Result<EncryptedText> {
        Ok(EncryptedText { key: self.0.to_owned(), text: turned(&format!("{about}\n{}", text.expose())) })
    }

    fn decrypt(&self, about: &str, sealed: &EncryptedText) -> Result<Secret> {
        if sealed.key != self.0 {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("it was sealed with the key `{}`", sealed.key),
            ));
        }
        let text = turned(&sealed.text);
        let (of, text) = text.split_once('\n').unwrap_or_default();
        if of != about {
            return Err(Error::new(ErrorKind::Corrupt, "it was changed"));
        }
        Ok(Secret::new(text))
    }
}

fn options(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
}

fn secrets(key: &'static str) -> Arc<Secrets> {
    Secrets::new(Arc::new(Turned(key)), BTreeSet::from(["http://store:9000/".to_owned()]))
}

/// The newest texts of a catalog.
type Catalog = Arc<Mutex<Arc<Texts>>>;

fn newest(catalog: &Catalog) -> Arc<Texts> {
    Arc::clone(&catalog.lock())
}

fn read_from(secrets: &Secrets, catalog: &Catalog) {
    let catalog = Arc::clone(catalog);
    secrets.read_from(move || Some(newest(&catalog)));
}

fn commit(catalog: &Catalog, (key, text): (String, Option<String>)) {
    let mut texts = Texts::clone(&newest(catalog));
    match text {
        Some(text) => texts.insert(key, text),
        None => texts.remove(&key),
    };
    *catalog.lock() = Arc::new(texts);
}

const LAKE: &[(&str, &str)] =
    &[("type", "s3"), ("scope", "s3://bucket/a"), ("key_id", "AKIA"), ("secret", "hush hush")];

#[test]
fn a_secret_is_in_force_from_its_commit_to_its_end() {
    let (secrets, store) = (secrets("one"), Catalog::default());
    assert!(secrets.in_force().is_empty());
    read_from(&secrets, &store);
    let new = secrets.checked("lake".to_owned(), options(LAKE)).unwrap();
    let (key, text) = secrets.sealed(&new, "root", 7).unwrap();
    assert!(Secrets::is_note(&key) && !text.contains("hush"), "{text}");
    assert!(secrets.named("lake").is_err());
    commit(&store, (key.clone(), Some(text)));
    let lake = secrets.named("lake").unwrap();
    assert_eq!(lake.values().unwrap().get("secret_access_key").map(Secret::expose), Some("hush hush"));
    assert!(!format!("{lake:?} {new:?} {secrets:?}").contains("hush"));
    let in_force = secrets.in_force();
    commit(&store, ("[\"role\",\"r\"]".to_owned(), Some("true".to_owned())));
    assert!(Arc::ptr_eq(&lake, &secrets.named("lake").unwrap()), "it is the same after other changes");
    assert!(Arc::ptr_eq(&in_force, &secrets.in_force()), "and so are all of them");
    let again = secrets.sealed(&new, "root", 8).unwrap();
    commit(&store, (again.0, Some(again.1)));
    assert!(!Arc::ptr_eq(&lake, &secrets.named("lake").unwrap()), "it is another one when it is made anew");
    commit(&store, (key, None));
    assert_eq!(secrets.named("lake").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn what_stands_beside_a_secret_cannot_be_changed() {
    let (secrets, store) = (secrets("one"), Catalog::default());
    read_from(&secrets, &store);
    let new = secrets.checked("lake".to_owned(), options(LAKE)).unwrap();
    let (key, text) = secrets.sealed(&new, "root", 7).unwrap();
    for (from, to) in
        [("s3://bucket/a", "s3://bucket"), ("\"root\"", "\"ada\""), ("7", "8"), ("\"s3\"", "\"gcs\"")]
    {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from}");
        commit(&store, (key.clone(), Some(other)));
        assert!(secrets.named("lake").unwrap().values().is_err(), "{from}");
    }
    commit(&store, (Secrets::note("other"), Some(text.clone())));
    assert!(secrets.named("other").unwrap().values().is_err(), "under another name");
    commit(&store, (key, Some(text)));
    assert!(secrets.named("lake").unwrap().values().is_ok());
}

#[test]
fn what_cannot_be_opened_is_told_and_disables_only_itself() {
    let (one, other, store) = (secrets("one"), secrets("other"), Catalog::default());
    read_from(&one, &store);
    let new = |secrets: &Secrets, name: &str| {
        let new = secrets.checked(name.to_owned(), options(LAKE)).unwrap();
        let (key, text) = secrets.sealed(&new, "root", 7).unwrap();
        commit(&store, (key, Some(text)));
    };
    new(&one, "mine");
    new(&other, "theirs");
    commit(&store, (Secrets::note("broken"), Some("no JSON".to_owned())));
    let told = one.told(&newest(&store));
    let names: Vec<(&str, bool)> =
        told.iter().map(|told| (told.name.as_str(), told.problem.is_none())).collect();
    assert_eq!(names, [("broken", false), ("mine", true), ("theirs", false)]);
    assert!(told[2].problem.as_ref().unwrap().contains("`other`"), "it says which key is needed");
    assert_eq!((told[2].kind, told[2].scope.as_deref()), (Some("s3"), Some("s3://bucket/a")));
    assert!(one.named("mine").unwrap().values().is_ok());
}

#[test]
fn secrets_that_make_no_sense_are_refused_without_their_values() {
    let secrets = secrets("one");
    let account = "{\"client_email\":\"hush\",\"private_key\":\"hush\",\"private_key_id\":\"hush\"";
    let (plain, elsewhere) =
        (format!("{account}}}"), format!("{account},\"gcs_base_url\":\"http://hush\"}}"));
    let refused: &[&[(&str, &str)]] = &[
        &[],
        &[("type", "hush")],
        &[("type", "s3")],
        &[("type", "s3"), ("key_id", "hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("hush", "x")],
        &[("type", "s3"), ("key_id", "hush"), ("access_key_id", "hush"), ("secret", "hush")],
        &[("type", "s3"), ("key_id", "hush\nhush"), ("secret", "hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("anonymous", "true")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("region", "x.hush/#")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("account", "hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("profile", "hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("endpoint", "http://hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("provider", "hush")],
        &[("type", "s3"), ("key_id", "hush"), ("secret", "hush"), ("url_style", "hush")],
        &[("type", "s3"), ("scope", "gs://b"), ("key_id", "hush"), ("secret", "hush")],
        &[("type", "s3"), ("scope", "s3://"), ("key_id", "hush"), ("secret", "hush")],
        &[("type", "s3"), ("scope", "s3://b/../c"), ("key_id", "hush"), ("secret", "hush")],
        &[("type", "gcs"), ("service_account", "hush")],
        &[("type", "gcs"), ("service_account", &elsewhere)],
        &[("type", "gcs"), ("service_account", &plain), ("anonymous", "true")],
        &[("type", "azure"), ("account_key", "hush"), ("sas_token", "hush")],
        &[("type", "azure"), ("account", "hush.evil"), ("account_key", "hush")],
        &[("type", "http"), ("bearer_token", "hush")],
        &[("type", "http"), ("scope", "http://example.org"), ("bearer_token", "hush")],
        &[("type", "http"), ("scope", "https://example.org"), ("bearer_token", "hush hush")],
        &[("type", "postgres"), ("scope", "mysql://h/d"), ("password", "hush")],
        &[("type", "postgres"), ("scope", "postgres://u:hush@h/d"), ("password", "hush")],
        &[("type", "postgres"), ("scope", "postgres://h/d?x=hush"), ("password", "hush")],
        &[("type", "postgres"), ("scope", "postgres://h/../d"), ("password", "hush")],
        &[("type", "postgres")],
    ];
    for pairs in refused {
        let Err(error) = secrets.checked("x".to_owned(), options(pairs)) else { panic!("{pairs:?}") };
        assert!(!format!("{error} {error:?} {:?}", error.hint()).contains("hush"), "{error:?}");
    }
    let long = "x".repeat(40 << 10);
    assert!(secrets.checked("x".to_owned(), options(&[("type", "postgres"), ("password", &long)])).is_err());
    for name in ["", "a\nb"] {
        assert!(secrets.checked(name.to_owned(), options(LAKE)).is_err());
    }
    let taken: &[&[(&str, &str)]] = &[
        LAKE,
        &[
            ("type", "S3"),
            ("provider", "config"),
            ("key_id", "a"),
            ("secret", "b"),
            ("endpoint", "http://store:9000"),
        ],
        &[("type", "s3"), ("anonymous", "true"), ("url_style", "vhost")],
        &[("type", "gs"), ("service_account", &plain)],
        &[("type", "azure"), ("scope", "az://box"), ("account_name", "abc1"), ("account_key", "a+b/c==")],
        &[("type", "https"), ("scope", "https://example.org/files"), ("bearer_token", "x")],
        &[("type", "http"), ("scope", "http://127.0.0.1:8000/"), ("bearer_token", "x")],
        &[("type", "postgresql"), ("scope", "postgres://h:5432/d"), ("user", "u"), ("password", "p w")],
        &[("type", "flightsql"), ("scope", "grpc+tls://h:1"), ("password", "p")],
        &[("type", "mysql"), ("scope", "mysql://h/d"), ("user", "u")],
    ];
    for pairs in taken {
        secrets.checked("x".to_owned(), options(pairs)).unwrap();
    }
}
