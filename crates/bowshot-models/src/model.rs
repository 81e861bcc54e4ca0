//! A model: its inputs, outputs and predictions.

use crate::columns::{self, Inputs};
use crate::error::{Error, Result};
use crate::forest::Forest;
use crate::limits::{self, within};
use crate::link::Link;
use crate::onnx::network::{self, Network};
use crate::{lightgbm, onnx, ubjson, value_tree, xgboost};
use arrow::array::{ArrayRef, Int64Array, ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use std::sync::Arc;

/// Bytes of a node of a tree, about.
const NODE_BYTES: usize = 32;

/// A model: what it takes, and what it makes of it.
#[derive(Debug)]
pub struct Model {
    parts: Parts,
}

/// What a reader has read.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) format: &'static str,
    pub(crate) objective: String,
    /// Names of the columns; none if the file has none.
    pub(crate) names: Vec<String>,
    pub(crate) task: Task,
    pub(crate) link: Link,
    pub(crate) evaluator: Evaluator,
    /// Where features come from, where they are not simply the columns.
    pub(crate) inputs: Option<Inputs>,
}

/// What a model predicts.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// A number for each row, or several.
    Regression,
    /// One of these classes.
    Classification(Classes),
}

/// The classes of a classifier, in the order of its probabilities.
#[derive(Debug, Clone, PartialEq)]
pub enum Classes {
    /// Numbers.
    Integers(Vec<i64>),
    /// Names.
    Texts(Vec<String>),
}

impl Classes {
    /// Classes that a file only counts.
    pub(crate) fn numbered(count: usize) -> Self {
        Self::Integers((0..).take(count).collect())
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Integers(classes) => classes.len(),
            Self::Texts(classes) => classes.len(),
        }
    }

    /// What they are called.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Integers(classes) => classes.iter().map(i64::to_string).collect(),
            Self::Texts(classes) => classes.clone(),
        }
    }
}

/// A forest in the arithmetic of its library, or a graph.
#[derive(Debug)]
pub(crate) enum Evaluator {
    /// XGBoost's: all in 32 bits.
    Single(Forest<f32, f32>),
    /// ONNX': compared in 32 bits. Its sums have 64 here, which is nearer to what the model was made from.
    Mixed(Forest<f32, f64>),
    /// LightGBM's, and ONNX' of doubles: all in 64 bits.
    Double(Forest<f64, f64>),
    /// ONNX' graphs of other operators.
    Network(Network),
}

/// Applies an expression to whichever forest there is, or another one to the graph.
macro_rules! with_forest {
    ($evaluator:expr, $forest:ident => $what:expr, $network:ident => $other:expr) => {
        match $evaluator {
            Evaluator::Single($forest) => $what,
            Evaluator::Mixed($forest) => $what,
            Evaluator::Double($forest) => $what,
            Evaluator::Network($network) => $other,
        }
    };
}

impl Model {
    /// Reads a model file of any format that is known.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        within("bytes", bytes.len(), limits::FILE_BYTES)?;
        let start = bytes.trim_ascii_start();
        match start {
            [b'{', rest @ ..] if matches!(rest.trim_ascii_start().first(), Some(b'"' | b'}')) => {
                xgboost::read(&value_tree::from_json(bytes)?)
            }
            [b'{', ..] => xgboost::read(&ubjson::from_ubjson(bytes)?),
            _ if start.starts_with(b"tree\n") || start.starts_with(b"tree\r\n") => lightgbm::read(
                std::str::from_utf8(bytes).map_err(|_| Error::damaged("its text is not UTF-8"))?,
            ),
            [0x80, ..] => Err(Error::unsupported(
                "Python pickles are not supported: save the model with the library's own `save_model`, or as ONNX",
            )),
            _ if start.starts_with(b"binf") => Err(Error::unsupported(
                "XGBoost's old binary format is not supported: save the model as `.json` or `.ubj`",
            )),
            _ => onnx::read(bytes),
        }
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Whose format the file has: `xgboost`, `lightgbm` or `onnx`.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.parts.format
    }

    /// The objective that it was trained for, or the operator that it is.
    #[must_use]
    pub fn objective(&self) -> &str {
        &self.parts.objective
    }

    /// What it predicts.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.parts.task
    }

    /// How many columns it takes.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        match &self.parts.inputs {
            Some(inputs) => inputs.columns,
            None => {
                with_forest!(&self.parts.evaluator, forest => forest.features(), network => network.columns())
            }
        }
    }

    /// The names of its columns; empty if the file has none.
    #[must_use]
    pub fn feature_names(&self) -> &[String] {
        &self.parts.names
    }

    /// The type of the numbers that it computes in; others are converted to it.
    #[must_use]
    pub fn feature_type(&self) -> DataType {
        self.number_type()
    }

    /// How many trees it has.
    #[must_use]
    pub fn tree_count(&self) -> usize {
        with_forest!(&self.parts.evaluator, forest => forest.trees(), _network => 0)
    }

    /// How many nodes its trees have, or how many operators its graph.
    #[must_use]
    pub fn node_count(&self) -> usize {
        with_forest!(&self.parts.evaluator, forest => forest.nodes(), network => network.operators())
    }

    /// What a row costs, about, where asking one tree costs one.
    #[must_use]
    pub fn row_cost(&self) -> usize {
        with_forest!(&self.parts.evaluator, forest => forest.trees(), network => network.cost()).max(1)
    }

    /// Bytes of memory that it takes, about, where its file has so many.
    #[must_use]
    pub fn memory(&self, file_bytes: usize) -> usize {
        match &self.parts.evaluator {
            // The constants, once more as the library has laid them out.
            Evaluator::Network(_) => file_bytes.saturating_mul(3),
            _ => file_bytes.max(self.node_count().saturating_mul(NODE_BYTES)),
        }
    }

    fn number_type(&self) -> DataType {
        match &self.parts.evaluator {
            Evaluator::Double(_) => DataType::Float64,
            Evaluator::Network(network) if network.is_double() => DataType::Float64,
            Evaluator::Single(_) | Evaluator::Mixed(_) | Evaluator::Network(_) => DataType::Float32,
        }
    }

    /// The type of [`predict`](Self::predict): a class, a number, or a list of numbers if it predicts several.
    #[must_use]
    pub fn prediction_type(&self) -> DataType {
        match &self.parts.task {
            Task::Classification(Classes::Integers(_)) => DataType::Int64,
            Task::Classification(Classes::Texts(_)) => DataType::Utf8,
            Task::Regression if self.outputs() == 1 => self.number_type(),
            Task::Regression => self.list_type(),
        }
    }

    /// The type of [`predict_proba`](Self::predict_proba): a list with one probability for each class.
    pub fn probability_type(&self) -> Result<DataType> {
        self.classes().map(|_| self.list_type())
    }

    fn list_type(&self) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(self.number_type(), true)))
    }

    /// An error unless there are as many columns as the model takes, and all are numbers.
    pub fn check(&self, types: &[DataType]) -> Result<()> {
        let expected = self.feature_count();
        if types.len() != expected {
            return Err(Error::input(format!("expected {expected} columns, got {}", types.len())));
        }
        match types.iter().position(|kind| !columns::is_numeric(kind)) {
            None => Ok(()),
            Some(at) => {
                let name = self.parts.names.get(at).map_or_else(String::new, |name| format!(" (`{name}`)"));
                Err(Error::input(format!(
                    "column {}{name} of the model must be a number, not {}",
                    at + 1,
                    types[at]
                )))
            }
        }
    }

    /// The class or the numbers of each row.
    pub fn predict(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        if let (Evaluator::Network(network), Task::Classification(classes)) =
            (&self.parts.evaluator, &self.parts.task)
        {
            self.check_columns(columns)?;
            if let Some(said) = network.labels(columns, classes)? {
                return Ok(said);
            }
        }
        let scores = self.scores(columns)?;
        let Task::Classification(classes) = &self.parts.task else {
            return Ok(if self.outputs() == 1 {
                self.numbers(scores)
            } else {
                self.lists(scores, self.outputs())?
            });
        };
        let chosen = scores.chunks_exact(self.outputs()).map(chosen);
        Ok(match classes {
            Classes::Integers(classes) => Arc::new(chosen.map(|at| classes[at]).collect::<Int64Array>()),
            Classes::Texts(classes) => Arc::new(chosen.map(|at| Some(&classes[at])).collect::<StringArray>()),
        })
    }

    /// The probability of each class, in the order of the classes.
    pub fn predict_proba(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let classes = self.classes()?.count();
        let scores = self.scores(columns)?;
        if self.outputs() == classes {
            return self.lists(scores, classes);
        }
        self.lists(scores.into_iter().flat_map(|p| [1.0 - p, p]).collect(), classes)
    }

    fn classes(&self) -> Result<&Classes> {
        match &self.parts.task {
            Task::Classification(classes) => Ok(classes),
            Task::Regression => {
                Err(Error::input("the model is not a classifier and has no probabilities: use predict"))
            }
        }
    }

    fn outputs(&self) -> usize {
        with_forest!(&self.parts.evaluator, forest => forest.outputs(), network => network.outputs())
    }

    /// An error unless the columns are those of the model, all of one length.
    fn check_columns(&self, columns: &[ArrayRef]) -> Result<()> {
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        self.check(&types)?;
        let rows = columns.first().map_or(0, |column| column.len());
        if columns.iter().any(|column| column.len() != rows) {
            return Err(Error::input("the columns differ in length"));
        }
        Ok(())
    }

    /// What the objective makes of the sums, row by row.
    fn scores(&self, columns: &[ArrayRef]) -> Result<Vec<f64>> {
        self.check_columns(columns)?;
        let inputs = self.parts.inputs.as_ref();
        let mut scores = match &self.parts.evaluator {
            Evaluator::Single(forest) => columns::scores::<Float32Type, _>(forest, inputs, columns)?,
            Evaluator::Mixed(forest) => columns::scores::<Float32Type, _>(forest, inputs, columns)?,
            Evaluator::Double(forest) => columns::scores::<Float64Type, _>(forest, inputs, columns)?,
            Evaluator::Network(network) => return network.numbers(columns),
        };
        for row in scores.chunks_exact_mut(self.outputs()) {
            self.parts.link.apply(row);
        }
        if self.number_type() == DataType::Float32 {
            // Before a class is chosen: what is one half there must be one half here.
            scores.iter_mut().for_each(|score| *score = f64::from(single(*score)));
        }
        Ok(scores)
    }

    fn numbers(&self, scores: Vec<f64>) -> ArrayRef {
        network::array(scores, self.number_type() == DataType::Float64)
    }

    fn lists(&self, scores: Vec<f64>, length: usize) -> Result<ArrayRef> {
        let rows = scores.len() / length;
        i32::try_from(scores.len())
            .map_err(|_| Error::input("too many rows in one batch for lists of numbers"))?;
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(length, rows));
        let item = Arc::new(Field::new_list_field(self.number_type(), true));
        Ok(Arc::new(ListArray::new(item, offsets, self.numbers(scores), None)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest value is meant")]
fn single(score: f64) -> f32 {
    score as f32
}

/// The place of the class: of the greatest score, or by one score whether it is the second.
fn chosen(scores: &[f64]) -> usize {
    if let [score] = scores {
        return usize::from(*score > 0.5);
    }
    let mut best = 0;
    for (at, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = at;
        }
    }
    best
}
