//! Parts of file paths, as DuckDB has them.

use crate::define::{Function, functions};
use crate::values::Kind::{self, Bool as Truth, Text as Words};
use crate::values::{Arguments, Str, StrList, Text, fill, get_or};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};

fn separators(name: &str) -> Result<&'static [char]> {
    match name {
        "both_slash" => Ok(&['/', '\\']),
        "forward_slash" | "system" => Ok(&['/']),
        "backslash" => Ok(&['\\']),
        other => exec_err!(
            "`{other}` is not a separator; use `both_slash`, `forward_slash`, `backslash` or `system`"
        ),
    }
}

/// The path of a row, what divides it, and whether the ending of a name is to be cut off.
struct Path<'a> {
    text: &'a str,
    divides: &'static [char],
    cut: bool,
}

fn each<O>(arguments: &Arguments, make: fn(&Path<'_>) -> O::Item) -> Result<ArrayRef>
where
    O: crate::values::Output,
{
    let paths = arguments.read::<Text>(0)?;
    let (mut names, mut cuts) = (None, None);
    for position in 1..arguments.len() {
        match arguments.data_type(position)? {
            DataType::Boolean => cuts = Some(arguments.read::<crate::values::Bool>(position)?),
            _ => names = Some(arguments.read::<Text>(position)?),
        }
    }
    fill::<O, Result<Option<O::Item>>>(arguments, |row| {
        let Some(text) = paths.get(row)? else { return Ok(None) };
        let name = get_or(names.as_ref(), row, "both_slash")?.unwrap_or("both_slash");
        let cut = get_or(cuts.as_ref(), row, false)?.unwrap_or(false);
        Ok(Some(make(&Path { text, divides: separators(name)?, cut })))
    })
}

fn file_name(path: &Path<'_>) -> String {
    let name = path.text.rsplit(path.divides).next().unwrap_or_default();
    let stem = name.rfind('.').and_then(|dot| name.get(..dot));
    (if path.cut { stem.unwrap_or(name) } else { name }).to_owned()
}

/// The path up to a place where it is divided; at the beginning that is the root.
fn up_to(path: &Path<'_>, end: Option<usize>) -> String {
    let text = end.and_then(|end| path.text.get(..end.max(1)));
    text.unwrap_or_default().to_owned()
}

fn first_folder(path: &Path<'_>) -> String {
    up_to(path, path.text.find(path.divides))
}

fn folders(path: &Path<'_>) -> String {
    up_to(path, path.text.rfind(path.divides))
}

fn parts(path: &Path<'_>) -> Vec<Option<String>> {
    let root = path.text.get(..1).filter(|first| first.starts_with(path.divides));
    let names = path.text.split(path.divides).filter(|part| !part.is_empty());
    root.into_iter().chain(names).map(|part| Some(part.to_owned())).collect()
}

const PATH: &[&[Kind]] = &[&[Words], &[Words, Words]];
const NAME: &[&[Kind]] = &[&[Words], &[Words, Truth], &[Words, Words], &[Words, Truth, Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "parse_filename": NAME, Text, |a| each::<Str>(a, file_name) =>
        "the name of a file, without its ending if the second argument is true";
    "parse_dirname": PATH, Text, |a| each::<Str>(a, first_folder) => "the first folder of a path";
    "parse_dirpath": PATH, Text, |a| each::<Str>(a, folders) => "the folders of a path";
    "parse_path": PATH, Texts, |a| each::<StrList>(a, parts) => "the parts of a path, as a list";
};
