//! ONNX models: tree ensembles of `ai.onnx.ml`, and the few operators that converters put around them.
//!
//! [`wire`] reads protocol buffers, [`proto`] the messages of ONNX, [`graph`] follows the columns through the operators to
//! the ensemble and its results to the outputs, [`ensemble`] reads its trees.

mod ensemble;
mod graph;
mod proto;
mod wire;

pub(crate) use graph::read;
