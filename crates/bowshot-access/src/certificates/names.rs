//! Whom a certificate names, and until when it is valid (RFC 5280). It is read after its signature was found valid, so the
//! operator's authority has written it; what is malformed is refused all the same.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::asn1_rs::Tag;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, GeneralName, X509Certificate};

/// What is read of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) common: Vec<String>,
    pub(super) emails: Vec<String>,
    pub(super) dns: Vec<String>,
    pub(super) not_after: SystemTime,
}

impl Names {
    /// Reads a certificate; `None` for one that cannot be read to its end.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let certificate = parse(der)?;
        let common = certificate.subject().iter_common_name().map(text).collect::<Option<_>>()?;
        let (mut emails, mut dns) = (Vec::new(), Vec::new());
        let alternatives = certificate.subject_alternative_name().ok()?;
        for name in alternatives.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::RFC822Name(email) => emails.push(ascii(email)?),
                GeneralName::DNSName(host) => dns.push(ascii(host)?),
                // An email address or a host name that is no text.
                GeneralName::Invalid(Tag(1 | 2), _) => return None,
                _ => {}
            }
        }
        let not_after = time(certificate.validity().not_after.timestamp())?;
        Some(Self { common, emails, dns, not_after })
    }
}

/// A whole certificate.
pub(super) fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

/// `None` before 1970.
pub(super) fn time(seconds: i64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// A value of the kinds that can be a user's name.
fn text(value: &AttributeTypeAndValue<'_>) -> Option<String> {
    let text = value.as_str().ok()?;
    if value.attr_value().tag() == Tag::Utf8String { Some(text.to_owned()) } else { ascii(text) }
}

fn ascii(text: &str) -> Option<String> {
    text.is_ascii().then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> Vec<u8> {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;
        let file = crate::certificates::tests::file("../first.pem");
        CertificateDer::from_pem_slice(&file).expect("reads").to_vec()
    }

    #[test]
    fn certificates_are_read() {
        let names = Names::of(&first()).expect("reads");
        assert_eq!((names.common, names.emails), (vec!["first".to_owned()], Vec::new()));
        assert_eq!(names.dns, ["localhost"]);
        assert_eq!(names.not_after, UNIX_EPOCH + Duration::from_secs(4_949_140_377));
    }

    #[test]
    fn damaged_certificates_end_nothing() {
        let whole = first();
        for end in 0..whole.len() {
            assert_eq!(Names::of(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x1f, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                // Anything but a panic will do: its signature would not be valid.
                drop(Names::of(&damaged));
            }
        }
    }
}
