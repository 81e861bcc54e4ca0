//! Whom certificates let in, and who is refused, with what reason.

use super::*;
use std::path::Path;
use std::time::Duration;

/// A file of the clone whose tests cargo runs: another clone may have built them.
pub(super) fn file(name: &str) -> Vec<u8> {
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    std::fs::read(Path::new(&crate_folder).join("../../tests/data/tls/clients").join(name)).expect(name)
}

fn shown(name: &str) -> Arc<ClientCertificate> {
    let certificate = CertificateDer::from_pem_slice(&file(name)).expect(name);
    ClientCertificate::shown([certificate.as_ref()]).expect("there is one")
}

fn trust(name: CertificateName, revoked: Option<&str>) -> Result<Arc<ClientTrust>, Error> {
    let (authorities, revoked) = (file("authority.pem"), revoked.map(file));
    let files = TrustedFiles { authorities: &authorities, revoked: revoked.as_deref() };
    let options = ClientTrustOptions { name, required: false };
    ClientTrust::new(options, files, Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

fn told(trust: &ClientTrust, name: &str, now: SystemTime) -> String {
    match trust.identify(&shown(name), now) {
        Ok(principal) => principal.name,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unauthenticated);
            error.message().trim_start_matches("the client certificate is refused: ").to_owned()
        }
    }
}

#[test]
fn whom_certificates_let_in() {
    let (trust, now) = (trust(CertificateName::Common, None).expect("is good"), SystemTime::now());
    let foreign = "no trusted authority has issued it, or it is expired or revoked";
    for (name, expected) in [
        ("ada.pem", "ada"),
        ("expired.pem", "it has expired"),
        ("two.pem", "its subject has not exactly one common name"),
        ("server.pem", foreign),
        ("foreign.pem", foreign),
        ("token.pem", "its name is not a valid user name"),
        ("authority.pem", foreign),
    ] {
        assert_eq!(told(&trust, name, now), expected, "{name}");
        assert_eq!(told(&trust, name, now), expected, "{name}, again");
    }
}

#[test]
fn other_names_count_where_the_operator_says_so() {
    let now = SystemTime::now();
    let email = trust(CertificateName::Email, None).expect("is good");
    assert_eq!(told(&email, "ada.pem", now), "ada@example.org");
    assert_eq!(told(&email, "two.pem", now), "it has not exactly one email address");
    let dns = trust(CertificateName::Dns, None).expect("is good");
    assert_eq!(told(&dns, "ada.pem", now), "it has not exactly one host name");
}

#[test]
fn what_was_good_ends() {
    let (trust, now) = (trust(CertificateName::Common, None).expect("is good"), SystemTime::now());
    let ada = trust.identify(&shown("ada.pem"), now).expect("is good");
    let ends = ada.expires.expect("it ends");
    assert_eq!(told(&trust, "ada.pem", ends - Duration::from_secs(1)), "ada");
    assert_eq!(told(&trust, "ada.pem", ends), "it has expired", "although it is remembered");
    let other = file("other-authority.pem");
    trust.renew(TrustedFiles { authorities: &other, revoked: None }).expect("is good");
    assert_eq!(trust.generation(), 1);
    assert_eq!(told(&trust, "foreign.pem", now), "ada");
    assert_ne!(told(&trust, "ada.pem", now), "ada");
    let nothing = TrustedFiles { authorities: b"", revoked: None };
    assert!(trust.renew(nothing).is_err());
    assert_eq!((trust.generation(), told(&trust, "foreign.pem", now).as_str()), (1, "ada"), "all stays");
}

#[test]
fn revoked_certificates() {
    let now = SystemTime::now();
    let of = |list| told(&trust(CertificateName::Common, Some(list)).expect(list), "ada.pem", now);
    let unknown = "no trusted authority has issued it, or it is expired or revoked";
    assert_eq!(of("nobody-revoked.pem"), "ada");
    assert_eq!(of("ada-revoked.pem"), "it was revoked");
    assert_eq!(of("list-of-yesterday.pem"), unknown);
    assert_eq!(of("list-of-another.pem"), unknown);
    assert!(trust(CertificateName::Common, Some("ada.pem")).is_err(), "that is no list");
}

#[test]
fn a_damaged_certificate_is_nobodys() {
    let (trust, now) = (trust(CertificateName::Common, None).expect("is good"), SystemTime::now());
    let whole = shown("ada.pem").chain()[0].clone();
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x20;
        let damaged = ClientCertificate::shown([damaged.as_slice()]).expect("there is one");
        assert!(trust.identify(&damaged, now).is_err(), "{at}");
    }
    let none: [&[u8]; 0] = [];
    assert!(ClientCertificate::shown(none).is_none());
}
