//! Graphs computed by tract, which is part of the program.

use super::tensors::{Kind, Numbers, Output, Tensor};
use super::{Engine, Input};
use crate::error::{Error, Result};
use std::sync::Arc;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::{
    Datum, DatumType, Framework, InferenceFact, InferenceModelExt, IntoRunnable, TDim, TValue, TractResult,
    TypedRunnableModel, tvec,
};
use tract_onnx::tract_hir::prelude::Tensor as Given;

#[derive(Debug)]
struct Planned {
    plan: Arc<TypedRunnableModel>,
}

/// Plans a graph of standard operators whose shapes are known.
pub(super) fn engine(model: &ModelProto, inputs: &[Input]) -> Result<Box<dyn Engine>> {
    let plan = plan(model, inputs).map_err(|error| {
        Error::unsupported(format!("the ONNX graph cannot be computed: {}", reason(&error)))
    })?;
    Ok(Box::new(Planned { plan }))
}

fn plan(model: &ModelProto, inputs: &[Input]) -> TractResult<Arc<TypedRunnableModel>> {
    // What the file says of the shapes of results is not believed.
    let framework = tract_onnx::onnx()
        .with_ignore_output_shapes(true)
        .with_ignore_output_types(true)
        .with_ignore_value_info(true);
    let mut graph = framework.model_for_proto_model(model)?;
    let rows = TDim::from(graph.symbols.sym("rows"));
    for (at, input) in inputs.iter().enumerate() {
        let shape = tvec![rows.clone(), TDim::from(input.width)];
        graph.set_input_fact(at, InferenceFact::dt_shape(type_of(input.kind), shape))?;
    }
    graph.into_optimized()?.into_runnable()
}

/// The innermost of several reasons, without the plan that some of them write out.
fn reason(error: &tract_onnx::prelude::TractError) -> String {
    error.root_cause().to_string().lines().next().unwrap_or_default().to_owned()
}

fn type_of(kind: Kind) -> DatumType {
    match kind {
        Kind::Float => f32::datum_type(),
        Kind::Double => f64::datum_type(),
        Kind::Integer => i64::datum_type(),
        Kind::Small => i32::datum_type(),
        Kind::Truth => bool::datum_type(),
    }
}

impl Engine for Planned {
    fn run(&self, inputs: Vec<Tensor>, rows: usize) -> Result<Vec<Output>> {
        self.outputs(inputs, rows).map_err(|error| {
            Error::input(format!("the ONNX graph cannot be computed for these rows: {}", reason(&error)))
        })
    }
}

impl Planned {
    fn outputs(&self, inputs: Vec<Tensor>, rows: usize) -> TractResult<Vec<Output>> {
        let inputs = inputs.into_iter().map(|input| given(&input, rows)).collect::<TractResult<_>>()?;
        self.plan.run(inputs)?.iter().map(|value| output(value)).collect()
    }
}

fn given(input: &Tensor, rows: usize) -> TractResult<TValue> {
    let shape = [rows, input.width];
    Ok(match &input.numbers {
        Numbers::Floats(numbers) => Given::from_shape(&shape, numbers)?,
        Numbers::Doubles(numbers) => Given::from_shape(&shape, numbers)?,
        Numbers::Integers(numbers) => Given::from_shape(&shape, numbers)?,
        Numbers::Small(numbers) => Given::from_shape(&shape, numbers)?,
        Numbers::Truths(numbers) => Given::from_shape(&shape, numbers)?,
        Numbers::Texts(_) => return Err(tract_onnx::prelude::TractError::msg("texts are no inputs")),
    }
    .into())
}

fn output(tensor: &Given) -> TractResult<Output> {
    let shape = tensor.shape().to_vec();
    let numbers = match tensor.datum_type() {
        DatumType::F32 => Numbers::Floats(tensor.try_as_plain_ram()?.as_slice::<f32>()?.to_vec()),
        DatumType::F64 => Numbers::Doubles(tensor.try_as_plain_ram()?.as_slice::<f64>()?.to_vec()),
        _ => {
            let whole = tensor.cast_to::<i64>()?;
            Numbers::Integers(whole.try_as_plain_ram()?.as_slice::<i64>()?.to_vec())
        }
    };
    Ok(Output { shape, numbers })
}
