//! MySQL and MariaDB, by a client of their protocol that is part of the server: they have no ADBC driver.

mod connect;
mod connection;
mod error;
mod insert;
mod parameters;
mod rows;
mod values;

pub(crate) use connection::Connection;
pub(crate) use insert::{Destination, insert_rows};
pub(crate) use rows::Rows;
