//! DataFusion's optimiser rules, less those that give wrong answers, where they do.

mod cross_joins;
mod same_names;

pub(crate) use cross_joins::logical;
pub(crate) use same_names::physical;
