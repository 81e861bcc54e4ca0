//! What an operator wants to know of a certificate before its clients find out: until when it is valid, and who has signed it.
//! Nothing is decided by it.

use super::names::{parse, time};
use std::time::SystemTime;

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// When it begins to be valid.
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
        let certificate = parse(der)?;
        let validity = certificate.validity();
        Some(Self {
            not_before: time(validity.not_before.timestamp())?,
            not_after: time(validity.not_after.timestamp())?,
            subject: certificate.subject().as_raw().to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            is_authority: certificate.is_ca(),
        })
    }
}
