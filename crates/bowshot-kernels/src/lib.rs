//! Loops that run once for each value of a column, compiled with full optimization, which the engine is not (see the profiles in
//! `Cargo.toml`). No plans and no expressions. Generic code is compiled where it is used, so public items have no type parameters.

pub mod codes;
pub mod decimals;
pub mod floats;
pub mod integers;
pub mod murmur;
pub mod nan;
pub mod nulls;
