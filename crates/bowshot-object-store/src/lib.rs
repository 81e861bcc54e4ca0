//! Object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure and web servers, with their credentials, secrets and
//! the cache of blocks on disk. Below it what every crate of files needs: errors that name a file, what tells one content of a file
//! from the next, and what the name of a file says of its format.

mod error;
mod file_identity;
pub mod file_name;
pub mod private;
mod remote;
pub mod scratch;
pub mod secrets;

pub use error::{Error, find_error};
pub use file_identity::FileIdentity;
pub use remote::{
    Answer, Call, DELTA, Fault, HUDI, ICEBERG, Level, Listed, Listing, Method, ObjectFolder, PlaceSettings,
    PlaceSummary, RemoteFile, RemoteFolder, RemoteOptions, RemoteSource, RemoteTable, RemoteUrl, RemoteView,
    Remotes, SEQUENTIAL_BYTES, Upload, Vended, WebClient, duration, foreign_part, is_ignored, is_remote,
    pause, secret,
};
