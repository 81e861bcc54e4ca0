//! ONNX models: tree ensembles of `ai.onnx.ml` with the operators that converters add, and other graphs. [`validation`] looks through a file
//! ([`wire`]) before it is decoded ([`messages`]). For trees, [`graph`] follows columns to the ensemble ([`ensemble`]) and its results to the
//! outputs; everything else is a [`network`], which ONNX Runtime computes.

mod ensemble;
mod graph;
mod messages;
pub(crate) mod network;
mod proto;
mod validation;
mod wire;

use crate::error::Result;
use crate::model::Model;

pub(crate) fn read(bytes: &[u8]) -> Result<Model> {
    let screened = validation::screen(bytes)?;
    let is_tree = |operator: &str| operator.starts_with("TreeEnsemble");
    if !screened.operators.iter().any(|(_, operator)| is_tree(operator)) {
        return network::read(bytes, &screened);
    }
    match screened.check_trees().and_then(|()| graph::read(bytes)) {
        // Trees among other things: the operator's library may know them all.
        Err(crate::Error::Unsupported(why)) if network::has_runtime() => {
            network::read(bytes, &screened).map_err(|_| crate::Error::Unsupported(why))
        }
        read => read,
    }
}
