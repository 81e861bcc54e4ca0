//! Who gets in and who does not, by configuration and credentials.

use super::*;
use crate::{TokenConfig, UserConfig, hash_password, hash_token};
use expect_test::{Expect, expect};

fn user(name: &str, password: &str) -> UserConfig {
    let password_hash = Some(hash_password(&Secret::new(password)).expect("hash"));
    UserConfig { name: name.to_owned(), password_hash, ..UserConfig::default() }
}

fn token(name: &str, token: &str) -> TokenConfig {
    TokenConfig { user: name.to_owned(), sha256: hash_token(&Secret::new(token)), ..TokenConfig::default() }
}

fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password { user: user.to_owned(), password: Secret::new(password) }
}

fn bearer(token: &str) -> Credentials {
    Credentials::Bearer(Secret::new(token))
}

fn check(config: AccessConfig, attempts: &[Credentials], expected: Expect) {
    let authenticator = Authenticator::new(config, &AccessOptions::default()).expect("config");
    let mut lines = String::new();
    for credentials in attempts {
        let outcome = match authenticator.verify(credentials) {
            Ok(principal) => format!("{} (authenticated: {})", principal.name, principal.authenticated),
            Err(error) => format!("{:?}: {error}", error.kind()),
        };
        let shown = match credentials {
            Credentials::Anonymous => "nothing".to_owned(),
            Credentials::Password { user, password } => format!("{user}/{}", password.expose()),
            Credentials::Bearer(token) => format!("token {}", token.expose()),
            Credentials::Certificate { .. } => "a certificate".to_owned(),
        };
        lines.push_str(&format!("{shown} -> {outcome}\n"));
    }
    expected.assert_eq(&lines);
}

#[test]
fn without_users_everybody_is_anonymous() {
    check(
        AccessConfig::default(),
        &[Credentials::Anonymous, password("ada", "x"), bearer("None")],
        expect![[r#"
            nothing -> anonymous (authenticated: false)
            ada/x -> anonymous (authenticated: false)
            token None -> anonymous (authenticated: false)
        "#]],
    );
}

#[test]
fn with_users_only_they_come_in() {
    check(
        AccessConfig {
            users: vec![user("ada", "lovelace"), user("bob", "builder")],
            ..AccessConfig::default()
        },
        &[
            password("ada", "lovelace"),
            password("bob", "builder"),
            Credentials::Anonymous,
            password("ada", "builder"),
            password("anonymous", ""),
            password("eve", "lovelace"),
            bearer("None"),
            bearer(""),
        ],
        expect![[r#"
            ada/lovelace -> ada (authenticated: true)
            bob/builder -> bob (authenticated: true)
            nothing -> Unauthenticated: this server requires credentials; connect with user and password, or with a bearer token
            ada/builder -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
            anonymous/ -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
            eve/lovelace -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
            token None -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
            token  -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
        "#]],
    );
}

#[test]
fn a_token_alone_closes_the_server_too() {
    check(
        AccessConfig { tokens: vec![token("robot", "s3cret")], ..AccessConfig::default() },
        &[bearer("s3cret"), Credentials::Anonymous, bearer("s3cret "), password("robot", "s3cret")],
        expect![[r#"
            token s3cret -> robot (authenticated: true)
            nothing -> Unauthenticated: this server requires credentials; connect with user and password, or with a bearer token
            token s3cret  -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
            robot/s3cret -> Unauthenticated: user, password or token is wrong, or the token has expired; log in again with user and password
        "#]],
    );
}

#[test]
fn an_issued_token_names_its_user() {
    let config = AccessConfig { users: vec![user("ada", "lovelace")], ..AccessConfig::default() };
    let authenticator = Authenticator::new(config, &AccessOptions::default()).expect("config");
    let ada = authenticator.verify(&password("ada", "lovelace")).expect("login");
    let token = authenticator.issue_token(&ada);
    assert_eq!(authenticator.verify(&Credentials::Bearer(token)).expect("token"), ada);
    let forged = authenticator.issue_token(&Principal::anonymous());
    assert!(authenticator.verify(&Credentials::Bearer(forged)).is_err(), "nobody proved that name");
}

#[test]
fn an_unknown_user_costs_as_much_as_a_wrong_password() {
    let config = AccessConfig { users: vec![user("ada", "lovelace")], ..AccessConfig::default() };
    let authenticator = Authenticator::new(config, &AccessOptions::default()).expect("config");
    let fastest = |name: &str| {
        (0..3)
            .map(|_| {
                let start = Instant::now();
                assert!(authenticator.verify(&password(name, "wrong")).is_err());
                start.elapsed()
            })
            .min()
            .expect("three runs")
    };
    let (known, unknown) = (fastest("ada"), fastest("eve"));
    // Without the stand-in the unknown user would be refused a thousand times faster.
    assert!(unknown * 10 > known, "known {known:?}, unknown {unknown:?}");
}

#[test]
fn every_mistake_in_the_configuration_stops_start_up() {
    let mut lines = String::new();
    let configs = [
        AccessConfig { users: vec![user("", "x")], ..AccessConfig::default() },
        AccessConfig { users: vec![user("a:b", "x")], ..AccessConfig::default() },
        AccessConfig { users: vec![user("ada", "x"), user("ada", "y")], ..AccessConfig::default() },
        AccessConfig { tokens: vec![token("a\nb", "x")], ..AccessConfig::default() },
        AccessConfig { tokens: vec![token("ada", "x"), token("bob", "x")], ..AccessConfig::default() },
        AccessConfig {
            tokens: vec![TokenConfig { user: "ada".into(), sha256: "00".into(), ..TokenConfig::default() }],
            ..AccessConfig::default()
        },
        AccessConfig {
            users: vec![UserConfig {
                name: "ada".into(),
                password_hash: Some("lovelace".into()),
                ..UserConfig::default()
            }],
            ..AccessConfig::default()
        },
    ];
    for config in configs {
        let error = Authenticator::new(config, &AccessOptions::default()).expect_err("a mistake");
        lines.push_str(&format!("{}\n", bowshot_api::Error::from(error)));
    }
    expect![[r#"
        `` is not a user name: 1 to 128 characters, no colon and no control characters; choose another name
        `a:b` is not a user name: 1 to 128 characters, no colon and no control characters; choose another name
        user `ada` is listed twice; remove one of the entries
        `a\nb` is not a user name: 1 to 128 characters, no colon and no control characters; choose another name
        a token of user `bob` is listed twice; remove one of the entries
        the token of user `ada` is not a SHA-256 hash: 64 hexadecimal digits are wanted; make one with `printf %s TOKEN | sha256sum`
        the password hash of user `ada` cannot be used: it is not in PHC form; make one with `bowshot hash-password`
    "#]].assert_eq(&lines);
}

#[test]
fn users_files_are_read_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("bowshot-access-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let file = folder.join("users.toml");
    let mut lines = String::new();
    for text in [
        "[[users]]\nname = 'ada'\npassword_hash = 'h'\n[[tokens]]\nuser = 'bob'\nsha256 = '00'\n",
        "",
        "[[users]]\nname = 'ada'\npassword = 'clear'\n",
        "[[user]]\nname = 'ada'\n",
        "users = 3",
    ] {
        std::fs::write(&file, text).expect("write");
        let outcome = match AccessConfig::from_file(&file) {
            Ok(config) => format!("{config:?}"),
            Err(error) => {
                bowshot_api::Error::from(error).to_string().replace(&file.display().to_string(), "FILE")
            }
        };
        lines.push_str(&format!("{outcome}\n"));
    }
    std::fs::remove_dir_all(&folder).expect("clean up");
    assert!(matches!(AccessConfig::from_file(&file), Err(Error::Unreadable { .. })));
    expect![[r#"
        AccessConfig { users: [UserConfig { name: "ada", .. }], tokens: [TokenConfig { user: "bob", .. }], jwt: [], ldap: [] }
        the users file `FILE` lists no users; write `[[users]]` entries with `name` and `password_hash`, `[[tokens]]` entries with `user` and `sha256`, `[[jwt]]` entries with `issuer` and `audiences`, or `[[ldap]]` entries with `url`
        the users file `FILE` is not valid in line 3: unknown field `password`, expected one of `name`, `password_hash`, `roles`, `admin`, `attributes`; write `[[users]]` entries with `name` and `password_hash`, `[[tokens]]` entries with `user` and `sha256`, `[[jwt]]` entries with `issuer` and `audiences`, or `[[ldap]]` entries with `url`
        the users file `FILE` is not valid in line 1: unknown field `user`, expected one of `users`, `tokens`, `jwt`, `ldap`; write `[[users]]` entries with `name` and `password_hash`, `[[tokens]]` entries with `user` and `sha256`, `[[jwt]]` entries with `issuer` and `audiences`, or `[[ldap]]` entries with `url`
        the users file `FILE` is not valid in line 1: invalid type: integer `3`, expected a sequence; write `[[users]]` entries with `name` and `password_hash`, `[[tokens]]` entries with `user` and `sha256`, `[[jwt]]` entries with `issuer` and `audiences`, or `[[ldap]]` entries with `url`
    "#]]
    .assert_eq(&lines);
}

#[test]
fn users_of_the_catalog_come_and_go_while_it_serves() {
    let config = AccessConfig { users: vec![user("ada", "lovelace")], ..AccessConfig::default() };
    let authenticator = Authenticator::new(config, &AccessOptions::default()).expect("config");
    let login = |password: &str| {
        let (user, password) = ("bob".to_owned(), Secret::new(password));
        authenticator.verify(&Credentials::Password { user, password })
    };
    assert!(login("builder").is_err());
    let hash = |password: &str| hash_password(&Secret::new(password)).expect("hash");
    authenticator.renew(vec![("bob".to_owned(), Some(hash("builder")))], Vec::new());
    let bob = login("builder").expect("bob is there");
    let token = authenticator.issue_token(&bob);
    assert!(authenticator.verify(&Credentials::Bearer(token.clone())).is_ok());
    authenticator.renew(vec![("bob".to_owned(), Some(hash("changed")))], Vec::new());
    assert!(login("builder").is_err(), "the old password was known to be right");
    assert!(authenticator.verify(&Credentials::Bearer(token)).is_err(), "so was what it had given");
    assert!(login("changed").is_ok());
    authenticator.renew(Vec::new(), Vec::new());
    assert!(login("changed").is_err());
    authenticator.renew(vec![("bob".to_owned(), None)], Vec::new());
    let (before, token) = (authenticator.epoch(), authenticator.issue_token(&bob));
    assert!(login("changed").is_err() && login("").is_err(), "there is no password");
    authenticator.renew(Vec::new(), Vec::new());
    assert!(authenticator.epoch() != before && authenticator.verify(&Credentials::Bearer(token)).is_err());
    authenticator.renew(vec![("ada".to_owned(), Some(hash("stolen")))], Vec::new());
    let stolen = Credentials::Password { user: "ada".to_owned(), password: Secret::new("stolen") };
    assert!(authenticator.verify(&stolen).is_err(), "the configuration comes first");
}
