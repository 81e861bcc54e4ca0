//! The server's certificate and key: read at the start and when the files change. Open connections keep the old certificate.

use crate::config::TlsFiles;
use crate::serve::client_authority::ClientAuthority;
use crate::serve::signal::Hangups;
use crate::usage::Usage;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};

/// How often the files are checked.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(5);
const LARGEST_FILE: u64 = 1 << 20;

/// The TLS configuration. Dropping it ends the watch on files.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ServerConfig>,
    _look: JoinSet<()>,
}

impl Tls {
    /// Reads certificate and key, if there are any, and follows the files from now on.
    ///
    /// # Errors
    /// [`Usage`] for files that cannot be read, are not what they should be, or do not belong together.
    pub(crate) async fn load(
        files: &TlsFiles,
        authority: Option<&ClientAuthority>,
    ) -> Result<Option<Self>, Usage> {
        let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else { return Ok(None) };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let files = Arc::new(Files { certificate: certificate.clone(), key: key.clone() });
        files.warn_of_readers();
        let refuse = |reason: String| {
            Usage::new(reason)
                .with_hint("`tls.certificate` and `tls.key` must be PEM files of one certificate and its key")
        };
        let found = look(Arc::clone(&files), None, Arc::clone(&provider)).await.map_err(refuse)?;
        let (seen, current) = found.ok_or_else(|| refuse("cannot read the certificate".to_owned()))?;
        let identity = Arc::new(Identity { current: RwLock::new(Arc::new(current)) });
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Usage::new(error.to_string()))?;
        let builder = match authority {
            Some(authority) => builder.with_client_cert_verifier(authority.trust()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::<Identity>::clone(&identity));
        if authority.is_some() {
            // A resumed connection would skip the client certificate, which may have been revoked.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let look = JoinSet::from_iter([follow(files, seen, provider, identity)]);
        Ok(Some(Self { config: Arc::new(config), _look: look }))
    }

    /// What a front end needs to encrypt.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

/// What the server shows to clients that connect now.
#[derive(Debug)]
struct Identity {
    current: RwLock<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the files hold, without holding it: a key stays in as few places as possible.
type Fingerprint = [u8; 32];

impl Files {
    /// What is in the files, unless it is what was seen before.
    fn renewed(
        &self,
        seen: Option<Fingerprint>,
        provider: &CryptoProvider,
    ) -> Result<Option<(Fingerprint, CertifiedKey)>, String> {
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        let mut digest = Sha256::new();
        digest.update((certificate.len() as u64).to_le_bytes());
        digest.update(&certificate);
        digest.update(&key);
        let found: Fingerprint = digest.finalize().into();
        if seen == Some(found) {
            return Ok(None);
        }
        Ok(Some((found, self.parse(&certificate, &key, provider)?)))
    }

    fn parse(
        &self,
        certificate: &[u8],
        key: &[u8],
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, String> {
        let refuse = |path: &Path, reason: &str| format!("`{}` cannot be used: {reason}", path.display());
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(&self.certificate, &error.to_string()))?;
        if chain.is_empty() {
            return Err(refuse(&self.certificate, "it has no certificate in PEM format"));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| refuse(&self.key, "it has no unencrypted private key in PEM format"))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                refuse(&self.key, &format!("it is not the key of `{}`", self.certificate.display()))
            }
            error => refuse(&self.key, &error.to_string()),
        })
    }

    /// Says so if other users of this machine can read the key.
    fn warn_of_readers(&self) {
        #[cfg(unix)]
        if let Ok(about) = std::fs::metadata(&self.key)
            && std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0
        {
            let key = self.key.display();
            tracing::warn!(%key, "other users of this machine can read the private key: `chmod 600` it");
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut content))
        .and_then(
            |bytes| {
                if bytes as u64 > LARGEST_FILE { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
            },
        )
        .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
    Ok(content)
}

async fn look(
    files: Arc<Files>,
    seen: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
) -> Result<Option<(Fingerprint, CertifiedKey)>, String> {
    let looked = spawn_blocking(move || files.renewed(seen, &provider)).await;
    looked.unwrap_or_else(|error| Err(error.to_string()))
}

/// Looks at the files for ever. What cannot be used is told once and leaves the server with what it has: a renewal
/// writes two files, of which one comes first.
async fn follow(
    files: Arc<Files>,
    mut seen: Fingerprint,
    provider: Arc<CryptoProvider>,
    identity: Arc<Identity>,
) {
    let (mut told, mut hangups) = (None, Hangups::listen());
    loop {
        hangups.or_after(LOOK_INTERVAL).await;
        let problem = match look(Arc::clone(&files), Some(seen), Arc::clone(&provider)).await {
            Ok(None) => None,
            Ok(Some((found, renewed))) => {
                *identity.current.write() = Arc::new(renewed);
                seen = found;
                tracing::info!(certificate = %files.certificate.display(), "the certificate was reloaded");
                None
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem.as_ref().filter(|problem| told.as_ref() != Some(*problem)) {
            tracing::warn!(%problem, "cannot reload the certificate; the server keeps the loaded one");
        }
        told = problem;
    }
}
