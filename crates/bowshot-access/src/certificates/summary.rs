//! Validity and issuer of a certificate, for diagnostics only.

use super::names::{BOOLEAN, EXTENSIONS, INTEGER, OBJECT, OCTETS, Reader, SEQUENCE, VERSION, seconds};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2.5.29.19
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// Content of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSummary {
    /// Begin of its validity.
    pub not_before: SystemTime,
    /// When it ceases to be.
    pub not_after: SystemTime,
    /// The encoded subject.
    pub subject: Vec<u8>,
    /// The encoded issuer.
    pub issuer: Vec<u8>,
    /// Whether it is an authority.
    pub is_authority: bool,
}

impl CertificateSummary {
    /// Parses a certificate (DER) without checking signatures; `None` if it is malformed.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let mut certificate = Reader(Reader(der).only(SEQUENCE)?);
        let mut told = Reader(certificate.take(SEQUENCE)?);
        told.skip(VERSION);
        told.take(INTEGER)?;
        told.take(SEQUENCE)?;
        let issuer = told.take(SEQUENCE)?.to_vec();
        let mut validity = Reader(told.take(SEQUENCE)?);
        let mut time = || {
            let (kind, text) = validity.next()?;
            UNIX_EPOCH.checked_add(Duration::from_secs(seconds(kind, text)?))
        };
        let (not_before, not_after) = (time()?, time()?);
        let subject = told.take(SEQUENCE)?.to_vec();
        told.take(SEQUENCE)?;
        let mut is_authority = false;
        while let Some((tag, content)) = told.next() {
            if tag == EXTENSIONS {
                is_authority = signs(Reader(content).only(SEQUENCE)?)?;
            }
        }
        Some(Self { not_before, not_after, subject, issuer, is_authority })
    }
}

/// Whether the extensions allow it to sign certificates.
fn signs(extensions: &[u8]) -> Option<bool> {
    let mut extensions = Reader(extensions);
    while !extensions.0.is_empty() {
        let mut extension = Reader(extensions.take(SEQUENCE)?);
        let kind = extension.take(OBJECT)?;
        extension.skip(BOOLEAN);
        let content = extension.take(OCTETS)?;
        if kind == BASIC_CONSTRAINTS {
            let mut constraints = Reader(Reader(content).only(SEQUENCE)?);
            return Some(constraints.take(BOOLEAN).is_some_and(|truth| truth != [0]));
        }
    }
    Some(false)
}
