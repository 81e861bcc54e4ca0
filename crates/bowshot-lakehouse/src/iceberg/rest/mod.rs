//! Iceberg catalogs that are asked over HTTP (the REST catalog specification): namespaces are schemas, and what the catalog says of a
//! table is read like the metadata of one that is found in a folder. Rows are added by snapshots that the catalog commits.
//!
//! ```text
//! name ─▶ catalog: known, and lately? ─▶ service ─ answers ─▶ places: may it lie there? ─▶ folder, read with the metadata given
//!                                        (token, retries, limits)                         (own credentials, or vended ones)
//! ```
//!
//! A table is opened by the name that it is listed by, to the letter, and by no other: rules of access go by names.
//!
//! A catalog is believed about which files count, and about nothing else: tables lie below the places of the operator or they are
//! refused, addresses of stores and hosts that it names are not asked, and what it answers is repeated in no error.

mod allowed_locations;
mod catalog;
mod definitions;
mod exact_names;
mod fault;
mod insert;
mod lists;
mod names;
mod responses;
mod rewrite;
mod service;
mod settings;
mod vacuum;

pub use catalog::IcebergCatalog;
pub use rewrite::IcebergRewrite;
pub use settings::IcebergSettings;
