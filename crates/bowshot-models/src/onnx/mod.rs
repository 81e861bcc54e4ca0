//! ONNX models: tree ensembles of `ai.onnx.ml` with the few operators that converters put around them, and other graphs.
//!
//! [`wire`] reads protocol buffers; [`screen`] looks through a file before anything is made of it. Where there are trees,
//! [`proto`] reads the messages of ONNX, [`graph`] follows the columns through the operators to the ensemble and its results to
//! the outputs, [`ensemble`] reads its trees. All else is a [`network`], which ONNX Runtime computes.

mod ensemble;
mod graph;
pub(crate) mod network;
mod proto;
mod screen;
mod wire;

use crate::error::Result;
use crate::model::Model;

/// Reads a model.
pub(crate) fn read(bytes: &[u8]) -> Result<Model> {
    let screened = screen::screen(bytes)?;
    let is_tree = |operator: &str| operator.starts_with("TreeEnsemble");
    if !screened.operators.iter().any(|(_, operator)| is_tree(operator)) {
        return network::read(bytes, &screened);
    }
    match graph::read(bytes) {
        // Trees among other things: the operator's library may know them all.
        Err(crate::Error::Unsupported(why)) if network::has_runtime() => {
            network::read(bytes, &screened).map_err(|_| crate::Error::Unsupported(why))
        }
        read => read,
    }
}
