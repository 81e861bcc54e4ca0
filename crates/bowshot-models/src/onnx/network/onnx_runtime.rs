//! Graphs computed by ONNX Runtime, whose library the operator of the server has named. It is loaded once for the process.

use super::super::messages::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use super::decode::whole;
use super::tensors::{Numbers, Output, Tensor};
use crate::error::{Error, Result};
use ort::environment::Environment;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Tensor as Given, TensorElementType, ValueType};
use parking_lot::Mutex;
use prost::Message;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::OnceLock;

/// The library is one for the process, whoever asks: so it says itself.
static RUNTIME: OnceLock<Environment> = OnceLock::new();
/// Sessions of one model that are kept: a session computes for one at a time.
const SESSIONS: usize = 8;

/// Loads the library of ONNX Runtime. From then on it computes all graphs that are no tree ensembles.
pub fn load_onnx_runtime(path: &Path) -> Result<()> {
    let load = || -> std::result::Result<Environment, String> {
        let builder = ort::init_from(path).map_err(|error| error.to_string())?;
        builder.with_name("bowshot").with_telemetry(false).build().map_err(|error| error.to_string())
    };
    let environment = catch_unwind(load)
        .unwrap_or_else(|_| Err("the library cannot be used".to_owned()))
        .map_err(|error| Error::input(format!("ONNX Runtime cannot be loaded: {error}")))?;
    RUNTIME.set(environment).map_err(|_| Error::input("ONNX Runtime is loaded already"))
}

/// Whether there is a library.
pub(crate) fn has_runtime() -> bool {
    RUNTIME.get().is_some()
}

/// A graph that can be computed.
#[derive(Debug)]
pub(super) struct Engine {
    file: Vec<u8>,
    names: Vec<String>,
    idle: Mutex<Vec<Session>>,
}

/// Whole numbers that are divided by zero, or the smallest of them by -1, end the process in some versions of the library. Which
/// numbers are whole, a library that computes nothing yet says.
fn check_divisions(model: &ModelProto) -> Result<()> {
    let mut asked = model.clone();
    let Some(graph) = asked.graph.as_mut() else { return Ok(()) };
    let divisions = graph.node.iter().filter(|node| divides(graph, node));
    let results = divisions.filter_map(|node| node.output.first()).cloned();
    graph.output = results.map(|name| ValueInfoProto { name, r#type: None }).collect();
    if graph.output.is_empty() {
        return Ok(());
    }
    let floats = [TensorElementType::Float32, TensorElementType::Float64, TensorElementType::Float16];
    let session = session(&asked.encode_to_vec(), GraphOptimizationLevel::Disable)?;
    for result in session.outputs() {
        if !matches!(result.dtype(), ValueType::Tensor { ty, .. } if floats.contains(ty)) {
            return Err(Error::unsupported(
                "ONNX graphs that divide integers by anything but positive constants are not supported",
            ));
        }
    }
    Ok(())
}

fn divides(graph: &GraphProto, node: &NodeProto) -> bool {
    let constant = |name: &String| graph.initializer.iter().find(|tensor| tensor.name == *name);
    let by = node.input.get(1).and_then(constant).and_then(whole);
    matches!(node.op_type.as_str(), "Div" | "Mod") && !by.is_some_and(|by| by.iter().all(|by| *by > 0))
}

fn session(file: &[u8], level: GraphOptimizationLevel) -> Result<Session> {
    let environment = RUNTIME.get().ok_or_else(|| Error::unsupported("ONNX Runtime is not loaded"))?;
    let made = || -> ort::Result<Session> {
        // One thread: queries are spread over the processors already.
        let mut builder = Session::builder(environment)?
            .with_intra_threads(1)?
            .with_inter_threads(1)?
            .with_optimization_level(level)?;
        builder.commit_from_memory(file)
    };
    made().map_err(|error| Error::unsupported(format!("ONNX Runtime rejected the graph: {error}")))
}

impl Engine {
    pub(super) fn new(model: &ModelProto) -> Result<Self> {
        check_divisions(model)?;
        let inputs = model.graph.iter().flat_map(|graph| &graph.input);
        let names = inputs.map(|input| input.name.clone()).collect();
        let file = model.encode_to_vec();
        let idle = Mutex::new(vec![session(&file, GraphOptimizationLevel::Level3)?]);
        Ok(Self { file, names, idle })
    }

    /// The outputs, in the order of the graph's, for inputs in the order of its inputs.
    pub(super) fn run(&self, inputs: Vec<Tensor>, rows: usize) -> Result<Vec<Output>> {
        let waiting = self.idle.lock().pop();
        let mut session = match waiting {
            Some(session) => session,
            None => session(&self.file, GraphOptimizationLevel::Level3)?,
        };
        let outputs = self.outputs(&mut session, inputs, rows).map_err(|error| {
            Error::input(format!("the ONNX graph cannot be computed for these rows: {error}"))
        });
        let mut idle = self.idle.lock();
        if idle.len() < SESSIONS {
            idle.push(session);
        }
        outputs
    }

    fn outputs(&self, session: &mut Session, inputs: Vec<Tensor>, rows: usize) -> ort::Result<Vec<Output>> {
        let mut given: Vec<(&str, SessionInputValue<'_>)> = Vec::with_capacity(inputs.len());
        for (name, input) in self.names.iter().zip(inputs) {
            let shape = [rows, input.width];
            let value: DynValue = match input.numbers {
                Numbers::Floats(numbers) => Given::from_array((shape, numbers))?.into_dyn(),
                Numbers::Doubles(numbers) => Given::from_array((shape, numbers))?.into_dyn(),
                Numbers::Integers(numbers) => Given::from_array((shape, numbers))?.into_dyn(),
                Numbers::Small(numbers) => Given::from_array((shape, numbers))?.into_dyn(),
                Numbers::Truths(numbers) => Given::from_array((shape, numbers))?.into_dyn(),
                Numbers::Texts(_) => return Err(ort::Error::new("strings are not supported as inputs")),
            };
            given.push((name, value.into()));
        }
        let outputs = session.run(given)?;
        outputs.values().map(|value| output(&value)).collect()
    }
}

fn output(value: &DynValue) -> ort::Result<Output> {
    let shape = |shape: &[i64]| shape.iter().map(|size| usize::try_from(*size).unwrap_or(0)).collect();
    if let Ok((dimensions, numbers)) = value.try_extract_tensor::<f32>() {
        return Ok(Output { shape: shape(dimensions), numbers: Numbers::Floats(numbers.to_vec()) });
    }
    if let Ok((dimensions, numbers)) = value.try_extract_tensor::<f64>() {
        return Ok(Output { shape: shape(dimensions), numbers: Numbers::Doubles(numbers.to_vec()) });
    }
    if let Ok((dimensions, numbers)) = value.try_extract_tensor::<i64>() {
        return Ok(Output { shape: shape(dimensions), numbers: Numbers::Integers(numbers.to_vec()) });
    }
    if let Ok((dimensions, numbers)) = value.try_extract_tensor::<i32>() {
        let numbers = numbers.iter().map(|number| i64::from(*number)).collect();
        return Ok(Output { shape: shape(dimensions), numbers: Numbers::Integers(numbers) });
    }
    let (dimensions, texts) = value.try_extract_strings()?;
    Ok(Output { shape: shape(dimensions), numbers: Numbers::Texts(texts) })
}
