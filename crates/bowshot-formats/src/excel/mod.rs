//! Excel workbooks (`.xlsx`): a sheet as a text of separated values, which the reader of those takes from there: header,
//! types and options are theirs. Texts are written with quotes and all else without, so that a cell of text is never taken
//! for a number.
//!
//! ```text
//! zip ─ book (sheets, shared texts, which formats are dates) ─ sheet (cells) ─▶ separated values ─ csv ─▶ batches
//! ```

mod date_time;
mod sheet;
mod workbook;
mod workbook_cache;
mod xml;

use crate::data_file::DataFile;
use bowshot_object_store::Error;
use std::io::Read;
use std::sync::{Arc, OnceLock};

pub use workbook_cache::WorkbookCache;

/// The text of a sheet, and the error of the file below if reading it failed.
type Opened = (Box<dyn Read + Send>, Arc<OnceLock<Error>>);

/// The text of a sheet: of the one that is named, else of the first one that is not hidden.
pub fn open(file: &Arc<DataFile>, name: Option<&str>) -> Result<Opened, Error> {
    let book = workbook::Workbook::open(file)?;
    let member = book.sheet(file, name)?;
    let (bytes, fault) = crate::zip::open(file, member)?;
    Ok((Box::new(sheet::Text::new(bytes, book)), fault))
}

pub fn story(file: &Arc<DataFile>, name: Option<&str>) -> Result<String, Error> {
    let book = workbook::Workbook::open(file)?;
    let told = book.name_of(name).unwrap_or_default();
    Ok(match book.names().len() {
        1 => format!("sheet={told}"),
        _ => format!("sheet={told} of {}", book.names().join(", ")),
    })
}
