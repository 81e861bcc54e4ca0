//! Loops over values: what runs once for each value of a column, and not once per batch or statement. This crate is compiled
//! with full optimisation, which the engine is not (see the profiles in `Cargo.toml`).
//!
//! - [`decimals`], [`integers`], [`floats`]: arithmetic, and the greatest and least of a group;
//! - [`nan`]: the one NaN;
//! - [`codes`]: small numbers that stand for texts which repeat;
//! - [`nulls`]: what lies below the NULLs of lists, maps and structs.
//!
//! No plans, no expressions, no functions with a name but that of [`nan`]: who calls these says when they are right. Generic code is compiled
//! where it is used, so what is public here has no type parameters.

pub mod codes;
pub mod decimals;
pub mod floats;
pub mod integers;
pub mod nan;
pub mod nulls;
