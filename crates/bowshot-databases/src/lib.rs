//! Tables of other databases, read where they are: by their ADBC drivers, which are shared libraries that the operator names, or, of
//! MySQL and MariaDB, by a client of their protocol that is part of the server ([`mysql`]).
//!
//! ```text
//!  name in a statement ── databases: which database, may it be named ─▶ listing, describe: what is there (kept for a while)
//!                                                                          │ table: which filters mean the same there (filter)
//!                                                                          ▼
//!  stream of batches ◀── convert ◀── reading: one thread for each connection ◀── scan: text in the dialect of the database
//!                                        ▲
//!                                      pool: connections (link), as many as the operator lets be open
//! ```
//!
//! Catalogs of DuckLake are among them, and need no driver ([`lakes`]).
//!
//! Drivers block, and so does the client of MySQL: so each statement runs on a thread of its own, of which there are no more than connections; who waits for one
//! waits on a channel, with a deadline, and whoever stops waiting has the statement cancelled.
//!
//! What a database computes counts only where it means the same as here; everything else is computed again over its rows
//! ([`filter`]). Nothing of what it gives is believed without a look: types are compared with what was described, texts are
//! checked to be UTF-8, and values that have no place in the type of their column are errors ([`convert`]).
//!
//! Catalogs of Iceberg tables are databases too, but for the driver: what they name is read here ([`catalogs`]).
//!
//! Passwords are in [`Secret`](bowshot_api::Secret)s and in the options of drivers, and nowhere else: errors of drivers are
//! cleaned before anybody sees them ([`fault`]).

mod catalogs;
mod columns;
mod convert;
mod databases;
mod describe;
mod dialect;
mod driver;
mod fault;
mod filter;
mod idle;
mod insert;
mod lakes;
mod link;
mod mysql;
mod partitions;
mod place;
mod pool;
mod ranges;
mod reading;
mod scan;
mod secrets;
mod settings;
mod source;
mod table;

pub use databases::OtherDatabases;
pub use lakes::{LakeSettings, is_lake};
pub use settings::{DatabaseSettings, Kind, Options};
