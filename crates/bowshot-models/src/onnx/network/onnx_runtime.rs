//! Graphs computed by ONNX Runtime, whose library the operator of the server has named. It is loaded once for the process.

use super::Engine;
use super::tensors::{Numbers, Output, Tensor};
use crate::error::{Error, Result};
use ort::environment::Environment;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Tensor as Given};
use prost::Message;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tract_onnx::pb::ModelProto;

/// The library is one for the process, whoever asks: so it says itself.
static RUNTIME: OnceLock<Environment> = OnceLock::new();
/// Sessions of one model that are kept: a session computes for one at a time.
const SESSIONS: usize = 8;

/// Loads the library of ONNX Runtime. From then on it computes all graphs that are no tree ensembles.
///
/// # Errors
/// When there is no such library, when it is another one, or an old one.
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

#[derive(Debug)]
struct Loaded {
    file: Vec<u8>,
    names: Vec<String>,
    idle: Mutex<Vec<Session>>,
}

/// Loads a graph.
pub(super) fn engine(model: &ModelProto) -> Result<Box<dyn Engine>> {
    let names = model.graph.iter().flat_map(|graph| &graph.input).map(|input| input.name.clone()).collect();
    let file = model.encode_to_vec();
    let idle = Mutex::new(vec![session(&file)?]);
    Ok(Box::new(Loaded { file, names, idle }))
}

fn session(file: &[u8]) -> Result<Session> {
    let environment = RUNTIME.get().ok_or_else(|| Error::unsupported("ONNX Runtime is not loaded"))?;
    let made = || -> ort::Result<Session> {
        // One thread: queries are spread over the processors already.
        let mut builder = Session::builder(environment)?
            .with_intra_threads(1)?
            .with_inter_threads(1)?
            .with_optimization_level(GraphOptimizationLevel::Level3)?;
        builder.commit_from_memory(file)
    };
    made().map_err(|error| Error::unsupported(format!("ONNX Runtime does not take the graph: {error}")))
}

impl Engine for Loaded {
    fn run(&self, inputs: Vec<Tensor>, rows: usize) -> Result<Vec<Output>> {
        let waiting = self.lock().pop();
        let mut session = match waiting {
            Some(session) => session,
            None => session(&self.file)?,
        };
        let outputs = self.outputs(&mut session, inputs, rows).map_err(|error| {
            Error::input(format!("the ONNX graph cannot be computed for these rows: {error}"))
        });
        let mut idle = self.lock();
        if idle.len() < SESSIONS {
            idle.push(session);
        }
        outputs
    }
}

impl Loaded {
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
                Numbers::Texts(_) => return Err(ort::Error::new("texts are no inputs")),
            };
            given.push((name, value.into()));
        }
        let outputs = session.run(given)?;
        outputs.values().map(|value| output(&value)).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
