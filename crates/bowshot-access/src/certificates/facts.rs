//! What an operator wants to know of a certificate before its clients find out: until when it is good, and who has signed it.
//! Nothing is decided by it.

use super::names::{BOOLEAN, EXTENSIONS, INTEGER, OBJECT, OCTETS, Reader, SEQUENCE, VERSION, seconds};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2.5.29.19
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// When it begins to be good.
    pub not_before: SystemTime,
    /// When it ceases to be.
    pub not_after: SystemTime,
    /// Whom it is about, as it is encoded.
    pub subject: Vec<u8>,
    /// Who has signed it, as the signer's own certificate has it.
    pub issuer: Vec<u8>,
    /// Whether it may sign others.
    pub is_authority: bool,
}

impl CertificateFacts {
    /// Reads a certificate (DER); `None` for one that cannot be read. Signatures are not looked at.
    pub fn of(der: &[u8]) -> Option<Self> {
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

/// Whether the extensions let the certificate sign others.
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
