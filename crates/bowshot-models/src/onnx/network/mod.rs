//! ONNX graphs other than tree ensembles, computed by ONNX Runtime, whose library the operator names; without it they are refused. It was not
//! written for untrusted files, so graphs are checked first: operators must be in a list ([`operators`]) without any that could use much memory,
//! run for ever, or return another answer each time.

mod consistency;
mod decode;
mod onnx_runtime;
mod operators;
mod outputs;
mod shapes;
mod tensors;

use super::validation::Screened;
use crate::error::{Error, Result};
use crate::limits::{self, within};
use crate::link::Link;
use crate::model::{Classes, Evaluator, Model, Parts, Task};
use arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, StringArray};
use onnx_runtime::Engine;
pub(super) use onnx_runtime::has_runtime;
pub use onnx_runtime::load_onnx_runtime;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tensors::{Kind, Numbers, Output};

/// Rows that are computed in one go: how much memory that takes was looked at for so many.
const BLOCK: usize = 256;

/// A graph that can be asked.
#[derive(Debug)]
pub(crate) struct Network {
    engine: Engine,
    inputs: Vec<Input>,
    /// The place of the output with the class of each row.
    label: Option<usize>,
    /// The place of the output with numbers, and how many there are for each row.
    numbers: usize,
    width: usize,
    double: bool,
    operators: usize,
    /// What a row costs, about, where a node of a tree is one.
    cost: usize,
}

/// An input of a graph.
#[derive(Debug, Clone)]
struct Input {
    name: String,
    width: usize,
    kind: Kind,
}

pub(super) fn read(bytes: &[u8], screened: &Screened<'_>) -> Result<Model> {
    within("bytes", bytes.len(), limits::NETWORK_BYTES)?;
    operators::check(screened)?;
    screened.check()?;
    match screened.operators.first() {
        Some((_, operator)) if !has_runtime() => return Err(Error::NoRuntime((*operator).to_owned())),
        _ => {}
    }
    quietly(|| read_checked(bytes))
}

fn read_checked(bytes: &[u8]) -> Result<Model> {
    let mut model = decode::model(bytes)?;
    let inputs = decode::inputs(&model)?;
    let meaning = outputs::find(&mut model)?;
    let cost = match shapes::cost(&model, &inputs) {
        // Of what only the library knows the size of, it has to say itself what is too much.
        Err(Error::Unsupported(_)) => limits::NETWORK_COST,
        cost => cost?,
    };
    let engine = Engine::new(&model)?;
    let operators = model.graph.as_ref().map_or(0, |graph| graph.node.len());
    let answer = consistency::probe(&engine, &inputs)?;
    let meant = meaning.of(&answer)?;
    let columns = inputs.iter().map(|input| input.width).sum::<usize>();
    let names = if inputs.len() == columns && columns > 1 {
        inputs.iter().map(|input| input.name.clone()).collect()
    } else {
        Vec::new()
    };
    let network = Network {
        engine,
        inputs,
        label: meant.label,
        numbers: meant.numbers,
        width: meant.width,
        double: meant.double,
        operators,
        cost,
    };
    Ok(Model::new(Parts {
        format: "onnx",
        objective: meant.objective,
        names,
        task: meant.classes.map_or(Task::Regression, Task::Classification),
        link: Link::Identity,
        evaluator: Evaluator::Network(network),
        inputs: None,
    }))
}

/// Libraries that were not written for files of strangers may give up by a panic, which ends here.
fn quietly<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::unsupported("the ONNX graph cannot be computed: ONNX Runtime failed")))
}

impl Network {
    pub(crate) fn columns(&self) -> usize {
        self.inputs.iter().map(|input| input.width).sum()
    }

    pub(crate) fn outputs(&self) -> usize {
        self.width
    }

    pub(crate) fn is_double(&self) -> bool {
        self.double
    }

    pub(crate) fn operators(&self) -> usize {
        self.operators
    }

    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// The numbers of all rows, row by row.
    pub(crate) fn numbers(&self, columns: &[ArrayRef]) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        self.run(columns, |outputs, rows| {
            let output = outputs.get(self.numbers).ok_or_else(lost)?;
            if output.count() != rows * self.width {
                return Err(lost());
            }
            output.append_to(&mut all)
        })?;
        Ok(all)
    }

    /// The class of each row as the graph says it; `None` where it says numbers alone.
    pub(crate) fn labels(&self, columns: &[ArrayRef], classes: &Classes) -> Result<Option<ArrayRef>> {
        let Some(label) = self.label else { return Ok(None) };
        let (mut places, mut texts) = (Vec::new(), Vec::new());
        self.run(columns, |outputs, rows| {
            let output = outputs.get(label).filter(|output| output.count() == rows).ok_or_else(lost)?;
            match &output.numbers {
                Numbers::Texts(said) => texts.extend(said.iter().cloned()),
                Numbers::Integers(said) => places.extend_from_slice(said),
                _ => return Err(lost()),
            }
            Ok(())
        })?;
        Ok(Some(match classes {
            Classes::Integers(_) => Arc::new(Int64Array::from(places)),
            Classes::Texts(_) if places.is_empty() => Arc::new(StringArray::from(texts)),
            Classes::Texts(names) => {
                let name = |at: i64| usize::try_from(at).ok().and_then(|at| names.get(at));
                let named = places.into_iter().map(name).collect::<Option<Vec<_>>>().ok_or_else(lost)?;
                Arc::new(StringArray::from_iter_values(named))
            }
        }))
    }

    /// All rows in blocks.
    fn run(&self, columns: &[ArrayRef], mut each: impl FnMut(&[Output], usize) -> Result<()>) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        let sources = tensors::sources(&self.inputs, columns)?;
        let mut first = 0;
        while first < rows {
            let length = BLOCK.min(rows - first);
            let inputs = sources.iter().map(|source| source.block(first, length)).collect();
            let outputs = quietly(|| self.engine.run(inputs, length))?;
            each(&outputs, length)?;
            first += length;
        }
        Ok(())
    }
}

/// A graph that gives something else for some rows than for those that it was tried with.
fn lost() -> Error {
    Error::input("the ONNX graph does not return one result for each row")
}

/// Numbers as an array of the graph's own arithmetic.
pub(crate) fn array(numbers: Vec<f64>, double: bool) -> ArrayRef {
    #[expect(clippy::cast_possible_truncation, reason = "they were of 32 bits")]
    if double {
        Arc::new(Float64Array::from(numbers))
    } else {
        Arc::new(numbers.into_iter().map(|number| number as f32).collect::<Float32Array>())
    }
}
