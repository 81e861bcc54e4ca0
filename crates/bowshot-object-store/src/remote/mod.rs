//! Files in object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure, and single files of web servers.
//!
//! They are tables, or files that statements name, as local ones are; other crates see [`RemoteFile`]s behind their `DataFile`,
//! and never a URL that a client has made up: sources, the places of [`RemoteOptions::read`] and those of
//! [`RemoteOptions::exchange`] are the operator's, and everything else is refused by its text.
//!
//! # The way of a byte
//!
//! ```text
//! DataFile ─ RemoteFile ─ blocks of the file that are asked for ─┬─ on disk (cache)      ─┐
//!                                                                └─ client ─ object_store ─┴─▶ bytes, cut to what was asked for
//! ```
//!
//! A file is known by its address, entity tag, size and time of change as a listing has shown them. Each request asks for that
//! content alone and each answer is held against it, so that a query never mixes two contents, and a block on disk is right for
//! as long as it is there, over restarts too.
//!
//! Tables whose own metadata say which files count are read from a [`RemoteView`] of their folder, and those that a catalog names
//! may come with credentials of their own ([`Vended`]); catalogs themselves are asked by a [`WebClient`].
//!
//! What the server itself keeps in a bucket, durable tables, it writes by way of [`folder`].
//!
//! All requests run on threads of their own ([`io`]): whoever waits may be a thread that computes, or one of any runtime. Every
//! wait ends within [`RemoteOptions::timeout`]. Which credentials a request has is looked at when it is made, so that a secret that was
//! made anew or dropped counts from then on ([`store_pool`], [`secret_credentials`]). What a store answers is never repeated word for word, since it may quote
//! credentials ([`fault`]).

mod cache;
mod client;
mod fault;
mod fetches;
mod file;
mod folder;
mod io;
mod listing;
mod options;
mod profile;
mod secret_credentials;
mod source;
mod store_builder;
mod store_pool;
mod stores;
mod upload;
mod url;
mod vended;
mod view;
mod web;

pub use folder::ObjectFolder;
pub use options::{PlaceSettings, RemoteOptions};
pub use stores::{PlaceSummary, Remotes};
pub use url::is_remote;

pub use fault::Fault;
pub use file::{RemoteFile, SEQUENTIAL_BYTES};
pub use folder::Listed;
pub use listing::{DELTA, HUDI, ICEBERG, Level, Listing, foreign_part, is_ignored};
pub(crate) use secret_credentials::StoreScope;
pub use source::{RemoteSource, RemoteTable, pause};
pub use store_builder::{duration, secret};
pub use upload::Upload;
pub use url::RemoteUrl;
pub(crate) use url::Scheme;
pub use vended::Vended;
pub use view::{RemoteFolder, RemoteView};
pub use web::{Answer, Call, Method, WebClient};
