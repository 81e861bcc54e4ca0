//! Whom a certificate names, and until when it is good (RFC 5280). It is read after its signature was found good, so the
//! operator's authority has written it; what is not as it should be is refused all the same.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
pub(super) const VERSION: u8 = 0xa0;
pub(super) const EXTENSIONS: u8 = 0xa3;
/// Within a subject's alternative names.
const EMAIL: u8 = 0x81;
const DNS: u8 = 0x82;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.29.17
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

/// What is read of a certificate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) common: Vec<String>,
    pub(super) emails: Vec<String>,
    pub(super) dns: Vec<String>,
    /// Seconds since 1970.
    pub(super) not_after: u64,
}

impl Names {
    /// Reads a certificate; `None` for one that cannot be read to its end.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let mut names = Self::default();
        let mut certificate = Reader(Reader(der).only(SEQUENCE)?);
        let mut told = Reader(certificate.take(SEQUENCE)?);
        told.skip(VERSION);
        told.take(INTEGER)?;
        // The algorithm of the signature, and who has signed.
        told.take(SEQUENCE)?;
        told.take(SEQUENCE)?;
        let mut validity = Reader(told.take(SEQUENCE)?);
        validity.next()?;
        let (kind, text) = validity.next()?;
        names.not_after = seconds(kind, text)?;
        names.read_subject(told.take(SEQUENCE)?)?;
        // The key.
        told.take(SEQUENCE)?;
        while let Some((tag, content)) = told.next() {
            if tag == EXTENSIONS {
                names.read_extensions(Reader(content).only(SEQUENCE)?)?;
            }
        }
        told.0.is_empty().then_some(names)
    }

    /// When it ceases to be good.
    pub(super) fn ends(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.not_after)
    }

    fn read_subject(&mut self, subject: &[u8]) -> Option<()> {
        let mut parts = Reader(subject);
        while !parts.0.is_empty() {
            let mut values = Reader(parts.take(SET)?);
            while !values.0.is_empty() {
                let mut value = Reader(values.take(SEQUENCE)?);
                let kind = value.take(OBJECT)?;
                let (tag, content) = value.next()?;
                if kind == COMMON_NAME {
                    self.common.push(text(tag, content)?);
                }
            }
        }
        Some(())
    }

    fn read_extensions(&mut self, extensions: &[u8]) -> Option<()> {
        let mut extensions = Reader(extensions);
        while !extensions.0.is_empty() {
            let mut extension = Reader(extensions.take(SEQUENCE)?);
            let kind = extension.take(OBJECT)?;
            extension.skip(BOOLEAN);
            let content = extension.take(OCTETS)?;
            if kind != ALTERNATIVE_NAMES {
                continue;
            }
            let mut names = Reader(Reader(content).only(SEQUENCE)?);
            while !names.0.is_empty() {
                match names.next()? {
                    (EMAIL, name) => self.emails.push(text(IA5, name)?),
                    (DNS, name) => self.dns.push(text(IA5, name)?),
                    _ => {}
                }
            }
        }
        Some(())
    }
}

/// Values one after the other (X.690): a tag of one byte, a length, and the content.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match *first {
            short @ ..=0x7f => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        // Tags of several bytes stand nowhere here.
        (tag & 0x1f != 0x1f).then_some((*tag, content))
    }

    pub(super) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// The content of the one value that there is.
    pub(super) fn only(mut self, tag: u8) -> Option<&'a [u8]> {
        let content = self.take(tag)?;
        self.0.is_empty().then_some(content)
    }

    pub(super) fn skip(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

/// A text of the kinds that can be a user's name.
fn text(tag: u8, content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    match tag {
        UTF8 => Some(text.to_owned()),
        PRINTABLE | IA5 if text.is_ascii() => Some(text.to_owned()),
        _ => None,
    }
}

/// `YYMMDDhhmmssZ`, or with four digits of the year.
pub(super) fn seconds(tag: u8, content: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME if text.len() == 12 => {
            let year: u64 = text.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
        }
        TIME if text.len() == 14 => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2).and_then(|digits| digits.parse::<u64>().ok());
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_before(year, month)? + day - 1;
    Some(days * SECONDS_OF_A_DAY + hour * 3_600 + minute * 60 + second)
}

/// Days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> Option<u64> {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = leaps(year) > leaps(year - 1);
    let years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let months = BEFORE.get(usize::try_from(month - 1).ok()?)?;
    Some(years + months + u64::from(is_leap && month > 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "261126234741Z", Some(1_795_736_861)),
            (TIME, "20240229000000Z", Some(1_709_164_800)),
            (TIME, "20240301000000Z", Some(1_709_251_200)),
            (TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "690101000000Z", None),
            (UTC_TIME, "20240229000000Z", None),
            (TIME, "20241301000000Z", None),
            (TIME, "20240229000000", None),
            (TIME, "2024022900000+Z", None),
            (OCTETS, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    fn first() -> Vec<u8> {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tls/first.pem");
        CertificateDer::from_pem_file(path).expect("reads").to_vec()
    }

    #[test]
    fn certificates_are_read() {
        let names = Names::of(&first()).expect("reads");
        assert_eq!((names.common, names.emails), (vec!["first".to_owned()], Vec::new()));
        assert_eq!(names.dns, ["localhost"]);
        assert_eq!(names.not_after, 4_949_140_377);
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
                // Anything but a panic will do: its signature would not be good.
                drop(Names::of(&damaged));
            }
        }
    }

    #[test]
    fn values_come_whole_or_not_at_all() {
        assert_eq!(Reader(&[0x30, 0x02, 1, 2]).only(SEQUENCE), Some([1, 2].as_ref()));
        assert_eq!(Reader(&[0x30, 0x81, 0x01, 7]).only(SEQUENCE), Some([7].as_ref()));
        for bad in [
            &[0x30, 0x03, 1, 2][..],
            &[0x30],
            &[],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x85, 0, 0, 0, 0, 1, 1],
            &[0x3f, 0x01, 1],
            &[0x30, 0x01, 1, 1],
        ] {
            assert_eq!(Reader(bad).only(SEQUENCE), None, "{bad:?}");
        }
    }
}
