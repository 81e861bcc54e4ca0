//! The messages of ONNX, as far as they are needed. The numbers of fields are those of `onnx.proto`.

use super::wire::{Fields, Wire, doubles, singles};
use crate::error::{Error, Result};
use crate::limits::within;
use std::collections::HashMap;

/// Nodes of a graph: a pipeline has a handful.
const GRAPH_NODES: usize = 10_000;
/// Attributes of a node.
const ATTRIBUTES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) inputs: Vec<Input<'a>>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) constants: HashMap<&'a str, Tensor>,
}

/// An operator and what it is given.
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    pub(super) operator: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    attributes: HashMap<&'a str, Attribute<'a>>,
}

/// An attribute of any type.
#[derive(Debug, Default)]
struct Attribute<'a> {
    integers: Vec<i64>,
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
    pub(super) elements: u64,
}

/// A constant.
#[derive(Debug, Default, Clone)]
pub(super) struct Tensor {
    pub(super) values: Vec<f64>,
    /// True if its numbers have 64 bits.
    pub(super) double: bool,
}

/// Reads the graph of a model.
pub(super) fn graph(bytes: &[u8]) -> Result<Graph<'_>> {
    let mut model = Fields(bytes);
    let mut found = None;
    while let Some((field, value)) = model.next()? {
        if field == 7 {
            found = Some(value.bytes()?);
        }
    }
    let mut fields = Fields(found.ok_or_else(super::wire::not_onnx)?);
    let mut graph = Graph::default();
    while let Some((field, value)) = fields.next()? {
        within("operators", graph.nodes.len().max(graph.inputs.len()).max(graph.outputs.len()), GRAPH_NODES)?;
        match field {
            1 => graph.nodes.push(node(value.bytes()?)?),
            5 => {
                let (name, tensor) = tensor(value.bytes()?)?;
                graph.constants.insert(name, tensor);
            }
            11 => graph.inputs.push(input(value.bytes()?)?),
            12 => graph.outputs.push(input(value.bytes()?)?.name),
            _ => {}
        }
    }
    let constants = &graph.constants;
    // Old files name their constants among the inputs, too.
    graph.inputs.retain(|input| !constants.contains_key(input.name));
    Ok(graph)
}

fn node(bytes: &[u8]) -> Result<Node<'_>> {
    let mut fields = Fields(bytes);
    let mut node = Node::default();
    while let Some((field, value)) = fields.next()? {
        within("names at an operator", node.inputs.len().max(node.outputs.len()), crate::limits::FEATURES)?;
        within("attributes", node.attributes.len(), ATTRIBUTES)?;
        match field {
            1 => node.inputs.push(value.text()?),
            2 => node.outputs.push(value.text()?),
            4 => node.operator = value.text()?,
            5 => {
                let (name, attribute) = attribute(value.bytes()?)?;
                node.attributes.insert(name, attribute);
            }
            _ => {}
        }
    }
    Ok(node)
}

fn attribute(bytes: &[u8]) -> Result<(&str, Attribute<'_>)> {
    let mut fields = Fields(bytes);
    let (mut name, mut attribute) = ("", Attribute::default());
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => name = value.text()?,
            2 | 7 => value.floats(&mut attribute.floats)?,
            3 | 8 => value.integers(&mut attribute.integers)?,
            // A text that is no UTF-8 belongs to an operator that is refused by its name, not here.
            4 | 9 => attribute.texts.push(value.text().unwrap_or_default()),
            5 => attribute.tensor = Some(tensor(value.bytes()?)?.1),
            _ => {}
        }
    }
    Ok((name, attribute))
}

fn tensor(bytes: &[u8]) -> Result<(&str, Tensor)> {
    let mut fields = Fields(bytes);
    let (mut name, mut kind, mut raw) = ("", 0, None);
    let (mut values, mut integers) = (Vec::new(), Vec::new());
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (2, Wire::Varint(number)) => kind = number,
            (4, value) => value.floats(&mut values)?,
            (5 | 7, value) => value.integers(&mut integers)?,
            (8, value) => name = value.text()?,
            (9, value) => raw = Some(value.bytes()?),
            (10, Wire::Bytes(bytes)) => values.extend(doubles(bytes)?),
            (10, value) => value.floats(&mut values)?,
            (14, Wire::Varint(1)) => {
                return Err(Error::unsupported("ONNX models whose numbers are in another file are not read"));
            }
            _ => {}
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    values.extend(integers.iter().map(|integer| *integer as f64));
    if let Some(raw) = raw {
        values.extend(raw_values(raw, kind)?);
    }
    Ok((name, Tensor { values, double: kind == 11 }))
}

/// The numbers of a tensor whose bytes are as they are in memory. Types that no operator here asks for give none.
fn raw_values(raw: &[u8], kind: u64) -> Result<Vec<f64>> {
    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    let wide = |bytes: &[u8; 8]| i64::from_le_bytes(*bytes) as f64;
    Ok(match kind {
        1 => singles(raw)?,
        11 => doubles(raw)?,
        2 => raw.iter().map(|byte| f64::from(*byte)).collect(),
        6 => raw.as_chunks::<4>().0.iter().map(|bytes| f64::from(i32::from_le_bytes(*bytes))).collect(),
        7 => raw.as_chunks::<8>().0.iter().map(wide).collect(),
        _ => Vec::new(),
    })
}

/// An input or output: name, type of elements, number of columns.
fn input(bytes: &[u8]) -> Result<Input<'_>> {
    let mut fields = Fields(bytes);
    let mut input = Input { name: "", width: None, elements: 0 };
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => input.name = value.text()?,
            2 => tensor_type(value.bytes()?, &mut input)?,
            _ => {}
        }
    }
    Ok(input)
}

fn tensor_type(bytes: &[u8], input: &mut Input<'_>) -> Result<()> {
    let mut kinds = Fields(bytes);
    while let Some((field, value)) = kinds.next()? {
        // Other kinds, such as the sequence of maps that ZipMap makes, are those of outputs.
        if field != 1 {
            continue;
        }
        let mut tensor = Fields(value.bytes()?);
        while let Some((field, value)) = tensor.next()? {
            match (field, value) {
                (1, Wire::Varint(elements)) => input.elements = elements,
                (2, value) => input.width = last_dimension(value.bytes()?)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// The second of two dimensions, if it is a number.
fn last_dimension(bytes: &[u8]) -> Result<Option<usize>> {
    let (mut shape, mut dimensions, mut last) = (Fields(bytes), 0, None);
    while let Some((field, value)) = shape.next()? {
        if field != 1 {
            continue;
        }
        dimensions += 1;
        last = match Fields(value.bytes()?).next()? {
            Some((1, Wire::Varint(size))) => usize::try_from(size).ok(),
            _ => None,
        };
    }
    Ok(last.filter(|_| dimensions == 2))
}

impl Node<'_> {
    /// Whole numbers of an attribute; none if it is not there.
    pub(super) fn integers(&self, name: &str) -> &[i64] {
        self.attributes.get(name).map_or(&[], |attribute| &attribute.integers)
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

    /// The tensor of an attribute.
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
