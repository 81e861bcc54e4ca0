//! How large the results of a graph are and how much it computes, before anything is computed: a library that plans a graph
//! computes its constant parts, and asks for the memory that their shapes name. Constants of an operator have the sizes that its other
//! inputs ask for.

use super::super::messages::{ModelProto, NodeProto};
use super::decode::{attribute, integer, whole};
use super::{BLOCK, Input, operators};
use crate::error::{Error, Result};
use crate::limits::{self, within};
use std::collections::HashMap;

/// Dimensions of a result.
const DIMENSIONS: usize = 8;
/// Operators of a graph that is planned.
const OPERATORS: usize = 2_000;
/// Multiplications that cost as much as a node of a tree.
const MULTIPLICATIONS: usize = 16;

type Shape = Vec<usize>;

/// What is known of the values of a graph.
struct Shapes<'a> {
    shapes: HashMap<&'a str, Shape>,
    /// Whole numbers of constants, which shapes and axes are.
    constants: HashMap<&'a str, Vec<i64>>,
    numbers: usize,
    work: usize,
}

/// What a row costs, about, in nodes of a tree. An error where a block of rows would be too much; [`Error::Unsupported`] where
/// it is not known.
pub(super) fn cost(model: &ModelProto, inputs: &[Input]) -> Result<usize> {
    let graph = model.graph.as_ref().ok_or_else(|| Error::damaged("the ONNX model has no graph"))?;
    within("operators", graph.node.len(), OPERATORS)?;
    let mut shapes = Shapes { shapes: HashMap::new(), constants: HashMap::new(), numbers: 0, work: 0 };
    for input in inputs {
        shapes.put(&input.name, vec![BLOCK, input.width])?;
    }
    for tensor in &graph.initializer {
        let dims = tensor.dims.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect();
        shapes.put(&tensor.name, dims)?;
        if let Some(whole) = whole(tensor) {
            shapes.constants.insert(&tensor.name, whole);
        }
    }
    for node in &graph.node {
        let given = match node.op_type.as_str() {
            "LinearClassifier" => shapes.classified(node)?,
            _ => vec![shapes.of(node)?],
        };
        // The second output of what has one more is a mask that nobody needs.
        let (names, rest) = node
            .output
            .split_at_checked(given.len())
            .ok_or_else(|| Error::damaged(format!("`{}` has too few outputs", node.op_type)))?;
        if rest.iter().any(|name| !name.is_empty()) {
            return Err(Error::unsupported(format!(
                "the ONNX operator `{}` with several outputs is not supported",
                node.op_type
            )));
        }
        for (name, shape) in names.iter().zip(given) {
            shapes.put(name, shape)?;
        }
    }
    for output in &graph.output {
        if !shapes.shapes.contains_key(output.name.as_str()) {
            return Err(Error::damaged(format!("no operator computes the ONNX output `{}`", output.name)));
        }
    }
    Ok((shapes.work / BLOCK / MULTIPLICATIONS).max(1))
}

impl<'a> Shapes<'a> {
    fn put(&mut self, name: &'a str, shape: Shape) -> Result<()> {
        within("dimensions", shape.len(), DIMENSIONS)?;
        let count = product(&shape);
        within("numbers in one result", count, limits::NETWORK_NUMBERS)?;
        self.numbers = self.numbers.saturating_add(count);
        within("numbers in all results", self.numbers, limits::NETWORK_ALL_NUMBERS)?;
        self.work(count)?;
        if self.shapes.insert(name, shape).is_some() {
            return Err(Error::damaged(format!("two ONNX values are called `{name}`")));
        }
        Ok(())
    }

    fn work(&mut self, multiplications: usize) -> Result<()> {
        self.work = self.work.saturating_add(multiplications);
        within("multiplications", self.work, limits::NETWORK_WORK)
    }

    fn shape(&self, node: &NodeProto, at: usize) -> Result<&Shape> {
        let name = node.input.get(at).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::damaged(format!("`{}` has too few inputs", node.op_type)))?;
        self.shapes.get(name.as_str()).ok_or_else(|| {
            Error::damaged(format!("`{}` uses `{name}`, which no earlier operator computes", node.op_type))
        })
    }

    /// The whole numbers of a constant input, or of the attribute that it was in former versions.
    fn list(&self, node: &NodeProto, at: usize, name: &str) -> Result<Option<Vec<i64>>> {
        if let Some(attribute) = attribute(node, name) {
            return Ok(Some(attribute.ints.clone()));
        }
        match node.input.get(at).filter(|name| !name.is_empty()) {
            None => Ok(None),
            Some(input) => self.constants.get(input.as_str()).cloned().map(Some).ok_or_else(|| {
                Error::unsupported(format!(
                    "the ONNX operator `{}` without constant {name} is not supported",
                    node.op_type
                ))
            }),
        }
    }

    /// The shape of what an operator gives.
    fn of(&mut self, node: &NodeProto) -> Result<Shape> {
        match node.op_type.as_str() {
            "MatMul" => self.product(node),
            "Gemm" => self.gemm(node),
            "Concat" | "FeatureVectorizer" => self.concatenated(node),
            "Gather" => self.gathered(node),
            "ArrayFeatureExtractor" => self.extracted(node),
            "Scaler" => self.by_column(node, &["offset", "scale"]),
            "Imputer" => self.by_column(node, &["imputed_value_floats", "imputed_value_int64s"]),
            "LinearRegressor" => {
                let targets = integer(node, "targets").unwrap_or(1);
                self.linear(node, usize::try_from(targets).map_err(|_| misfit(node))?)
            }
            "Reshape" => self.reshaped(node),
            "Flatten" => {
                let shape = self.shape(node, 0)?;
                let axis = place(integer(node, "axis").unwrap_or(1), shape.len() + 1, node)?;
                Ok(vec![product(&shape[..axis]), product(&shape[axis..])])
            }
            "Transpose" => self.transposed(node),
            "Squeeze" => self.squeezed(node),
            "Unsqueeze" => self.unsqueezed(node),
            "ArgMax" | "ArgMin" => {
                let axes = vec![integer(node, "axis").unwrap_or(0)];
                reduced(self.shape(node, 0)?, Some(axes), node)
            }
            operator if operator.starts_with("Reduce") => {
                // All sums have their axes in an input since version 13, all others since version 18.
                let axes = self.list(node, 1, "axes")?;
                reduced(self.shape(node, 0)?, axes, node)
            }
            "Add" | "And" | "Div" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual"
            | "Max" | "Mean" | "Min" | "Mul" | "Or" | "PRelu" | "Pow" | "Sub" | "Sum" | "Where" | "Xor" => {
                let mut shape = self.shape(node, 0)?.clone();
                for at in 1..node.input.len() {
                    shape = broadcast(&shape, self.shape(node, at)?, node)?;
                }
                Ok(shape)
            }
            operator if !operators::has_shape(operator) => Err(Error::unsupported(format!(
                "cannot determine the output size of the ONNX operator `{operator}`"
            ))),
            // The others of the list leave the shape of their first input.
            _ => {
                for at in 1..node.input.len() {
                    if !node.input[at].is_empty() {
                        self.shape(node, at)?;
                    }
                }
                Ok(self.shape(node, 0)?.clone())
            }
        }
    }

    fn product(&mut self, node: &NodeProto) -> Result<Shape> {
        let (mut a, mut b) = (self.shape(node, 0)?.clone(), self.shape(node, 1)?.clone());
        let (row, column) = (a.len() == 1, b.len() == 1);
        if row {
            a.insert(0, 1);
        }
        if column {
            b.push(1);
        }
        let ([outer @ .., rows, inner], [other @ .., depth, columns]) = (a.as_slice(), b.as_slice()) else {
            return Err(misfit(node));
        };
        if inner != depth {
            return Err(misfit(node));
        }
        let mut shape = broadcast(outer, other, node)?;
        let multiplications =
            product(&shape).saturating_mul(*rows).saturating_mul(*columns).saturating_mul(*inner);
        if !row {
            shape.push(*rows);
        }
        if !column {
            shape.push(*columns);
        }
        self.work(multiplications)?;
        Ok(shape)
    }

    fn gemm(&mut self, node: &NodeProto) -> Result<Shape> {
        let turned = |shape: &Shape, name: &str| match (shape.as_slice(), integer(node, name).unwrap_or(0)) {
            ([a, b], 0) => Ok([*a, *b]),
            ([a, b], _) => Ok([*b, *a]),
            _ => Err(misfit(node)),
        };
        let [rows, inner] = turned(self.shape(node, 0)?, "transA")?;
        let [depth, columns] = turned(self.shape(node, 1)?, "transB")?;
        if inner != depth {
            return Err(misfit(node));
        }
        let shape = vec![rows, columns];
        if node.input.len() > 2 && broadcast(&shape, self.shape(node, 2)?, node)? != shape {
            return Err(misfit(node));
        }
        self.work(rows.saturating_mul(columns).saturating_mul(inner))?;
        Ok(shape)
    }

    fn concatenated(&self, node: &NodeProto) -> Result<Shape> {
        let mut shape = self.shape(node, 0)?.clone();
        let axis = place(integer(node, "axis").unwrap_or(1), shape.len(), node)?;
        for at in 1..node.input.len() {
            let other = self.shape(node, at)?;
            if other.len() != shape.len() {
                return Err(misfit(node));
            }
            shape[axis] = shape[axis].saturating_add(other[axis]);
        }
        Ok(shape)
    }

    fn gathered(&self, node: &NodeProto) -> Result<Shape> {
        let (data, places) = (self.shape(node, 0)?, self.shape(node, 1)?);
        let axis = place(integer(node, "axis").unwrap_or(0), data.len(), node)?;
        Ok([&data[..axis], places, &data[axis + 1..]].concat())
    }

    /// Some columns by their places, of which none may be outside.
    fn extracted(&self, node: &NodeProto) -> Result<Shape> {
        let (data, places) = (self.shape(node, 0)?, self.shape(node, 1)?);
        let [rows @ .., width] = data.as_slice() else { return Err(misfit(node)) };
        let known = node.input.get(1).and_then(|name| self.constants.get(name.as_str()));
        for at in known.into_iter().flatten() {
            if !usize::try_from(*at).is_ok_and(|at| at < *width) {
                return Err(misfit(node));
            }
        }
        let rows = if rows.is_empty() { &[1] } else { rows };
        Ok([rows, &[product(places)]].concat())
    }

    /// What has one number for all columns or one for each among its attributes.
    fn by_column(&self, node: &NodeProto, names: &[&str]) -> Result<Shape> {
        let shape = self.shape(node, 0)?;
        let columns = shape.last().ok_or_else(|| misfit(node))?;
        for attribute in names.iter().filter_map(|name| attribute(node, name)) {
            let count = attribute.floats.len() + attribute.ints.len();
            if count > 1 && count != *columns {
                return Err(misfit(node));
            }
        }
        Ok(shape.clone())
    }

    /// Columns by coefficients, and what is added to each.
    fn linear(&mut self, node: &NodeProto, targets: usize) -> Result<Shape> {
        let count = |name: &str| attribute(node, name).map_or(0, |attribute| attribute.floats.len());
        let &[rows, features] = self.shape(node, 0)?.as_slice() else { return Err(misfit(node)) };
        let coefficients = features.saturating_mul(targets);
        if targets == 0
            || count("coefficients") != coefficients
            || ![0, targets].contains(&count("intercepts"))
        {
            return Err(misfit(node));
        }
        self.work(rows.saturating_mul(coefficients))?;
        Ok(vec![rows, targets])
    }

    /// A class for each row, and its score for each class.
    fn classified(&mut self, node: &NodeProto) -> Result<Vec<Shape>> {
        let names = attribute(node, "classlabels_strings").map_or(0, |labels| labels.strings.len());
        let numbers = attribute(node, "classlabels_ints").map_or(0, |labels| labels.ints.len());
        if names.min(numbers) > 0 || names + numbers < 2 {
            return Err(misfit(node));
        }
        let scores = self.linear(node, names + numbers)?;
        Ok(vec![scores[..1].to_vec(), scores])
    }

    fn reshaped(&self, node: &NodeProto) -> Result<Shape> {
        let from = self.shape(node, 0)?;
        let to = self.list(node, 1, "shape")?.ok_or_else(|| misfit(node))?;
        within("dimensions", to.len(), DIMENSIONS)?;
        if integer(node, "allowzero").unwrap_or(0) != 0 {
            return Err(Error::unsupported("the ONNX operator `Reshape` with `allowzero` is not supported"));
        }
        let mut shape = Vec::with_capacity(to.len());
        let mut open = None;
        for (at, size) in to.iter().enumerate() {
            shape.push(match (*size, from.get(at)) {
                (0, Some(size)) => *size,
                (-1, _) if open.is_none() => {
                    open = Some(at);
                    1
                }
                (size, _) => {
                    usize::try_from(size).ok().filter(|size| *size > 0).ok_or_else(|| misfit(node))?
                }
            });
        }
        let (count, known) = (product(from), product(&shape));
        if let Some(at) = open {
            shape[at] = count.checked_div(known).unwrap_or(0);
        }
        if product(&shape) == count { Ok(shape) } else { Err(misfit(node)) }
    }

    fn transposed(&self, node: &NodeProto) -> Result<Shape> {
        let shape = self.shape(node, 0)?;
        let Some(order) = attribute(node, "perm") else { return Ok(shape.iter().rev().copied().collect()) };
        let turned: Option<Shape> = order
            .ints
            .iter()
            .map(|at| usize::try_from(*at).ok().and_then(|at| shape.get(at)).copied())
            .collect();
        turned
            .filter(|turned| turned.len() == shape.len() && product(turned) == product(shape))
            .ok_or_else(|| misfit(node))
    }

    fn squeezed(&self, node: &NodeProto) -> Result<Shape> {
        let shape = self.shape(node, 0)?;
        let Some(axes) = self.list(node, 1, "axes")? else {
            return Ok(shape.iter().copied().filter(|size| *size != 1).collect());
        };
        let axes = places(&axes, shape.len(), node)?;
        let left = shape.iter().enumerate().filter(|(at, _)| !axes.contains(at));
        Ok(left.map(|(_, size)| *size).collect())
    }

    fn unsqueezed(&self, node: &NodeProto) -> Result<Shape> {
        let mut shape = self.shape(node, 0)?.clone();
        let axes = self.list(node, 1, "axes")?.ok_or_else(|| misfit(node))?;
        within("dimensions", axes.len(), DIMENSIONS)?;
        let mut axes = places(&axes, shape.len() + axes.len(), node)?;
        axes.sort_unstable();
        for axis in axes {
            if axis > shape.len() {
                return Err(misfit(node));
            }
            shape.insert(axis, 1);
        }
        Ok(shape)
    }
}

fn reduced(shape: &Shape, axes: Option<Vec<i64>>, node: &NodeProto) -> Result<Shape> {
    let axes = match axes.filter(|axes| !axes.is_empty()) {
        Some(axes) => places(&axes, shape.len(), node)?,
        None => (0..shape.len()).collect(),
    };
    let keep = integer(node, "keepdims").unwrap_or(1) != 0;
    let sizes = shape.iter().enumerate().filter_map(|(at, size)| match axes.contains(&at) {
        true => keep.then_some(1),
        false => Some(*size),
    });
    Ok(sizes.collect())
}

fn broadcast(a: &[usize], b: &[usize], node: &NodeProto) -> Result<Shape> {
    let length = a.len().max(b.len());
    let size = |shape: &[usize], at: usize| (at + shape.len()).checked_sub(length).map_or(1, |at| shape[at]);
    (0..length)
        .map(|at| match (size(a, at), size(b, at)) {
            (a, b) if a == b => Ok(a),
            (1, other) | (other, 1) => Ok(other),
            _ => Err(misfit(node)),
        })
        .collect()
}

/// An axis, which may count from the end.
fn place(axis: i64, dimensions: usize, node: &NodeProto) -> Result<usize> {
    let count = i64::try_from(dimensions).map_err(|_| misfit(node))?;
    let axis = if axis < 0 { axis.saturating_add(count) } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < dimensions).ok_or_else(|| misfit(node))
}

fn places(axes: &[i64], dimensions: usize, node: &NodeProto) -> Result<Vec<usize>> {
    axes.iter().map(|axis| place(*axis, dimensions, node)).collect()
}

fn product(shape: &[usize]) -> usize {
    shape.iter().fold(1_usize, |product, size| product.saturating_mul(*size))
}

fn misfit(node: &NodeProto) -> Error {
    Error::damaged(format!("the ONNX operator `{}` has inputs of incompatible shapes", node.op_type))
}
