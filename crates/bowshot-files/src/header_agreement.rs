//! Files of one table of separated values agree on whether they have headers: a part without one is read with the names of
//! a part that has one, and a part of nothing but text does not lose its first row to a header that the others lack.

use bowshot_formats::csv::CsvFacts;
use bowshot_formats::data_file::DataFile;
use bowshot_formats::file_metadata::{Detail, FileFacts};
use bowshot_formats::inspection::Workshop;
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_object_store::Error;
use std::sync::Arc;

/// Reads those files again, with what the others tell, that read by themselves would not fit.
pub(crate) fn on_headers(
    files: &mut [(Arc<DataFile>, Arc<FileFacts>)],
    found: &[ListedFile],
    options: &ReadOptions,
    workshop: &Workshop,
) -> Result<(), Error> {
    if files.len() < 2 || options.header.is_some() {
        return Ok(());
    }
    let told = |facts: &FileFacts| csv(facts).filter(|facts| facts.certain).map(Arc::clone);
    let with_header = files.iter().find_map(|(_, facts)| told(facts).filter(|facts| facts.preamble.header));
    let without = files.iter().find_map(|(_, facts)| told(facts).filter(|facts| !facts.preamble.header));
    for ((data, facts), found) in files.iter_mut().zip(found) {
        let Some(own) = csv(facts) else { continue };
        let names = match (&with_header, &without) {
            (Some(other), _) if !own.preamble.header && own.names.len() == other.names.len() => {
                other.names.clone()
            }
            (None, Some(other))
                if own.preamble.header && !own.certain && own.names.len() == other.names.len() =>
            {
                Vec::new()
            }
            _ => continue,
        };
        let agreed = ReadOptions { header: Some(false), names, ..options.clone() };
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
