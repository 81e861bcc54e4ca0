//! Validity and issuer of a certificate, for diagnostics only.

use super::names::{parse, time};
use std::time::SystemTime;

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
