//! Which operators there may be.

use super::super::screen::Screened;
use crate::error::{Error, Result};

/// Those whose shapes and costs are known ([`super::shapes`]), in the standard's domain.
const STANDARD: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormalization",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Constant",
    "Cos",
    "Cosh",
    "Div",
    "Dropout",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Flatten",
    "Floor",
    "Gather",
    "Gelu",
    "Gemm",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "MatMul",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Transpose",
    "Unsqueeze",
    "Where",
    "Xor",
];

/// Those of `ai.onnx.ml` that are rewritten to the former ([`super::rewrite`]).
const LEARNED: &[&str] = &[
    "ArrayFeatureExtractor",
    "Binarizer",
    "FeatureVectorizer",
    "Imputer",
    "LinearClassifier",
    "LinearRegressor",
    "Normalizer",
    "Scaler",
    "ZipMap",
];

/// Those that ONNX Runtime alone computes. None of them makes more of its inputs than its constants say.
const OF_RUNTIME: &[&str] = &[
    "AveragePool",
    "Conv",
    "CumSum",
    "Einsum",
    "GRU",
    "GatherElements",
    "GatherND",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Hardmax",
    "InstanceNormalization",
    "LSTM",
    "LpNormalization",
    "MaxPool",
    "Mod",
    "RNN",
    "Shape",
    "Slice",
    "Split",
    "TopK",
];
const LEARNED_OF_RUNTIME: &[&str] = &[
    "LabelEncoder",
    "OneHotEncoder",
    "SVMClassifier",
    "SVMRegressor",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
];

/// Refuses a graph by the first operator that may not be in it.
pub(super) fn check(screened: &Screened<'_>, runtime: bool) -> Result<()> {
    for (domain, operator) in &screened.operators {
        let lists = match *domain {
            "" | "ai.onnx" => [STANDARD, OF_RUNTIME],
            "ai.onnx.ml" => [LEARNED, LEARNED_OF_RUNTIME],
            _ => [&[][..], &[]],
        };
        if lists[0].contains(operator) || (runtime && lists[1].contains(operator)) {
            continue;
        }
        let more = if lists[1].contains(operator) {
            ": it needs ONNX Runtime, whose library the operator names with `models.onnx_runtime`"
        } else {
            ""
        };
        return Err(Error::unsupported(format!("the ONNX operator `{operator}` is not evaluated{more}")));
    }
    Ok(())
}
