//! Authentication: users with passwords, tokens (configured, issued, personal, of identity providers), LDAP
//! directories and client certificates. Also the client of an external policy service, and the encryption of secrets
//! ([`EncryptionKey`]).
//!
//! Input is an [`AccessConfig`] and the [`Credentials`](bowshot_api::Credentials) of a client; output is a
//! [`Principal`](bowshot_api::Principal) or `Unauthenticated`, without saying which part was wrong.
//!
//! Never: access without credentials on a server with users, a stored clear-text password or token, a check whose
//! time reveals whether a user exists, a configuration that is only partly understood.
//!
//! A password check costs tens of milliseconds of one core and 19 MiB (Argon2id), so [`Authenticator::verify`]
//! belongs on a blocking thread. [`Authenticator::verify_token`] and [`Authenticator::ask_directories`] wait for the
//! network and belong on the socket runtime.

mod audit;
mod authenticator;
mod certificates;
mod config;
mod encryption;
mod error;
mod http_client;
mod jwt;
mod ldap;
mod password;
mod password_cache;
mod password_record;
mod policy_decision_point;
mod scram;
mod token;

pub use audit::{AuditLog, AuditOptions, Verified, verify};
pub use authenticator::{AccessOptions, Authenticator, PasswordProof, refused};
pub use certificates::{CertificateName, CertificateSummary, ClientTrust, ClientTrustOptions, TrustedFiles};
pub use config::{AccessConfig, TokenConfig, UserConfig};
pub use encryption::EncryptionKey;
pub use error::Error;
pub use http_client::tls as outgoing_tls;
pub use jwt::JwtConfig;
pub use ldap::LdapConfig;
pub use password_record::hash_password;
pub use policy_decision_point::{HttpPolicyDecisionPoint, PolicyDecisionOptions};
pub use token::{PersonalToken, hash_token, new_token};
