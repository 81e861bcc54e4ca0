//! Who is asking: users with passwords, fixed tokens, the tokens that the server issues itself, those of identity
//! providers, and certificates of clients.
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
//! a signature: [`Authenticator::verify_token`] belongs on the socket runtime.

mod audit;
mod authenticator;
mod certificates;
mod config;
mod error;
mod jwt;
mod password;
mod scram;
mod stored;
mod token;

pub use audit::{AuditLog, AuditOptions, Verified, verify};
pub use authenticator::{AccessOptions, Authenticator, PasswordProof, refused};
pub use certificates::{CertificateFacts, CertificateName, ClientTrust, ClientTrustOptions, TrustedFiles};
pub use config::{AccessConfig, TokenConfig, UserConfig};
pub use error::Error;
pub use jwt::JwtConfig;
pub use stored::hash_password;
pub use token::{PersonalToken, hash_token, new_token};
