//! Models as data: files of tree ensembles in, predictions for Arrow columns out.
//!
//! 1. [`Model::read`] finds out whose file it is, and reads it: [`xgboost`] (JSON and UBJSON, over [`document`]),
//!    [`lightgbm`] (text), [`onnx`] (the tree ensembles of `ai.onnx.ml` and what scikit-learn's converter puts around them; other
//!    graphs are computed by ONNX Runtime, where its library is named);
//! 2. every reader of trees describes its trees to [`forest`], which checks them and lays them out;
//! 3. [`Model::predict`] sends columns through the forest in blocks of rows, and [`link`] makes of its sums what the
//!    objective means.
//!
//! Each forest computes in the arithmetic of the library that trained it, and sends missing values where that library sends
//! them, so that predictions are the same. What is not known is refused by its name: objectives, operators, kinds of trees.
//!
//! No code comes with a model: there are no pickles here, nothing is executed, and nothing in a file decides how much
//! memory is asked for beyond [`limits`]. No DataFusion, no files, no names of models.

mod columns;
mod document;
mod error;
mod forest;
mod lightgbm;
pub mod limits;
mod link;
mod model;
mod onnx;
mod ubjson;
mod xgboost;

pub use error::{Error, Result};
pub use model::{Classes, Model, Task};
pub use onnx::network::load_onnx_runtime;

#[cfg(test)]
mod tests;
