//! The operators of `ai.onnx.ml` in those of the standard, which is what they mean; and texts as their places in a list.

use super::decode::{self, FLOAT, TEXT, attribute, floats, integer, integers, text};
use crate::error::{Error, Result};
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// What is written in the place of the operators.
struct Writer {
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    made: usize,
    /// Of the standard's operators.
    version: i64,
}

/// Rewrites all operators that the standard does not have.
pub(super) fn rewrite(model: &mut ModelProto) -> Result<()> {
    let version = decode::version(model);
    let graph = decode::graph(model)?;
    texts_to_places(graph)?;
    let mut writer =
        Writer { nodes: Vec::with_capacity(graph.node.len()), constants: Vec::new(), made: 0, version };
    for node in std::mem::take(&mut graph.node) {
        let constant = |name: &String| graph.initializer.iter().any(|tensor| tensor.name == *name);
        let over_constant = node.input.first().is_some_and(constant);
        writer.operator(node, over_constant)?;
    }
    // Names are for errors, and may be anything in a file.
    for (at, node) in writer.nodes.iter_mut().enumerate() {
        node.name = format!("{}-{at}", node.op_type);
    }
    graph.node = writer.nodes;
    graph.initializer.append(&mut writer.constants);
    Ok(())
}

/// Lists of texts name classes: their places stand for them.
fn texts_to_places(graph: &mut GraphProto) -> Result<()> {
    for tensor in graph.initializer.iter_mut().filter(|tensor| tensor.data_type == TEXT) {
        if tensor.dims.len() != 1 {
            return Err(Error::unsupported("ONNX constants of texts that are no lists are not evaluated"));
        }
        *tensor = integers(
            &tensor.name,
            &[tensor.string_data.len()],
            (0..).take(tensor.string_data.len()).collect(),
        );
    }
    for node in &graph.node {
        if node.op_type == "Cast" && integer(node, "to") == Some(i64::from(TEXT)) {
            return Err(Error::unsupported("the ONNX operator `Cast` to texts is not evaluated"));
        }
    }
    Ok(())
}

impl Writer {
    fn operator(&mut self, node: NodeProto, over_constant: bool) -> Result<()> {
        match node.op_type.as_str() {
            "Scaler" => self.scaler(&node),
            "Imputer" => self.imputer(&node),
            "Normalizer" => self.normalizer(&node),
            "Binarizer" => self.binarizer(&node),
            "FeatureVectorizer" => self.vectorizer(&node),
            "LinearRegressor" => self.regressor(&node),
            "LinearClassifier" => self.classifier(&node),
            "ArrayFeatureExtractor" => self.extractor(&node, over_constant),
            _ => {
                self.nodes.push(node);
                Ok(())
            }
        }
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("bowshot/{}", self.made)
    }

    fn constant(&mut self, make: impl FnOnce(&str) -> TensorProto) -> String {
        let name = self.name();
        self.constants.push(make(&name));
        name
    }

    /// Writes an operator and gives the name of its result.
    fn write(&mut self, operator: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        let name = self.name();
        self.write_as(operator, inputs, attributes, &name);
        name
    }

    fn write_as(&mut self, operator: &str, inputs: &[&str], attributes: Vec<AttributeProto>, output: &str) {
        self.nodes.push(NodeProto {
            op_type: operator.to_owned(),
            input: inputs.iter().map(|input| (*input).to_owned()).collect(),
            output: vec![output.to_owned()],
            attribute: attributes,
            ..NodeProto::default()
        });
    }

    /// The first input as floats, which these operators compute in.
    fn floats(&mut self, node: &NodeProto) -> Result<String> {
        let input = input(node, 0)?;
        Ok(self.write("Cast", &[input], vec![number("to", i64::from(FLOAT))]))
    }

    fn scaler(&mut self, node: &NodeProto) -> Result<()> {
        let (offsets, scales) = (list(node, "offset"), list(node, "scale"));
        let x = self.floats(node)?;
        let offset = self.constant(|name| floats(name, &[offsets.len().max(1)], or(offsets, 0.0)));
        let scale = self.constant(|name| floats(name, &[scales.len().max(1)], or(scales, 1.0)));
        let moved = self.write("Sub", &[&x, &offset], Vec::new());
        self.write_as("Mul", &[&moved, &scale], Vec::new(), output(node, 0)?);
        Ok(())
    }

    fn imputer(&mut self, node: &NodeProto) -> Result<()> {
        let Some(replaced) = attribute(node, "replaced_value_float").map(|attribute| attribute.f) else {
            return Err(Error::unsupported("the ONNX operator `Imputer` of whole numbers is not evaluated"));
        };
        let values = list(node, "imputed_value_floats");
        let x = self.floats(node)?;
        let by = self.constant(|name| floats(name, &[values.len().max(1)], or(values, 0.0)));
        let is_missing = if replaced.is_nan() {
            self.write("IsNaN", &[&x], Vec::new())
        } else {
            let value = self.constant(|name| floats(name, &[1], vec![replaced]));
            self.write("Equal", &[&x, &value], Vec::new())
        };
        self.write_as("Where", &[&is_missing, &by, &x], Vec::new(), output(node, 0)?);
        Ok(())
    }

    fn binarizer(&mut self, node: &NodeProto) -> Result<()> {
        let threshold = attribute(node, "threshold").map_or(0.0, |attribute| attribute.f);
        let x = self.floats(node)?;
        let threshold = self.constant(|name| floats(name, &[1], vec![threshold]));
        let above = self.write("Greater", &[&x, &threshold], Vec::new());
        self.write_as("Cast", &[&above], vec![number("to", i64::from(FLOAT))], output(node, 0)?);
        Ok(())
    }

    fn vectorizer(&mut self, node: &NodeProto) -> Result<()> {
        let cast = |writer: &mut Self, input: &str| {
            writer.write("Cast", &[input], vec![number("to", i64::from(FLOAT))])
        };
        let inputs: Vec<String> = node.input.iter().map(|input| cast(self, input)).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        self.write_as("Concat", &inputs, vec![number("axis", 1)], output(node, 0)?);
        Ok(())
    }

    /// Each row by its norm; a row of norm zero stays.
    fn normalizer(&mut self, node: &NodeProto) -> Result<()> {
        let norm = text(node, "norm").unwrap_or("MAX");
        let x = self.floats(node)?;
        let sums = match norm {
            "L1" => self.summed("ReduceL1", &x),
            "L2" => self.summed("ReduceL2", &x),
            other => {
                return Err(Error::unsupported(format!(
                    "the ONNX operator `Normalizer` by `{other}` is not evaluated"
                )));
            }
        };
        let zero = self.constant(|name| floats(name, &[1], vec![0.0]));
        let one = self.constant(|name| floats(name, &[1], vec![1.0]));
        let empty = self.write("Equal", &[&sums, &zero], Vec::new());
        let divisor = self.write("Where", &[&empty, &one, &sums], Vec::new());
        self.write_as("Div", &[&x, &divisor], Vec::new(), output(node, 0)?);
        Ok(())
    }

    /// One number for each row. Since version 18 the axes of these are an input.
    fn summed(&mut self, operator: &str, x: &str) -> String {
        if self.version < 18 {
            return self.write(operator, &[x], vec![list_of("axes", vec![1]), number("keepdims", 1)]);
        }
        let axes = self.constant(|name| integers(name, &[1], vec![1]));
        self.write(operator, &[x, &axes], vec![number("keepdims", 1)])
    }

    /// Columns by coefficients, and what is added to each.
    fn linear(&mut self, node: &NodeProto, targets: usize, output: &str) -> Result<()> {
        let (coefficients, intercepts) = (list(node, "coefficients"), list(node, "intercepts"));
        let wrong = || Error::damaged(format!("`{}` has not the coefficients that it says", node.op_type));
        let features =
            coefficients.len().checked_div(targets).filter(|features| *features > 0).ok_or_else(wrong)?;
        if features * targets != coefficients.len() || !(intercepts.is_empty() || intercepts.len() == targets)
        {
            return Err(wrong());
        }
        let turned = (0..features)
            .flat_map(|feature| (0..targets).map(move |target| (target, feature)))
            .map(|(target, feature)| coefficients[target * features + feature])
            .collect();
        let x = self.floats(node)?;
        let by = self.constant(|name| floats(name, &[features, targets], turned));
        let plus = self.constant(|name| floats(name, &[intercepts.len().max(1)], or(intercepts, 0.0)));
        let product = self.write("MatMul", &[&x, &by], Vec::new());
        self.write_as("Add", &[&product, &plus], Vec::new(), output);
        Ok(())
    }

    fn regressor(&mut self, node: &NodeProto) -> Result<()> {
        let targets = integer(node, "targets").map_or(Some(1), |targets| usize::try_from(targets).ok());
        match text(node, "post_transform") {
            None | Some("" | "NONE") => {}
            Some(other) => return Err(behind(node, other)),
        }
        self.linear(node, targets.unwrap_or(0), output(node, 0)?)
    }

    fn classifier(&mut self, node: &NodeProto) -> Result<()> {
        let labels = attribute(node, "classlabels_ints").map_or(&[][..], |labels| &labels.ints);
        let names = attribute(node, "classlabels_strings").map_or(0, |names| names.strings.len());
        let classes = labels.len().max(names);
        if classes < 2 {
            return Err(Error::unsupported("ONNX classifiers of fewer than two classes are not evaluated"));
        }
        let scores = self.name();
        self.linear(node, classes, &scores)?;
        let probabilities = output(node, 1)?;
        match text(node, "post_transform") {
            None | Some("" | "NONE") => self.write_as("Identity", &[&scores], Vec::new(), probabilities),
            Some("LOGISTIC") => self.write_as("Sigmoid", &[&scores], Vec::new(), probabilities),
            Some("SOFTMAX") => self.write_as("Softmax", &[&scores], vec![number("axis", 1)], probabilities),
            Some(other) => return Err(behind(node, other)),
        }
        let best = self.write("ArgMax", &[&scores], vec![number("axis", 1), number("keepdims", 0)]);
        if names > 0 {
            self.write_as("Identity", &[&best], Vec::new(), output(node, 0)?);
        } else {
            let labels = self.constant(|name| integers(name, &[classes], labels.to_vec()));
            self.write_as("Gather", &[&labels, &best], vec![number("axis", 0)], output(node, 0)?);
        }
        Ok(())
    }

    /// Some columns by their places, or those of one list.
    fn extractor(&mut self, node: &NodeProto, over_constant: bool) -> Result<()> {
        let (data, places) = (input(node, 0)?, input(node, 1)?);
        let flat = self.constant(|name| integers(name, &[1], vec![-1]));
        let places = self.write("Reshape", &[places, &flat], Vec::new());
        if over_constant {
            let chosen = self.write("Gather", &[data, &places], vec![number("axis", 0)]);
            let row = self.constant(|name| integers(name, &[2], vec![1, -1]));
            self.write_as("Reshape", &[&chosen, &row], Vec::new(), output(node, 0)?);
        } else {
            self.write_as("Gather", &[data, &places], vec![number("axis", 1)], output(node, 0)?);
        }
        Ok(())
    }
}

fn behind(node: &NodeProto, transform: &str) -> Error {
    Error::unsupported(format!("ONNX' `{transform}` behind `{}` is not evaluated", node.op_type))
}

fn input(node: &NodeProto, at: usize) -> Result<&str> {
    let input =
        node.input.get(at).ok_or_else(|| Error::damaged(format!("`{}` has too few inputs", node.op_type)))?;
    Ok(input)
}

fn output(node: &NodeProto, at: usize) -> Result<&str> {
    let output = node
        .output
        .get(at)
        .ok_or_else(|| Error::damaged(format!("`{}` has too few outputs", node.op_type)))?;
    Ok(output)
}

fn list(node: &NodeProto, name: &str) -> Vec<f32> {
    attribute(node, name).map_or_else(Vec::new, |attribute| attribute.floats.clone())
}

/// One number for all where there are none.
fn or(numbers: Vec<f32>, absent: f32) -> Vec<f32> {
    if numbers.is_empty() { vec![absent] } else { numbers }
}

/// The numbers of types of attributes in `onnx.proto`.
const INT: i32 = 2;
const INTS: i32 = 7;

fn number(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type: INT, i: value, ..AttributeProto::default() }
}

fn list_of(name: &str, values: Vec<i64>) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type: INTS, ints: values, ..AttributeProto::default() }
}
