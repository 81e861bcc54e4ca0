//! Client certificates: verification against trusted authorities, and the user that a certificate names. A
//! certificate is verified in the TLS handshake and at each authentication, since trust and revocation may change. It
//! must have exactly one name of the configured kind; callers check that the user exists.

mod names;
mod summary;

use self::names::Names;
pub use self::summary::CertificateSummary;
use crate::Error;
use crate::authenticator::check_name;
use bowshot_api::{ClientCertificate, ErrorKind, Principal};
use parking_lot::{Mutex, RwLock};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Certificates whose names are remembered; beyond, all are read anew.
const REMEMBERED: usize = 4_096;

/// Which name of a certificate is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CertificateName {
    /// The common name of its subject.
    #[default]
    Common,
    /// The email address among the subject's alternative names.
    Email,
    /// The host name among the subject's alternative names.
    Dns,
}

/// Options of client certificates.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientTrustOptions {
    /// Where a certificate has its user's name.
    pub name: CertificateName,
    /// Whether a certificate is required to connect.
    pub required: bool,
}

/// Files of the operator, in PEM form.
#[derive(Debug, Clone, Copy)]
pub struct TrustedFiles<'a> {
    /// Certificates of the authorities.
    pub authorities: &'a [u8],
    /// Revocation lists. If there are any, certificates without a valid list are refused.
    pub revoked: Option<&'a [u8]>,
}

/// Trusted authorities; reloaded from the operator's files.
#[derive(Debug)]
pub struct ClientTrust {
    options: ClientTrustOptions,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<Current>>,
    generation: AtomicU64,
}

/// Trust from one version of the files.
#[derive(Debug)]
struct Current {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Verified certificates by SHA-256: name and expiry.
    known: Mutex<HashMap<[u8; 32], (String, SystemTime)>>,
}

impl ClientTrust {
    /// Believes the authorities of these files.
    ///
    /// # Errors
    /// For files that are not what they should be, without any authority, or with one that has expired.
    pub fn new(
        options: ClientTrustOptions,
        files: TrustedFiles<'_>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<Self>, Error> {
        let current = Current::read(options, files, &provider)?;
        let (current, generation) = (RwLock::new(Arc::new(current)), AtomicU64::new(0));
        Ok(Arc::new(Self { options, provider, current, generation }))
    }

    /// Replaces the trusted files, for open connections too.
    ///
    /// # Errors
    /// As [`ClientTrust::new`]; everything stays as it is then.
    pub fn renew(&self, files: TrustedFiles<'_>) -> Result<(), Error> {
        let current = Current::read(self.options, files, &self.provider)?;
        *self.current.write() = Arc::new(current);
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Version of the trusted files.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whose certificate it is, and that it is good now.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub(crate) fn identify(
        &self,
        certificate: &Arc<ClientCertificate>,
        now: SystemTime,
    ) -> bowshot_api::Result<Principal> {
        let (current, print) = (self.current(), fingerprint(certificate));
        let known = current.known.lock().get(&print).cloned();
        let (name, ends) = match known {
            Some(known) => known,
            None => {
                let found = current.judge(certificate, self.options.name, now)?;
                let mut known = current.known.lock();
                if known.len() >= REMEMBERED {
                    known.clear();
                }
                known.insert(print, found.clone());
                found
            }
        };
        if ends <= now {
            return Err(refused("it has expired"));
        }
        let certificate = Some(Arc::clone(certificate));
        Ok(Principal { expires: Some(ends), certificate, ..Principal::user(name) })
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read())
    }
}

impl Current {
    fn read(
        options: ClientTrustOptions,
        files: TrustedFiles<'_>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let bad = |reason: String| Error::BadAuthority { reason };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(files.authorities) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            let names =
                Names::of(&certificate).ok_or_else(|| bad("a certificate cannot be read".to_owned()))?;
            if names.not_after <= SystemTime::now() {
                return Err(bad("the certificate of an authority has expired".to_owned()));
            }
            roots.add(certificate).map_err(|error| bad(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(bad("expected a certificate in PEM format".to_owned()));
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        if let Some(revoked) = files.revoked {
            let lists: Vec<CertificateRevocationListDer<'static>> =
                CertificateRevocationListDer::pem_slice_iter(revoked)
                    .collect::<Result<_, _>>()
                    .map_err(|error| bad(error.to_string()))?;
            if lists.is_empty() {
                return Err(bad("expected a revocation list in PEM format".to_owned()));
            }
            builder = builder.with_crls(lists).enforce_revocation_expiration();
        }
        if !options.required {
            builder = builder.allow_unauthenticated();
        }
        let verifier = builder.build().map_err(|error| bad(error.to_string()))?;
        Ok(Self { verifier, known: Mutex::default() })
    }

    fn judge(
        &self,
        certificate: &ClientCertificate,
        kind: CertificateName,
        now: SystemTime,
    ) -> bowshot_api::Result<(String, SystemTime)> {
        let chain: Vec<CertificateDer<'_>> =
            certificate.chain().iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let Some((own, others)) = chain.split_first() else { return Err(refused("there is none")) };
        let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        self.verifier.verify_client_cert(own, others, now).map_err(|error| refused(reason(&error)))?;
        let names = Names::of(own).ok_or_else(|| refused("it cannot be read"))?;
        let ends = names.not_after;
        let (found, what) = match kind {
            CertificateName::Common => (names.common, "its subject has not exactly one common name"),
            CertificateName::Email => (names.emails, "it has not exactly one email address"),
            CertificateName::Dns => (names.dns, "it has not exactly one host name"),
        };
        // With several names, the requester may have chosen one that was not verified.
        let [name] = <[String; 1]>::try_from(found).map_err(|_| refused(what))?;
        check_name(&name).map_err(|_| refused("its name is not a valid user name"))?;
        Ok((name, ends))
    }
}

/// For the TLS handshake, with the current trust.
impl ClientCertVerifier for ClientTrust {
    fn client_auth_mandatory(&self) -> bool {
        self.options.required
    }

    /// None: clients send what they have, and the trust may change.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.current().verifier.verify_client_cert(own, others, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().verifier.supported_verify_schemes()
    }
}

fn fingerprint(certificate: &ClientCertificate) -> [u8; 32] {
    let mut digest = Sha256::new();
    for der in certificate.chain() {
        digest.update((der.len() as u64).to_le_bytes());
        digest.update(der);
    }
    digest.finalize().into()
}

/// Callers with a foreign certificate get no details.
fn reason(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "it has expired",
        rustls::Error::InvalidCertificate(CertificateError::Revoked) => "it was revoked",
        _ => "no trusted authority has issued it, or it is expired or revoked",
    }
}

/// The error for a refused certificate.
pub(crate) fn refused(reason: &str) -> bowshot_api::Error {
    bowshot_api::Error::new(ErrorKind::Unauthenticated, format!("the client certificate is refused: {reason}"))
        .with_hint("show a certificate of the operator's authority that names a user, or log in with a password or token")
}

#[cfg(test)]
mod tests;
