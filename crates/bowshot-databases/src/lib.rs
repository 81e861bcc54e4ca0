//! Tables of other databases, read in place: by the ADBC drivers that the operator names, by a client of MySQL's protocol ([`mysql`]),
//! or, for catalogs of DuckLake and Iceberg, by the server's own readers ([`ducklake`], [`iceberg`]).
//!
//! Nothing that a database gives is trusted ([`convert`]), and no password is shown ([`error`]).

mod cancellation;
mod columns;
mod config_values;
mod connection;
mod convert;
mod databases;
mod dialect;
mod driver;
mod ducklake;
mod error;
mod filter_pushdown;
mod flight_partitions;
mod iceberg;
mod idle_pool;
mod insert;
mod key_ranges;
mod kind;
mod location;
mod metadata;
mod mysql;
mod options;
mod pool;
mod query_worker;
mod request;
mod scan;
mod secret_credentials;
mod settings;
mod snapshot;
mod source;
mod status;
mod table;

pub use databases::ExternalDatabases;
pub use ducklake::{LakeSettings, is_lake};
pub use kind::Kind;
pub use options::Options;
pub use settings::DatabaseSettings;
