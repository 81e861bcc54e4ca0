//! Authorities of client certificates: read at the start and when their files change, so that a revoked certificate is refused within
//! seconds, also on open connections.

use crate::config::TlsFiles;
use crate::serve::signal::Hangups;
use crate::serve::tls::{LOOK_INTERVAL, read};
use crate::usage::Usage;
use bowshot_access::{ClientTrust, TrustedFiles};
use rustls::crypto::aws_lc_rs;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::{JoinSet, spawn_blocking};

/// Watches the files until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientAuthority {
    trust: Arc<ClientTrust>,
    _look: JoinSet<()>,
}

#[derive(Debug)]
struct Files {
    authority: PathBuf,
    revoked: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    authorities: Vec<u8>,
    revoked: Option<Vec<u8>>,
}

impl ClientAuthority {
    /// Reads the files, if there are any, and follows them from now on.
    ///
    /// # Errors
    /// [`Usage`] for files that cannot be read, or are not what they should be.
    pub(crate) async fn load(files: &TlsFiles) -> Result<Option<Self>, Usage> {
        let (Some(options), Some(authority)) = (files.client_trust()?, files.client_authority.clone()) else {
            return Ok(None);
        };
        let files = Arc::new(Files { authority, revoked: files.client_revoked.clone() });
        let refuse = |reason: String| {
            Usage::new(reason)
                .with_hint("`tls.client_authority` and `tls.client_revoked` name files in PEM form")
        };
        let content = look(Arc::clone(&files)).await.map_err(refuse)?;
        let trust = ClientTrust::new(options, content.files(), Arc::new(aws_lc_rs::default_provider()))
            .map_err(|error| Usage::from(bowshot_api::Error::from(error)))?;
        let look = JoinSet::from_iter([follow(files, content, Arc::clone(&trust))]);
        Ok(Some(Self { trust, _look: look }))
    }

    pub(crate) fn trust(&self) -> Arc<ClientTrust> {
        Arc::clone(&self.trust)
    }
}

impl Content {
    fn files(&self) -> TrustedFiles<'_> {
        TrustedFiles { authorities: &self.authorities, revoked: self.revoked.as_deref() }
    }
}

async fn look(files: Arc<Files>) -> Result<Content, String> {
    let looked = spawn_blocking(move || {
        let revoked = files.revoked.as_ref().map(|path| read(path)).transpose()?;
        Ok(Content { authorities: read(&files.authority)?, revoked })
    });
    looked.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Watches the files for ever. Unusable contents are logged once, and the previous ones stay.
async fn follow(files: Arc<Files>, mut seen: Content, trust: Arc<ClientTrust>) {
    let (mut told, mut hangups) = (None, Hangups::listen());
    loop {
        hangups.or_after(LOOK_INTERVAL).await;
        let problem = match look(Arc::clone(&files)).await {
            Ok(content) if content == seen => None,
            Ok(content) => match trust.renew(content.files()) {
                Ok(()) => {
                    seen = content;
                    tracing::info!("the CAs of client certificates were reloaded");
                    None
                }
                Err(error) => Some(error.to_string()),
            },
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem.as_ref().filter(|problem| told.as_ref() != Some(*problem)) {
            tracing::error!(%problem, "cannot reload the CAs of client certificates; the server keeps the loaded ones");
        }
        told = problem;
    }
}
