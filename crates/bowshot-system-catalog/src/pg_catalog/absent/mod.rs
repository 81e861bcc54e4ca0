//! Tables about things that there are none of. Clients ask them all the same.

mod foreign;
mod objects;
mod operators;
mod replication;
mod statistics;

use crate::lazy_table::Defined;

/// The tables, in groups.
pub(crate) static GROUPS: [&[Defined]; 5] =
    [foreign::TABLES, objects::TABLES, operators::TABLES, replication::TABLES, statistics::TABLES];
