//! From the columns through the operators to the ensemble, and from its results to the outputs. Operators come in the
//! order in which they can run, so one look at each is enough.

use super::ensemble::{self, Ensemble};
use super::messages;
use super::proto::{self, Graph, Node};
use crate::columns::{Feature, Inputs, Step};
use crate::error::{Error, Result};
use crate::limits::{self, within};
use crate::model::{Model, Parts};
use std::collections::HashMap;

/// Operators that a column may go through before the ensemble.
const STEPS: usize = 16;

/// Types of elements that are numbers: floats, small and large integers, truth values.
const NUMBERS: [i32; 12] = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13];

/// What a name in the graph stands for.
#[derive(Debug, Clone)]
enum Value {
    /// Columns, on their way to the ensemble.
    Columns(Vec<Feature>),
    /// What the ensemble has said: classes, their probabilities, or numbers.
    Result,
}

/// What is found on the way through the operators.
struct Walk<'a> {
    graph: &'a Graph<'a>,
    values: HashMap<&'a str, Value>,
    ensemble: Option<(Ensemble, Vec<Feature>)>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Model> {
    let model = messages::decode(bytes)?;
    let graph = proto::graph(&model)?;
    let (values, columns) = inputs(&graph)?;
    let mut walk = Walk { graph: &graph, values, ensemble: None };
    for node in &graph.nodes {
        let value = walk.operator(node)?;
        for output in &node.outputs {
            walk.values.insert(output, value.clone());
        }
    }
    for output in &graph.outputs {
        if !matches!(walk.values.get(output), Some(Value::Result)) {
            return Err(Error::unsupported(format!(
                "the ONNX output `{output}` is not the output of a tree ensemble"
            )));
        }
    }
    let (ensemble, features) =
        walk.ensemble.ok_or_else(|| Error::unsupported("the ONNX model has no tree ensemble"))?;
    Ok(Model::new(Parts {
        format: "onnx",
        objective: ensemble.operator,
        names: names(&graph, columns),
        task: ensemble.task,
        link: ensemble.link,
        evaluator: ensemble.evaluator,
        inputs: Some(Inputs { columns, features }),
    }))
}

/// What the inputs stand for, and how many columns they are together.
fn inputs<'a>(graph: &Graph<'a>) -> Result<(HashMap<&'a str, Value>, usize)> {
    let (mut values, mut columns) = (HashMap::new(), 0_usize);
    for input in &graph.inputs {
        if !NUMBERS.contains(&input.elements) {
            return Err(Error::unsupported(format!(
                "the ONNX input `{}` does not take numbers, and other inputs are not supported",
                input.name
            )));
        }
        let width = input.width.ok_or_else(|| {
            Error::unsupported(format!(
                "the ONNX input `{}` has no fixed number of columns: convert the model with a fixed width",
                input.name
            ))
        })?;
        within("features", columns.saturating_add(width), limits::FEATURES)?;
        let features =
            (columns..columns + width).map(|column| Feature { column, steps: Vec::new() }).collect();
        values.insert(input.name, Value::Columns(features));
        columns += width;
    }
    Ok((values, columns))
}

/// The names of the columns, where each is an input of its own.
fn names(graph: &Graph<'_>, columns: usize) -> Vec<String> {
    if columns < 2 || graph.inputs.len() != columns {
        return Vec::new();
    }
    graph.inputs.iter().map(|input| input.name.to_owned()).collect()
}

impl<'a> Walk<'a> {
    /// What an operator gives.
    fn operator(&mut self, node: &Node<'a>) -> Result<Value> {
        match node.operator {
            // What these change of numbers is what the ensemble's arithmetic does with them anyway.
            "Cast" | "Identity" => self.value(node, 0).cloned(),
            "Concat" if matches!(node.integer("axis"), Some(1 | -1)) => self.concatenated(node),
            "FeatureVectorizer" => self.concatenated(node),
            "Scaler" => self.scaled(node),
            "Add" | "Sub" | "Mul" | "Div" => self.computed(node),
            "Imputer" => self.imputed(node),
            "ArrayFeatureExtractor" => self.chosen(node),
            "TreeEnsembleClassifier" | "TreeEnsembleRegressor" | "TreeEnsemble" => self.ensemble(node),
            "ZipMap" | "Reshape" | "Flatten" | "Squeeze" if matches!(self.value(node, 0)?, Value::Result) => {
                Ok(Value::Result)
            }
            other => Err(Error::unsupported(format!("the ONNX operator `{other}` is not supported"))),
        }
    }

    fn value(&self, node: &Node<'a>, at: usize) -> Result<&Value> {
        let name = node
            .inputs
            .get(at)
            .ok_or_else(|| Error::damaged(format!("`{}` has too few inputs", node.operator)))?;
        self.values.get(name).ok_or_else(|| {
            Error::unsupported(format!("`{}` over a constant is not supported", node.operator))
        })
    }

    fn columns(&self, node: &Node<'a>, at: usize) -> Result<&[Feature]> {
        match self.value(node, at)? {
            Value::Columns(columns) => Ok(columns),
            Value::Result => Err(Error::unsupported(format!(
                "the ONNX operator `{}` after an ensemble is not supported",
                node.operator
            ))),
        }
    }

    fn concatenated(&self, node: &Node<'a>) -> Result<Value> {
        let mut all = Vec::new();
        for at in 0..node.inputs.len() {
            let columns = self.columns(node, at)?;
            within("features", all.len() + columns.len(), limits::FEATURES)?;
            all.extend_from_slice(columns);
        }
        Ok(Value::Columns(all))
    }

    fn scaled(&self, node: &Node<'a>) -> Result<Value> {
        let (offsets, scales) = (node.floats("offset"), node.floats("scale"));
        let columns = self.columns(node, 0)?.to_vec();
        let columns = with_step(columns, |at, count| Ok(Step::Plus(-of_column(offsets, at, count, 0.0)?)))?;
        Ok(Value::Columns(with_step(columns, |at, count| {
            Ok(Step::Times(of_column(scales, at, count, 1.0)?))
        })?))
    }

    /// Arithmetic of the columns with constants behind them.
    fn computed(&self, node: &Node<'a>) -> Result<Value> {
        let constant = node.inputs.get(1).and_then(|name| self.graph.constants.get(name));
        let constant = constant.filter(|constant| !constant.values.is_empty()).ok_or_else(|| {
            Error::unsupported(format!("`{}` without a constant is not supported", node.operator))
        })?;
        let columns = with_step(self.columns(node, 0)?.to_vec(), |at, count| {
            let number = of_column(&constant.values, at, count, 0.0)?;
            Ok(match node.operator {
                "Add" => Step::Plus(number),
                "Sub" => Step::Plus(-number),
                "Mul" => Step::Times(number),
                _ => Step::Over(number),
            })
        });
        Ok(Value::Columns(columns?))
    }

    fn imputed(&self, node: &Node<'a>) -> Result<Value> {
        let by = node.floats("imputed_value_floats");
        let Some(value) = node.floats("replaced_value_float").first() else {
            return Err(Error::unsupported("the ONNX operator `Imputer` of integers is not supported"));
        };
        let columns = with_step(self.columns(node, 0)?.to_vec(), |at, count| {
            Ok(Step::Replace { value: *value, by: of_column(by, at, count, 0.0)? })
        });
        Ok(Value::Columns(columns?))
    }

    /// Some of the columns, by their places.
    fn chosen(&self, node: &Node<'a>) -> Result<Value> {
        let columns = self.columns(node, 0)?;
        let places = node.inputs.get(1).and_then(|name| self.graph.constants.get(name));
        let places = places.ok_or_else(|| {
            Error::unsupported("`ArrayFeatureExtractor` without constant indices is not supported")
        })?;
        within("features", places.values.len(), limits::FEATURES)?;
        let chosen = places
            .values
            .iter()
            .map(|at| crate::value_tree::place(*at).and_then(|at| columns.get(at)).cloned());
        let chosen = chosen.collect::<Option<_>>();
        Ok(Value::Columns(
            chosen.ok_or_else(|| Error::damaged("`ArrayFeatureExtractor` refers to a missing column"))?,
        ))
    }

    fn ensemble(&mut self, node: &Node<'a>) -> Result<Value> {
        if self.ensemble.is_some() {
            return Err(Error::unsupported("ONNX models of more than one tree ensemble are not supported"));
        }
        let columns = self.columns(node, 0)?.to_vec();
        self.ensemble = Some((ensemble::read(node, columns.len())?, columns));
        Ok(Value::Result)
    }
}

/// Columns with one step more.
fn with_step(mut columns: Vec<Feature>, step: impl Fn(usize, usize) -> Result<Step>) -> Result<Vec<Feature>> {
    let count = columns.len();
    for (at, column) in columns.iter_mut().enumerate() {
        within("steps before the ensemble", column.steps.len() + 1, STEPS)?;
        column.steps.push(step(at, count)?);
    }
    Ok(columns)
}

/// The number for a column: there is one for each, or one for all.
fn of_column(numbers: &[f64], at: usize, columns: usize, absent: f64) -> Result<f64> {
    match numbers {
        [] => Ok(absent),
        [number] => Ok(*number),
        numbers if numbers.len() == columns => Ok(numbers[at]),
        _ => Err(Error::damaged("an operator needs one number for each column")),
    }
}
