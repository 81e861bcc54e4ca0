//! Files of one table of separated values agree. A part without a header has the names of a part with one, and a part of nothing
//! but text loses no row to a header that the others lack. The order of dates and the signs in numbers that a part does not
//! show are those of the others.

use bowshot_formats::csv::{CsvFacts, Habits};
use bowshot_formats::data_file::DataFile;
use bowshot_formats::file_metadata::{Detail, FileFacts};
use bowshot_formats::inspection::Workshop;
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::Error;
use std::sync::Arc;

/// Reads those files again, with what the others tell, that read by themselves would not fit.
pub(crate) fn agree(
    files: &mut [(Arc<DataFile>, Arc<FileFacts>)],
    found: &[ListedFile],
    options: &ReadOptions,
    workshop: &Workshop,
) -> Result<(), Error> {
    if files.len() < 2 {
        return Ok(());
    }
    let habits = Habits::common(files.iter().filter_map(|(_, facts)| csv(facts)).map(|facts| facts.habits));
    let told = |header: bool| {
        let mut certain = files.iter().filter_map(|(_, facts)| csv(facts)).filter(|facts| facts.certain);
        certain.find(|facts| options.header.is_none() && facts.preamble.header == header).map(Arc::clone)
    };
    let (with_header, without) = (told(true), told(false));
    for ((data, facts), found) in files.iter_mut().zip(found) {
        let Some(own) = csv(facts) else { continue };
        let fits = |other: &Arc<CsvFacts>| own.names.len() == other.names.len();
        let names = match (&with_header, &without) {
            (Some(other), _) if !own.preamble.header && fits(other) => Some(other.names.clone()),
            (None, Some(other)) if own.preamble.header && !own.certain && fits(other) => Some(Vec::new()),
            _ => None,
        };
        if names.is_none() && (!own.is_open || own.habits.or(habits) == own.habits) {
            continue;
        }
        let agreed = match names {
            Some(names) => ReadOptions { header: Some(false), names, habits, ..options.clone() },
            None => ReadOptions { habits, ..options.clone() },
        };
        *facts = Arc::new(FileFacts::read(data, &found.kind, &agreed, &workshop.sources)?);
        data.close();
    }
    Ok(())
}

fn csv(facts: &FileFacts) -> Option<&Arc<CsvFacts>> {
    match &facts.detail {
        Detail::Csv(facts) => Some(facts),
        _ => None,
    }
}
