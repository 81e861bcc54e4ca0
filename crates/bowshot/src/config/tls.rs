//! The settings of `[tls]`, and which of them mean something together.

use crate::usage::Usage;
use bowshot_access::{CertificateName, ClientTrustOptions};
use std::path::PathBuf;

bowshot_api::defaults! {
    /// Files in PEM form with which the server proves who it is, both or none, and by which its clients do.
    #[derive(Debug, Clone)]
    pub(crate) struct TlsFiles {
        /// The server's certificate, then those that lead to its authority.
        pub(crate) certificate: Option<PathBuf> = None,
        /// The private key of the server's certificate.
        pub(crate) key: Option<PathBuf> = None,
        /// The authorities whose certificates say who a client is.
        pub(crate) client_authority: Option<PathBuf> = None,
        /// What these authorities have revoked.
        pub(crate) client_revoked: Option<PathBuf> = None,
        /// Whether clients need a certificate.
        pub(crate) client_certificates: String = "optional".to_owned(),
        /// Which name of a certificate is the user's.
        pub(crate) client_name: String = "common_name".to_owned(),
    }
}

impl TlsFiles {
    /// What is said about certificates of clients; `None` where they are not asked for.
    ///
    /// # Errors
    /// [`Usage`] for words that are not known, and for settings that mean nothing alone: nobody is to believe that certificates
    /// are required when they are not.
    pub(crate) fn client_trust(&self) -> Result<Option<ClientTrustOptions>, Usage> {
        let required = match self.client_certificates.as_str() {
            "optional" => false,
            "required" => true,
            other => {
                return Err(Usage::new(format!("`tls.client_certificates` cannot be `{other}`"))
                    .with_hint("it is `optional` or `required`"));
            }
        };
        let name = match self.client_name.as_str() {
            "common_name" => CertificateName::Common,
            "email" => CertificateName::Email,
            "dns" => CertificateName::Dns,
            other => {
                return Err(Usage::new(format!("`tls.client_name` cannot be `{other}`"))
                    .with_hint("it is `common_name`, `email` or `dns`"));
            }
        };
        if self.client_authority.is_some() && self.certificate.is_none() {
            return Err(Usage::new("client certificates need TLS")
                .with_hint("set `tls.certificate` and `tls.key` too"));
        }
        if self.client_authority.is_none() && (required || self.client_revoked.is_some()) {
            return Err(Usage::new("client certificates need a certificate authority")
                .with_hint("set `tls.client_authority` to the file of the authority's certificate"));
        }
        Ok(self.client_authority.is_some().then_some(ClientTrustOptions { name, required }))
    }
}
