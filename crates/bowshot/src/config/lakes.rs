//! Lakes that are served by their path, as in `bowshot serve lake=ducklake:metadata.sqlite`: they are none of the sources of files, since
//! their tables have a catalog of their own.

use crate::usage::Usage;
use bowshot_databases::{LakeSettings, is_lake};
use bowshot_files::SourceSpec;

/// Takes the lakes out of the sources.
pub(super) fn taken_from(sources: &mut Vec<SourceSpec>) -> Result<Vec<LakeSettings>, Usage> {
    let mut lakes = Vec::new();
    for source in std::mem::take(sources) {
        let Some(uri) = source.path.to_str().filter(|uri| is_lake(uri)) else {
            sources.push(source);
            continue;
        };
        let Some(name) = &source.name else {
            return Err(Usage::new(format!("the lake `{uri}` has no name"))
                .with_hint(format!("the name becomes the catalog of its tables: write `lake={uri}`")));
        };
        if !source.options.is_empty() {
            return Err(Usage::new(format!("the lake `{name}` has options after its path"))
                .with_hint("write an entry of `[[databases]]` for it"));
        }
        lakes.push(LakeSettings::served(name, uri).map_err(Usage::from)?);
    }
    Ok(lakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lakes_are_no_sources_of_files() {
        let of = |texts: &[&str]| {
            let mut sources: Vec<SourceSpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
            taken_from(&mut sources).map(|lakes| (lakes.len(), sources.len()))
        };
        assert_eq!(of(&["a=data", "lake=ducklake:x.sqlite", "data/"]).unwrap(), (1, 2));
        assert!(of(&["ducklake:x.sqlite"]).is_err());
        assert!(of(&["lake=ducklake:../x.sqlite"]).is_err());
    }
}
