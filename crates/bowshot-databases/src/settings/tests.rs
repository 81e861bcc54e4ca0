//! Entries and attachments: understood as a whole, or refused.

use super::*;

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect()
}

#[test]
fn a_token_goes_where_nobody_else_reads_it() {
    let attached = |uri: &str, more: &[(&str, &str)]| {
        let mut pairs = vec![("type", "flightsql"), ("forward_token", "true")];
        pairs.retain(|(key, _)| !more.iter().any(|(other, _)| other == key));
        pairs.extend(more);
        DatabaseSettings::attached("fs", uri, &values(&pairs))
    };
    for uri in ["grpc+tls://h:1", "grpc://127.0.0.1:1", "grpc+tcp://[::1]:1", "grpc://localhost"] {
        assert!(attached(uri, &[]).unwrap().forward_token, "{uri}");
    }
    for uri in ["grpc://h:1", "grpc://10.0.0.1:1", "grpc://127.0.0.1.example.org:1", "grpc://[::2]:1"] {
        assert!(attached(uri, &[]).is_err(), "{uri}");
        assert!(attached(uri, &[("forward_token", "false")]).is_ok(), "{uri}");
    }
    for more in [("user", "u"), ("password", "p")] {
        assert!(attached("grpc+tls://h:1", &[more]).is_err(), "{more:?}");
    }
    let postgres = [("type", "postgres"), ("forward_token", "true")];
    assert!(DatabaseSettings::attached("pg", "postgres://127.0.0.1/d", &values(&postgres)).is_err());
}

#[test]
fn an_entry_is_understood_as_a_whole_or_refused() {
    let base = [("name", "pg"), ("kind", "postgres"), ("uri", "postgres://h/d")];
    let good = DatabaseSettings::read(&values(&base), None).unwrap();
    assert!(good.read_only && good.password.is_none() && good.pool == DEFAULT_POOL);
    for (key, value) in [
        ("pasword", "x"),
        ("kind", "oracle"),
        ("uri", "http://h/d"),
        ("uri", "postgres://u:p@h/d"),
        ("pool", "0"),
        ("pool", "65"),
        ("timeout", "soon"),
        ("timeout", "0s"),
        ("read_only", "perhaps"),
        ("catalog", "c"),
        ("name", ""),
    ] {
        let mut pairs = base.to_vec();
        pairs.retain(|(known, _)| *known != key);
        pairs.push((key, value));
        assert!(DatabaseSettings::read(&values(&pairs), None).is_err(), "{key}={value}");
    }
}

#[test]
fn a_password_is_read_from_its_file_and_shown_nowhere() {
    let path = std::env::temp_dir().join(format!("bowshot-password-{}", std::process::id()));
    std::fs::write(&path, "hush hush\n").unwrap();
    let path_text = path.display().to_string();
    let pairs =
        [("name", "pg"), ("kind", "postgres"), ("uri", "postgres://h/d"), ("password_file", &path_text)];
    let settings = DatabaseSettings::read(&values(&pairs), None).unwrap().with_password().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(settings.password.as_ref().map(Secret::expose), Some("hush hush"));
    assert!(!format!("{settings:?}").contains("hush hush"));
}

#[test]
fn an_entry_of_mysql_names_who_logs_in_and_what_is_seen() {
    let attached = |uri: &str, more: &[(&str, &str)]| {
        let settings = DatabaseSettings::attached("m", uri, &values(more))?;
        settings.check_user().map(|()| settings)
    };
    let shop = attached("mysql://reader@h/shop", &[]).unwrap();
    assert_eq!((shop.kind, shop.user.as_deref()), (Kind::Mysql, Some("reader")));
    assert_eq!((shop.schemas, shop.zero_dates), (vec!["shop".to_owned()], ZeroDates::Error));
    assert!(!shop.place.to_string().contains("reader"));
    let all = attached("mysql://h", &[("user", "u"), ("schemas", "a, b"), ("zero_dates", "null")]).unwrap();
    assert_eq!((all.schemas.len(), all.zero_dates), (2, ZeroDates::Null));
    for (uri, more) in [
        ("mysql://h/shop", &[][..]),
        ("mysql://u:p@h/shop", &[]),
        ("mysql://u@h/shop", &[("user", "v")]),
        ("mysql://u@h/shop", &[("schemas", "other")]),
        ("mysql://u@h/shop", &[("zero_dates", "perhaps")]),
        ("mysql://u@h/shop", &[("catalog", "c")]),
        ("mysql://u@h/shop", &[("forward_token", "true")]),
        ("postgres://u@h/shop", &[("zero_dates", "null")]),
    ] {
        assert!(attached(uri, more).is_err(), "{uri} {more:?}");
    }
}
