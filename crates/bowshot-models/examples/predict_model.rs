//! `predict_model MODEL IN OUT`: what a model says of the columns of an Arrow file. For the comparison with the models'
//! own libraries in `tests/models`; `predict_model --read FILE…` says of each file what it is, or what is wrong with it, and
//! asks those that can be read about a few rows. With `--onnx-runtime LIBRARY` before all that, ONNX Runtime computes what is no
//! tree ensemble.

use arrow::array::{ArrayRef, Float64Array, RecordBatch};
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use bowshot_models::{Model, Task};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == "--onnx-runtime") {
        let library = arguments.drain(..2).next_back().unwrap_or_default();
        bowshot_models::load_onnx_runtime(Path::new(&library))?;
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--read", ..] => read(&arguments[1..]),
        [model, input, output] => predict(model, input, output),
        _ => Err("predict_model [--onnx-runtime LIBRARY] MODEL IN OUT, or … --read FILE…".into()),
    }
}

fn read(files: &[String]) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for file in files {
        match Model::read(&std::fs::read(file)?) {
            Ok(model) => {
                let column: ArrayRef =
                    Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-3.0), Some(1e30)]));
                match model.predict(&vec![column; model.feature_count()]) {
                    Ok(_) => {
                        writeln!(out, "{} {} {}", model.format(), model.objective(), model.tree_count())?
                    }
                    Err(error) => writeln!(out, "error: {error}")?,
                }
            }
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    Ok(())
}

fn predict(model: &str, input: &str, output: &str) -> Result<(), Box<dyn Error>> {
    let model = Model::read(&std::fs::read(model)?)?;
    let mut writer = None;
    let mut nanoseconds = 0;
    for batch in FileReader::try_new(File::open(input)?, None)? {
        let batch = batch?;
        let start = Instant::now();
        let mut columns: Vec<(&str, ArrayRef)> = vec![("prediction", model.predict(batch.columns())?)];
        nanoseconds += start.elapsed().as_nanos();
        if matches!(model.task(), Task::Classification(_)) {
            columns.push(("probabilities", model.predict_proba(batch.columns())?));
        }
        let answer = RecordBatch::try_from_iter(columns)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(FileWriter::try_new(File::create(output)?, &answer.schema())?),
        };
        writer.write(&answer)?;
    }
    if let Some(mut writer) = writer {
        writer.finish()?;
    }
    writeln!(std::io::stdout(), "{} ms", nanoseconds / 1_000_000)?;
    Ok(())
}
