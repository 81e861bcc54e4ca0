//! Tokens that are good, and everything that can be wrong with one. Keys are real; the issuer is a file, or a socket.

use super::*;
use crate::AccessConfig;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::path::Path;
use std::time::UNIX_EPOCH;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const ISSUER: &str = "https://id.example.org/realms/one";

/// A key pair on P-256, by its `kid`.
struct Signer(&'static str, EcdsaKeyPair);

impl Signer {
    fn new(kid: &'static str) -> Self {
        Self(kid, EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("key"))
    }

    /// The public key, with other entries.
    fn jwk(&self, with: Value) -> Value {
        let point = self.1.public_key().as_ref().to_vec();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
        merged(json!({ "kty": "EC", "crv": "P-256", "kid": self.0, "x": x, "y": y }), with)
    }

    fn sign(&self, header: Value, claims: Value) -> String {
        let header = merged(json!({ "alg": "ES256", "kid": self.0, "typ": "JWT" }), header);
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.1.sign(&SystemRandom::new(), signed.as_bytes()).expect("signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// A token that is good but for these claims; `null` takes one out.
    fn token(&self, claims: Value) -> String {
        self.sign(json!({}), usual(claims))
    }
}

fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn merged(mut value: Value, with: Value) -> Value {
    let (Value::Object(all), Value::Object(with)) = (&mut value, with) else { panic!("objects") };
    all.extend(with);
    all.retain(|_, value| !value.is_null());
    value
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn usual(with: Value) -> Value {
    let claims = json!({ "iss": ISSUER, "aud": "bowshot", "sub": "ada", "exp": now() + 600 });
    merged(claims, with)
}

fn write(file: &Path, keys: &[Value]) {
    std::fs::write(file, json!({ "keys": keys }).to_string()).expect("key file");
}

/// The issuer with its keys in a file, and more of its configuration.
fn issuers(file: &Path, more: &str) -> Result<Issuers, Error> {
    let text = format!("[[jwt]]\nissuer = '{ISSUER}'\naudiences = ['bowshot']\n{more}\n");
    let source =
        if more.contains("jwks") { String::new() } else { format!("jwks_file = '{}'", file.display()) };
    let config: AccessConfig = toml::from_str(&format!("{text}{source}")).expect("TOML");
    Issuers::new(config.jwt)
}

async fn outcome(issuers: &Issuers, token: &str) -> String {
    match issuers.verify(&Secret::new(token)).await {
        Ok(principal) => {
            let claims = principal.claims.expect("claims");
            let roles: Vec<&str> = claims.roles.iter().map(String::as_str).collect();
            let admin = if claims.admin { " admin" } else { "" };
            format!("{} [{}]{admin}", principal.name, roles.join(" "))
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unauthenticated);
            error.message().to_owned()
        }
    }
}

const REFUSED: &str = "user, password or token is wrong, or the token has expired";

#[tokio::test]
async fn a_token_is_believed_only_for_us_now_and_from_whom_we_know() {
    let (folder, signer) = (tempfile::tempdir().expect("folder"), Signer::new("one"));
    let file = folder.path().join("keys.json");
    write(&file, &[signer.jwk(json!({ "use": "sig", "alg": "ES256" }))]);
    let issuers = issuers(&file, "clock_skew_seconds = 30").expect("issuers");
    let (past, future) = (now() - 3600, now() + 3600);
    for (claims, expected) in [
        (json!({}), "ada []"),
        (json!({ "aud": ["account", "bowshot"] }), "ada []"),
        (json!({ "exp": now() - 20 }), "ada []"),
        (json!({ "nbf": now() + 20, "iat": now() + 20 }), "ada []"),
        (json!({ "iss": "https://id.example.org/realms/two" }), REFUSED),
        (json!({ "iss": null }), REFUSED),
        (json!({ "iss": [ISSUER] }), REFUSED),
        (json!({ "exp": past }), "the token is refused: it has expired"),
        (json!({ "exp": null }), "the token is refused: it has no `exp`, so it would never expire"),
        (json!({ "exp": "never" }), "the token is refused: its `exp` is not a time"),
        (json!({ "exp": 1e300 }), "the token is refused: its `exp` is not a time"),
        (json!({ "exp": -1 }), "the token is refused: its `exp` is not a time"),
        (json!({ "nbf": future }), "the token is refused: it is not valid yet, by its `nbf`"),
        (json!({ "iat": future }), "the token is refused: it is not valid yet, by its `iat`"),
        (json!({ "aud": "account" }), "the token is refused: it is for another audience"),
        (json!({ "aud": null }), "the token is refused: it is for another audience"),
        (json!({ "aud": { "bowshot": true } }), "the token is refused: it is for another audience"),
        (json!({ "sub": null }), "the token is refused: it has no text in the claim `sub`"),
        (json!({ "sub": "" }), "the token is refused: it has no text in the claim `sub`"),
        (json!({ "sub": 7 }), "the token is refused: it has no text in the claim `sub`"),
        (
            json!({ "sub": "a:b" }),
            "the token is refused: `a:b` is not a user name: 1 to 128 characters, no colon and no control characters",
        ),
    ] {
        let token = signer.token(claims.clone());
        assert_eq!(outcome(&issuers, &token).await, expected, "{claims}");
    }
    let principal = issuers.verify(&Secret::new(signer.token(json!({})))).await.expect("good");
    let left = principal.expires.expect("ends").duration_since(SystemTime::now()).expect("later");
    assert!((620..=630).contains(&left.as_secs()), "{left:?}");
}

#[tokio::test]
async fn signatures_that_count() {
    let (folder, one, other) = (tempfile::tempdir().expect("folder"), Signer::new("one"), Signer::new("enc"));
    let file = folder.path().join("keys.json");
    let secret = json!({ "kty": "oct", "kid": "secret", "k": "c2VjcmV0" });
    let strange = json!({ "kty": "new", "kid": 7 });
    write(&file, &[one.jwk(json!({})), other.jwk(json!({ "use": "enc" })), secret, strange]);
    let issuers = issuers(&file, "").expect("issuers");
    let good = one.token(json!({}));
    let (signed, signature) = good.rsplit_once('.').expect("parts");
    let (header, _) = signed.split_once('.').expect("parts");
    let claims = usual(json!({}));
    let unsigned =
        |alg: &str| format!("{}.{}.", encode(&json!({ "alg": alg, "kid": "one" })), encode(&claims));
    for (token, expected) in [
        (good.clone(), "ada []"),
        (one.sign(json!({ "kid": null }), claims.clone()), "ada []"),
        (one.sign(json!({ "typ": "at+jwt" }), claims.clone()), "ada []"),
        (one.sign(json!({ "typ": "application/at+JWT" }), claims.clone()), "ada []"),
        (one.sign(json!({ "typ": "logout+jwt" }), claims.clone()), REFUSED),
        (one.sign(json!({ "crit": ["b64"], "b64": false }), claims.clone()), REFUSED),
        (one.sign(json!({ "kid": "two" }), claims.clone()), REFUSED),
        // A key for encryption, whether the token names it or not.
        (other.sign(json!({}), claims.clone()), REFUSED),
        (other.sign(json!({ "kid": null }), claims.clone()), REFUSED),
        (unsigned("none"), REFUSED),
        (unsigned("None"), REFUSED),
        (unsigned("HS256"), REFUSED),
        (unsigned("ES256"), REFUSED),
        // What one algorithm has signed under the name of another.
        (one.sign(json!({ "alg": "RS256" }), claims.clone()), REFUSED),
        (one.sign(json!({ "alg": "ES384" }), claims.clone()), REFUSED),
        (one.sign(json!({ "alg": "EdDSA" }), claims.clone()), REFUSED),
        // Other claims under a good signature.
        (format!("{header}.{}.{signature}", encode(&usual(json!({ "sub": "bob" })))), REFUSED),
        (format!("{signed}.{}", &signature[..signature.len() - 4]), REFUSED),
        (format!("{signed}."), REFUSED),
        (format!("{good}="), REFUSED),
        (format!("{header}..{signature}"), REFUSED),
        (format!("eyJ.{}.x", "a".repeat(20_000)), REFUSED),
        ("eyJ..".to_owned(), REFUSED),
    ] {
        assert_eq!(outcome(&issuers, &token).await, expected, "{token}");
    }
}

#[tokio::test]
async fn only_allowed_algorithms_count() {
    let (folder, signer) = (tempfile::tempdir().expect("folder"), Signer::new("one"));
    let file = folder.path().join("keys.json");
    let edwards = Ed25519KeyPair::generate().expect("key");
    let x = URL_SAFE_NO_PAD.encode(edwards.public_key().as_ref());
    write(&file, &[signer.jwk(json!({})), json!({ "kty": "OKP", "crv": "Ed25519", "kid": "two", "x": x })]);
    let signed =
        format!("{}.{}", encode(&json!({ "alg": "EdDSA", "kid": "two" })), encode(&usual(json!({}))));
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(edwards.sign(signed.as_bytes())));
    for (algorithms, elliptic, edwards) in [
        ("'ES256'", "ada []", REFUSED),
        ("'EdDSA'", REFUSED, "ada []"),
        ("'RS256', 'PS512'", REFUSED, REFUSED),
    ] {
        let issuers = issuers(&file, &format!("algorithms = [{algorithms}]")).expect("issuers");
        assert_eq!(outcome(&issuers, &signer.token(json!({}))).await, elliptic, "{algorithms}");
        assert_eq!(outcome(&issuers, &token).await, edwards, "{algorithms}");
    }
}

#[tokio::test]
async fn claims_become_names_and_roles() {
    let (folder, signer) = (tempfile::tempdir().expect("folder"), Signer::new("one"));
    let file = folder.path().join("keys.json");
    write(&file, &[signer.jwk(json!({}))]);
    let nested =
        json!({ "realm_access": { "roles": ["reader", "dba"] }, "email": "ada@example.org", "azp": "app" });
    for (more, claims, expected) in [
        ("roles_claim = 'realm_access.roles'", nested.clone(), "ada [dba reader]"),
        ("roles_claim = 'realm_access.roles'\nadmin_role = 'dba'", nested.clone(), "ada [dba reader] admin"),
        (
            "roles_claim = 'realm_access.roles'\nadmin_role = 'dba'\nroles = { reader = 'analyst' }",
            nested.clone(),
            "ada [analyst] admin",
        ),
        ("user_claim = 'email'\nuser_prefix = 'oidc-'", nested.clone(), "oidc-ada@example.org []"),
        ("roles_claim = 'scope'", json!({ "scope": "read  write" }), "ada [read write]"),
        ("roles_claim = 'https://x.org/roles'", json!({ "https://x.org/roles": ["a"] }), "ada [a]"),
        ("roles_claim = 'roles'", json!({}), "ada []"),
        (
            "roles_claim = 'roles'",
            json!({ "roles": ["a", 7] }),
            "the token is refused: its claim `roles` is not a list of strings",
        ),
        (
            "roles_claim = 'roles'",
            json!({ "roles": { "a": true } }),
            "the token is refused: its claim `roles` is not a list of strings",
        ),
        ("authorized_parties = ['app']", nested.clone(), "ada []"),
        ("authorized_parties = ['other']", nested, "the token is refused: it was issued to another client"),
        ("authorized_parties = ['app']", json!({}), "the token is refused: it was issued to another client"),
    ] {
        let issuers = issuers(&file, more).expect("issuers");
        assert_eq!(outcome(&issuers, &signer.token(claims)).await, expected, "{more}");
    }
}

#[test]
fn every_mistake_in_the_configuration_stops_start_up() {
    let (folder, signer) = (tempfile::tempdir().expect("folder"), Signer::new("one"));
    let file = folder.path().join("keys.json");
    write(&file, &[signer.jwk(json!({}))]);
    for (more, reason) in [
        ("algorithms = ['HS256']", "invalid algorithm `HS256`"),
        ("algorithms = ['none']", "invalid algorithm `none`"),
        ("algorithms = []", "`algorithms` is empty"),
        ("clock_skew_seconds = 601", "over ten minutes"),
        ("user_claim = ''", "`user_claim` is empty"),
        ("admin_role = 'dba'", "need `roles_claim`"),
        ("jwks_url = 'http://id.example.org/keys'", "is not https, and not of this machine"),
        ("jwks_url = 'file:///etc/keys'", "is not https"),
        ("jwks_url = 'keys'", "relative URL"),
        ("jwks_file = '/nowhere/keys.json'", "/nowhere/keys.json"),
        ("jwks_file = 'a'\njwks_url = 'https://id.example.org'", "exclude each other"),
    ] {
        let error = issuers(&file, more).expect_err(more).to_string();
        assert!(error.contains(reason) && error.contains(ISSUER), "{more}: {error}");
    }
    for keys in ["{}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}", "no JSON"] {
        std::fs::write(&file, keys).expect("key file");
        assert!(issuers(&file, "").is_err(), "{keys}");
    }
}

/// An issuer on this machine that answers each request with the next of these, and counts them by dropping out.
async fn answering(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = format!("http://{}", listener.local_addr().expect("address"));
    let task = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.expect("a request");
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            asked.push(request.lines().next().unwrap_or_default().to_owned());
            _ = stream.write_all(answer.as_bytes()).await;
        }
        asked
    });
    (address, task)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn answers_that_are_no_keys_let_nobody_in() {
    let signer = Signer::new("one");
    let keys = json!({ "keys": [signer.jwk(json!({}))] }).to_string();
    for answer in [
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/keys\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_owned(),
        ok("<html>"),
        ok(&format!("{keys}{}", " ".repeat(300 << 10))),
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{".to_owned(),
        "nonsense".to_owned(),
        String::new(),
    ] {
        let (address, asked) = answering(vec![answer.clone()]).await;
        let issuers = issuers(Path::new(""), &format!("jwks_url = '{address}/keys'")).expect("issuers");
        assert_eq!(outcome(&issuers, &signer.token(json!({}))).await, REFUSED, "{answer:.80}");
        assert_eq!(outcome(&issuers, &signer.token(json!({}))).await, REFUSED, "asked again at once");
        drop(asked.await);
    }
}
