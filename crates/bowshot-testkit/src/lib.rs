//! What the test programs share. Never part of the product.
//!
//! - `slt`: DataFusion's SQL test corpus, over the wire and in process ([`slt`]);
//! - `fuzz`: mutated requests against the real program ([`fuzz`]);
//! - `stock_flight`, `flight_load`: a peer and a load generator for `bench/`.

pub mod fuzz;
pub mod process;
pub mod slt;
