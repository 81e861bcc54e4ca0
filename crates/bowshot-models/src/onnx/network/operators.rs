//! Which operators there may be.

use super::super::validation::Screened;
use crate::error::{Error, Result};

/// Words as texts.
macro_rules! words {
    ($($word:ident)*) => {
        &[$(stringify!($word)),*]
    };
}

/// Those whose shapes and costs are known ([`super::shapes`]), in the standard's domain.
const STANDARD: &[&str] = words! {
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization Cast Ceil Celu Clip
    Concat Constant Cos Cosh Div Dropout Elu Equal Erf Exp Flatten Floor Gather Gelu Gemm Greater
    GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LayerNormalization LeakyRelu Less
    LessOrEqual Log LogSoftmax MatMul Max Mean Min Mul Neg Not Or PRelu Pow Reciprocal ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
    Reshape Round Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Squeeze Sub Sum Tan Tanh
    ThresholdedRelu Transpose Unsqueeze Where Xor
};

/// The same, in `ai.onnx.ml`.
const LEARNED: &[&str] = words! {
    ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer LinearClassifier LinearRegressor Normalizer
    Scaler ZipMap
};

/// Those whose shapes are not looked at. None of them makes more of its inputs than its constants say.
const OTHER: &[&str] = words! {
    AveragePool Conv CumSum Einsum GRU GatherElements GatherND GlobalAveragePool GlobalMaxPool Hardmax
    InstanceNormalization LSTM LpNormalization MaxPool Mod RNN Shape Slice Split TopK
};
const OTHER_LEARNED: &[&str] = words! {
    LabelEncoder OneHotEncoder SVMClassifier SVMRegressor TreeEnsemble TreeEnsembleClassifier
    TreeEnsembleRegressor
};

/// Refuses a graph by the first operator that may not be in it.
pub(super) fn check(screened: &Screened<'_>) -> Result<()> {
    for (domain, operator) in &screened.operators {
        let lists = match *domain {
            "" | "ai.onnx" => [STANDARD, OTHER],
            "ai.onnx.ml" => [LEARNED, OTHER_LEARNED],
            _ => [&[][..], &[]],
        };
        if !lists.iter().any(|list| list.contains(operator)) {
            return Err(Error::unsupported(format!("the ONNX operator `{operator}` is not supported")));
        }
    }
    Ok(())
}

/// Whether the shape of what an operator gives is known, of one that [`check`] has let through.
pub(super) fn has_shape(operator: &str) -> bool {
    STANDARD.contains(&operator) || LEARNED.contains(&operator)
}
