//! Models in SQL: `predict('m', a, b, …)` and `predict_proba(…)`.
//!
//! ```text
//! CREATE MODEL ─► file in the store, by its SHA-256 ─► Models: those that were read, for all sessions
//!                                                         │
//! predict('m', TABLE t) ─[rows]─► predict('m', a, b) ─[function]─► asked by name at planning ─► holds the model itself
//! ```
//!
//! A plan holds the very model that its statement saw: what is made of the name later does not reach it, as with tables. Which
//! model a name means and who may ask it, the finder of the statement says (`catalog/models.rs`); nothing here knows of rights.

mod cache;
mod function;
mod rows;

pub(crate) use cache::Models;
pub(crate) use function::{FindModel, Found, asks_model_by_name, bind, functions, functions_without_models};
pub(crate) use rows::by_columns;

pub use cache::load_onnx_runtime;
pub use function::asks_model;
