//! Who is asking: users with passwords, fixed tokens, the tokens that the server issues itself, those of identity
//! providers, passwords that a directory knows, and certificates of clients.
//!
//! And whom else to ask: a service of the operator's that decides on statements, beside the rules; and the key under which
//! credentials are kept that administrators give in SQL ([`SealingKey`]).
//!
//! Data comes in as an [`AccessConfig`] (a piece of the configuration file, or a file of its own) and as the
//! [`Credentials`](bowshot_api::Credentials) that a client shows; out goes a [`Principal`](bowshot_api::Principal) or
//! `Unauthenticated`, never a word about which part was wrong.
//!
//! What must never happen here: a server with users that lets anybody in without credentials, a clear-text password or
//! token that is kept, a check whose time tells whether a user exists, a configuration that is half understood.
//!
//! Checking a password costs tens of milliseconds of one core and 19 MiB by design (Argon2id), so
//! [`Authenticator::verify`] belongs on a blocking thread and never on the socket runtime. Tokens may wait for keys, and cost
//! a signature, and a directory is far away: [`Authenticator::verify_token`] and [`Authenticator::ask_directories`] belong on
//! the socket runtime.

mod audit;
mod authenticator;
mod certificates;
mod config;
mod decider;
mod error;
mod jwt;
mod ldap;
mod outgoing;
mod password;
mod right;
mod scram;
mod seal;
mod stored;
mod token;

pub use audit::{AuditLog, AuditOptions, Verified, verify};
pub use authenticator::{AccessOptions, Authenticator, PasswordProof, refused};
pub use certificates::{CertificateFacts, CertificateName, ClientTrust, ClientTrustOptions, TrustedFiles};
pub use config::{AccessConfig, TokenConfig, UserConfig};
pub use decider::{DeciderOptions, HttpDecider};
pub use error::Error;
pub use jwt::JwtConfig;
pub use ldap::LdapConfig;
pub use outgoing::tls as outgoing_tls;
pub use seal::SealingKey;
pub use stored::hash_password;
pub use token::{PersonalToken, hash_token, new_token};
