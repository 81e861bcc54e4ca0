//! Models as data: reads tree ensembles of [`xgboost`], [`lightgbm`] and [`onnx`], and predicts Arrow columns. Each forest computes in the
//! arithmetic of its library and treats missing values like it, so predictions are the same. Unknown objectives and operators are refused.
//! Nothing in a file is executed, and nothing in it decides how much memory is allocated beyond [`limits`].

mod columns;
mod error;
mod forest;
mod lightgbm;
pub mod limits;
mod link;
mod model;
mod onnx;
mod ubjson;
mod value_tree;
mod xgboost;

pub use error::{Error, Result};
pub use model::{Classes, Model, Task};
pub use onnx::network::load_onnx_runtime;

#[cfg(test)]
mod tests;
