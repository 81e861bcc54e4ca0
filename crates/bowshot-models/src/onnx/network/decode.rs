//! The messages of a file that was screened, with all constants where they are looked for: among the initialisers.

use super::super::messages::{self, AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use super::Input;
use super::tensors::Kind;
use crate::error::{Error, Result};
use crate::limits::{self, within};
use std::collections::HashSet;

/// Numbers of types of elements in `onnx.proto`.
pub(super) const FLOAT: i32 = 1;
pub(super) const INT32: i32 = 6;
pub(super) const INT64: i32 = 7;
pub(super) const TEXT: i32 = 8;
const DOUBLE: i32 = 11;

pub(super) fn model(bytes: &[u8]) -> Result<ModelProto> {
    let mut model = messages::decode(bytes)?;
    let graph = graph(&mut model)?;
    for node in &graph.node {
        // Of two with one name, the library could take the one that was not looked at.
        let mut names = HashSet::new();
        if !node.attribute.iter().all(|attribute| names.insert(&attribute.name)) {
            return Err(Error::damaged(format!("`{}` has a duplicate attribute", node.op_type)));
        }
    }
    constants(graph)?;
    for tensor in &graph.initializer {
        check(tensor)?;
    }
    let named: HashSet<&String> = graph.initializer.iter().map(|tensor| &tensor.name).collect();
    // Old files name their constants among the inputs, too.
    graph.input.retain(|input| !named.contains(&input.name));
    Ok(model)
}

pub(super) fn graph(model: &mut ModelProto) -> Result<&mut GraphProto> {
    model.graph.as_mut().ok_or_else(|| Error::damaged("the ONNX model has no graph"))
}

/// Operators that are constants become initialisers.
fn constants(graph: &mut GraphProto) -> Result<()> {
    let nodes = std::mem::take(&mut graph.node);
    for node in nodes {
        if node.op_type != "Constant" {
            graph.node.push(node);
            continue;
        }
        let name = node.output.first().cloned().ok_or_else(|| Error::damaged("a constant has no name"))?;
        let mut tensor = constant(&node).ok_or_else(|| {
            Error::unsupported("this form of the ONNX operator `Constant` is not supported")
        })?;
        tensor.name = name;
        graph.initializer.push(tensor);
    }
    Ok(())
}

fn constant(node: &NodeProto) -> Option<TensorProto> {
    let [attribute] = node.attribute.as_slice() else { return None };
    Some(match attribute.name.as_str() {
        "value" => attribute.t.clone()?,
        "value_float" => floats(Vec::new(), vec![attribute.f.unwrap_or_default()]),
        "value_int" => integers(Vec::new(), vec![attribute.i.unwrap_or_default()]),
        "value_floats" => floats(length(&attribute.floats)?, attribute.floats.clone()),
        "value_ints" => integers(length(&attribute.ints)?, attribute.ints.clone()),
        _ => return None,
    })
}

/// A constant has as many numbers as its dimensions say: no library has to find out what happens otherwise.
fn check(tensor: &TensorProto) -> Result<()> {
    let wrong = || Error::damaged(format!("constant `{}` does not have the declared size", tensor.name));
    let mut count = 1_usize;
    for dimension in &tensor.dims {
        let dimension = usize::try_from(*dimension).map_err(|_| wrong())?;
        count = count.checked_mul(dimension).ok_or_else(wrong)?;
    }
    within("numbers in a constant", count, limits::NETWORK_BYTES)?;
    let (size, listed) = match tensor.data_type {
        FLOAT => (4, tensor.float_data.len()),
        DOUBLE => (8, tensor.double_data.len()),
        INT64 => (8, tensor.int64_data.len()),
        INT32 => (4, tensor.int32_data.len()),
        2 | 3 | 9 => (1, tensor.int32_data.len()),
        TEXT => (0, tensor.string_data.len()),
        other => {
            return Err(Error::unsupported(format!("ONNX constants of type {other} are not supported")));
        }
    };
    let there = if tensor.raw_data.is_empty() {
        listed
    } else {
        tensor.raw_data.len().checked_div(size).unwrap_or(0)
    };
    let whole =
        tensor.raw_data.is_empty() || (listed == 0 && tensor.raw_data.len() == count.saturating_mul(size));
    if there == count && whole { Ok(()) } else { Err(wrong()) }
}

/// The inputs: rows of a fixed width.
pub(super) fn inputs(model: &ModelProto) -> Result<Vec<Input>> {
    let graph = model.graph.as_ref().ok_or_else(|| Error::damaged("the ONNX model has no graph"))?;
    within("inputs", graph.input.len(), limits::FEATURES)?;
    let mut columns = 0;
    let mut inputs = Vec::with_capacity(graph.input.len());
    for input in &graph.input {
        let kind = input.tensor().ok_or_else(|| no_numbers(&input.name))?;
        let elements = Kind::of(kind.elem_type).ok_or_else(|| no_numbers(&input.name))?;
        let width = kind.width().filter(|width| *width > 0).ok_or_else(|| {
            Error::unsupported(format!(
                "the ONNX input `{}` has no fixed number of columns: convert the model with a fixed width",
                input.name
            ))
        })?;
        columns += width;
        within("features", columns, limits::FEATURES)?;
        inputs.push(Input { name: input.name.clone(), width, kind: elements });
    }
    if inputs.is_empty() {
        return Err(Error::unsupported("the ONNX model has no inputs"));
    }
    Ok(inputs)
}

fn no_numbers(name: &str) -> Error {
    Error::unsupported(format!(
        "the ONNX input `{name}` does not take numbers, and other inputs are not supported"
    ))
}

/// Whole numbers of a constant.
pub(super) fn whole(tensor: &TensorProto) -> Option<Vec<i64>> {
    let raw = tensor.raw_data.as_slice();
    match tensor.data_type {
        INT64 if raw.is_empty() => Some(tensor.int64_data.clone()),
        INT64 => Some(raw.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()),
        INT32 if raw.is_empty() => Some(tensor.int32_data.iter().map(|number| i64::from(*number)).collect()),
        INT32 => {
            Some(raw.as_chunks::<4>().0.iter().map(|bytes| i64::from(i32::from_le_bytes(*bytes))).collect())
        }
        _ => None,
    }
}

/// The dimensions of a list.
fn length<T>(numbers: &[T]) -> Option<Vec<i64>> {
    Some(vec![i64::try_from(numbers.len()).ok()?])
}

fn floats(dims: Vec<i64>, numbers: Vec<f32>) -> TensorProto {
    TensorProto { dims, data_type: FLOAT, float_data: numbers, ..TensorProto::default() }
}

fn integers(dims: Vec<i64>, numbers: Vec<i64>) -> TensorProto {
    TensorProto { dims, data_type: INT64, int64_data: numbers, ..TensorProto::default() }
}

/// The attribute of an operator.
pub(super) fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

/// A whole number among the attributes.
pub(super) fn integer(node: &NodeProto, name: &str) -> Option<i64> {
    attribute(node, name).map(|attribute| attribute.i.unwrap_or_default())
}
