//! The graph of a model of trees, whose operators are asked for their attributes and constants.

use super::messages::{AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::error::{Error, Result};
use crate::limits::{self, within};
use std::collections::HashMap;

/// Inputs and outputs of a graph: a pipeline has a handful.
const GRAPH_ENDS: usize = 10_000;
/// Attributes of a node.
const ATTRIBUTES: usize = 256;

#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) inputs: Vec<Input<'a>>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) constants: HashMap<&'a str, Tensor>,
}

/// An operator and what it is given.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) operator: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    attributes: HashMap<&'a str, Attribute<'a>>,
}

/// An attribute of any type.
#[derive(Debug)]
struct Attribute<'a> {
    integers: &'a [i64],
    floats: Vec<f64>,
    texts: Vec<&'a str>,
    tensor: Option<Tensor>,
}

/// An input of the graph.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) name: &'a str,
    /// How many columns it has, where that is known.
    pub(super) width: Option<usize>,
    /// The number of its type of elements.
    pub(super) elements: i32,
}

/// A constant.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) values: Vec<f64>,
    /// True if its numbers have 64 bits.
    pub(super) double: bool,
}

pub(super) fn graph(model: &ModelProto) -> Result<Graph<'_>> {
    let graph = model.graph.as_ref().ok_or_else(|| Error::damaged("the ONNX model has no graph"))?;
    within("inputs or outputs", graph.input.len().max(graph.output.len()), GRAPH_ENDS)?;
    let constants = graph.initializer.iter().map(|constant| Ok((constant.name.as_str(), tensor(constant)?)));
    let constants = constants.collect::<Result<HashMap<_, _>>>()?;
    // Old files name their constants among the inputs, too.
    let inputs = graph.input.iter().filter(|input| !constants.contains_key(input.name.as_str()));
    Ok(Graph {
        inputs: inputs.map(input_of).collect(),
        nodes: graph.node.iter().map(node_of).collect::<Result<_>>()?,
        outputs: graph.output.iter().map(|output| output.name.as_str()).collect(),
        constants,
    })
}

fn input_of(input: &ValueInfoProto) -> Input<'_> {
    // Other kinds, such as the sequence of maps that ZipMap makes, are those of outputs.
    let tensor = input.tensor();
    Input {
        name: &input.name,
        width: tensor.and_then(|tensor| tensor.width()),
        elements: tensor.map_or(0, |tensor| tensor.elem_type),
    }
}

fn node_of(node: &NodeProto) -> Result<Node<'_>> {
    within("names at an operator", node.input.len().max(node.output.len()), limits::FEATURES)?;
    within("attributes", node.attribute.len(), ATTRIBUTES)?;
    let attributes = node.attribute.iter().map(|it| Ok((it.name.as_str(), attribute(it)?)));
    Ok(Node {
        operator: &node.op_type,
        inputs: node.input.iter().map(String::as_str).collect(),
        outputs: node.output.iter().map(String::as_str).collect(),
        attributes: attributes.collect::<Result<_>>()?,
    })
}

fn attribute(attribute: &AttributeProto) -> Result<Attribute<'_>> {
    let texts = attribute.s.iter().chain(&attribute.strings);
    Ok(Attribute {
        integers: if attribute.ints.is_empty() { attribute.i.as_slice() } else { &attribute.ints },
        floats: attribute.f.iter().chain(&attribute.floats).map(|float| f64::from(*float)).collect(),
        // A text that is no UTF-8 belongs to an operator that is refused by its name, not here.
        texts: texts.map(|text| std::str::from_utf8(text).unwrap_or_default()).collect(),
        tensor: attribute.t.as_ref().map(tensor).transpose()?,
    })
}

#[expect(clippy::cast_precision_loss, reason = "places are small")]
fn tensor(tensor: &TensorProto) -> Result<Tensor> {
    let mut values: Vec<f64> = tensor.float_data.iter().map(|float| f64::from(*float)).collect();
    values.extend(&tensor.double_data);
    values.extend(tensor.int32_data.iter().map(|integer| f64::from(*integer)));
    values.extend(tensor.int64_data.iter().map(|integer| *integer as f64));
    let raw = tensor.raw_data.as_slice();
    // The numbers as they are in memory. Types that no operator here asks for give none.
    values.extend(match tensor.data_type {
        1 => chunks(raw, |bytes| f64::from(f32::from_le_bytes(bytes)))?,
        11 => chunks(raw, f64::from_le_bytes)?,
        2 => raw.iter().map(|byte| f64::from(*byte)).collect(),
        6 => chunks(raw, |bytes| f64::from(i32::from_le_bytes(bytes)))?,
        7 => chunks(raw, |bytes| i64::from_le_bytes(bytes) as f64)?,
        _ => Vec::new(),
    });
    Ok(Tensor { values, double: tensor.data_type == 11 })
}

fn chunks<const N: usize>(raw: &[u8], number: impl Fn([u8; N]) -> f64) -> Result<Vec<f64>> {
    match raw.as_chunks::<N>() {
        (chunks, []) => Ok(chunks.iter().map(|bytes| number(*bytes)).collect()),
        _ => Err(Error::damaged("a constant has a part of a number")),
    }
}

impl Node<'_> {
    /// Whole numbers of an attribute; none if it is not there.
    pub(super) fn integers(&self, name: &str) -> &[i64] {
        self.attributes.get(name).map_or(&[], |attribute| attribute.integers)
    }

    /// The whole number of an attribute.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.integers(name).first().copied()
    }

    /// Floats of an attribute, which may stand in a tensor; none if it is not there.
    pub(super) fn floats(&self, name: &str) -> &[f64] {
        self.tensor(name).map_or_else(
            || self.attributes.get(name).map_or(&[][..], |attribute| &attribute.floats),
            |tensor| &tensor.values,
        )
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.attributes.get(name)?.tensor.as_ref()
    }

    /// Texts of an attribute; none if it is not there.
    pub(super) fn texts(&self, name: &str) -> &[&str] {
        self.attributes.get(name).map_or(&[], |attribute| &attribute.texts)
    }

    /// The text of an attribute.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().copied()
    }
}
