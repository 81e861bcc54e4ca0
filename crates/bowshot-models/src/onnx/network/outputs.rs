//! What the outputs of a graph mean: numbers, or a class and the probabilities of all classes.

use super::super::messages::{
    GraphProto, ModelProto, NodeProto, TensorProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use super::consistency::ROWS;
use super::decode::{TEXT, attribute, graph, whole};
use super::tensors::{Numbers, Output};
use crate::error::{Error, Result};
use crate::limits::{self, within};
use crate::model::Classes;

/// Operators behind which a result is what it was.
const PASSING: [&str; 6] = ["Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"];
/// How many of them are followed.
const STEPS: usize = 64;

/// What is known of each output before anything was computed.
#[derive(Debug)]
pub(super) struct Meaning {
    outputs: Vec<Origin>,
}

#[derive(Debug)]
struct Origin {
    name: String,
    operator: String,
    classes: Option<Classes>,
}

/// What the outputs mean.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) label: Option<usize>,
    pub(super) numbers: usize,
    pub(super) width: usize,
    pub(super) double: bool,
    pub(super) classes: Option<Classes>,
    pub(super) objective: String,
}

/// Finds it out, and takes the maps away that converters make of probabilities.
pub(super) fn find(model: &mut ModelProto) -> Result<Meaning> {
    let graph = graph(model)?;
    within("outputs", graph.output.len(), limits::OUTPUTS)?;
    let maps = take_maps(graph)?;
    let origins = graph.output.iter().map(|output| {
        let origin = origin(graph, &output.name);
        let mapped = maps.iter().find(|(name, _)| *name == output.name);
        let classes = match mapped {
            Some((_, classes)) => Some(classes.clone()),
            None => origin.and_then(|node| classes_of(graph, node)),
        };
        let operator = origin.map_or("", |node| node.op_type.as_str()).to_owned();
        Origin { name: output.name.clone(), operator, classes }
    });
    Ok(Meaning { outputs: origins.collect() })
}

/// Probabilities as maps are probabilities as numbers: the maps' inputs with the classes that they name.
fn take_maps(graph: &mut GraphProto) -> Result<Vec<(String, Classes)>> {
    let (maps, nodes): (Vec<NodeProto>, Vec<NodeProto>) =
        std::mem::take(&mut graph.node).into_iter().partition(|node| node.op_type == "ZipMap");
    graph.node = nodes;
    let mut named = Vec::new();
    for map in maps {
        let (Some(from), Some(to)) = (map.input.first(), map.output.first()) else {
            return Err(Error::damaged("`ZipMap` has no input or no output"));
        };
        let classes = listed(&map, "classlabels_int64s", "classlabels_strings")
            .ok_or_else(|| Error::damaged("`ZipMap` names no classes"))?;
        if graph.node.iter().any(|node| node.input.contains(to)) {
            return Err(Error::unsupported("`ZipMap` before other operators is not supported"));
        }
        for output in graph.output.iter_mut().filter(|output| output.name == *to) {
            *output = numbers(from);
        }
        named.push((from.clone(), classes));
    }
    Ok(named)
}

fn numbers(name: &str) -> ValueInfoProto {
    let kind = TensorTypeProto { elem_type: super::decode::FLOAT, shape: None };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type: Some(kind) }) }
}

/// The operator that a value comes from.
fn origin<'a>(graph: &'a GraphProto, name: &str) -> Option<&'a NodeProto> {
    let mut name = name;
    let mut found = None;
    for _ in 0..STEPS {
        let node = graph.node.iter().find(|node| node.output.iter().any(|output| output == name))?;
        found = Some(node);
        if !PASSING.contains(&node.op_type.as_str()) {
            break;
        }
        name = node.input.first()?;
    }
    found
}

/// The classes that an operator chooses among.
fn classes_of(graph: &GraphProto, node: &NodeProto) -> Option<Classes> {
    match node.op_type.as_str() {
        "LinearClassifier" | "SVMClassifier" => listed(node, "classlabels_ints", "classlabels_strings"),
        "TreeEnsembleClassifier" => listed(node, "classlabels_int64s", "classlabels_strings"),
        "ArrayFeatureExtractor" | "Gather" => {
            let name = node.input.first()?;
            constant_classes(graph.initializer.iter().find(|tensor| tensor.name == *name)?)
        }
        _ => None,
    }
}

fn constant_classes(tensor: &TensorProto) -> Option<Classes> {
    if tensor.data_type == TEXT {
        return texts(&tensor.string_data).map(Classes::Texts);
    }
    whole(tensor).map(Classes::Integers)
}

fn listed(node: &NodeProto, integers: &str, strings: &str) -> Option<Classes> {
    let named = attribute(node, strings).filter(|attribute| !attribute.strings.is_empty());
    if let Some(named) = named {
        return texts(&named.strings).map(Classes::Texts);
    }
    let numbered = attribute(node, integers).filter(|attribute| !attribute.ints.is_empty())?;
    Some(Classes::Integers(numbered.ints.clone()))
}

/// Texts of a file.
fn texts(bytes: &[Vec<u8>]) -> Option<Vec<String>> {
    bytes.iter().map(|text| String::from_utf8(text.clone()).ok()).collect()
}

impl Meaning {
    /// By what the graph says of [`ROWS`] rows.
    pub(super) fn of(&self, outputs: &[Output]) -> Result<Meant> {
        if outputs.len() != self.outputs.len() {
            return Err(Error::unsupported("the ONNX graph does not return its declared outputs"));
        }
        let is_number = |output: &Output| matches!(output.numbers, Numbers::Floats(_) | Numbers::Doubles(_));
        let is_label = |output: &Output| {
            matches!(output.numbers, Numbers::Integers(_) | Numbers::Texts(_)) && output.count() == ROWS
        };
        let (label, numbers) = match outputs {
            [one] if is_number(one) => (None, 0),
            [label, numbers] if is_label(label) && is_number(numbers) => (Some(0), 1),
            [numbers, label] if is_label(label) && is_number(numbers) => (Some(1), 0),
            _ => return Err(self.unknown()),
        };
        let given = &outputs[numbers];
        if given.shape.first() != Some(&ROWS) || given.count() == 0 {
            return Err(Error::unsupported("the ONNX graph does not return one result for each row"));
        }
        let width = given.count() / ROWS;
        within("outputs", width, limits::OUTPUTS)?;
        let double = matches!(given.numbers, Numbers::Doubles(_));
        let classes = match label {
            None if self.outputs[numbers].operator == "Softmax" && width > 1 => {
                Some(Classes::numbered(width))
            }
            None => None,
            Some(label) => Some(self.classes(label, numbers, width)?),
        };
        let objective = label.map_or(numbers, |label| label);
        let operator = &self.outputs[objective].operator;
        let learned = operator.ends_with("Classifier") || operator.ends_with("Regressor");
        let objective = if learned { operator.clone() } else { "network".to_owned() };
        Ok(Meant { label, numbers, width, double, classes, objective })
    }

    fn classes(&self, label: usize, numbers: usize, width: usize) -> Result<Classes> {
        let (label, numbers) = (&self.outputs[label], &self.outputs[numbers]);
        let classes = label.classes.clone().or_else(|| numbers.classes.clone());
        let classes = classes.or_else(|| (label.operator == "ArgMax").then(|| Classes::numbered(width)));
        match classes {
            Some(classes) if classes.count() == width => Ok(classes),
            Some(classes) => Err(Error::unsupported(format!(
                "the ONNX output `{}` has {width} numbers for {} classes",
                numbers.name,
                classes.count()
            ))),
            None => Err(Error::unsupported(format!(
                "the ONNX graph does not declare the classes of `{}`",
                label.name
            ))),
        }
    }

    fn unknown(&self) -> Error {
        let names: Vec<&str> = self.outputs.iter().map(|output| output.name.as_str()).take(5).collect();
        Error::unsupported(format!(
            "ONNX models with the outputs {} are not supported: expected one output of floats, or a class and the probabilities of all classes",
            names.join(", ")
        ))
    }
}
