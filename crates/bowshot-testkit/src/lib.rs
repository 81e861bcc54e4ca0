//! Test programs: DataFusion's SQL test corpus ([`slt`]), the fuzzer ([`fuzz`]), and peers for `bench/`. Never part of the product.

pub mod fuzz;
pub mod process;
pub mod slt;
