//! External tables: files that stay where they are, under a name of the catalog. What is kept is what a statement said of them;
//! the files are looked for, below the places that the operator has opened, whenever they are read.

use bowshot_formats::read_options::OptionValue;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq)]
pub struct External {
    /// Tells the table from all others, also from earlier ones of the same name.
    pub id: Uuid,
    /// Name of the format of the files; empty where their names say it.
    pub format: String,
    /// Path, pattern or address of the files, as it was written; one that ends in `/` means all files below it.
    pub location: String,
    /// The whole path or pattern, where `location` is relative: another place has other files there. Earlier versions have none.
    pub found: Option<String>,
    /// How they are read, by the names of the options of [`bowshot_formats::read_options::ReadOptions`].
    pub options: Vec<(String, OptionValue)>,
    pub comment: Option<String>,
}

impl External {
    pub fn path(&self) -> String {
        if let Some(found) = &self.found {
            return found.clone();
        }
        match self.location.ends_with('/') {
            true => format!("{}**/*", self.location),
            false => self.location.clone(),
        }
    }

    pub(super) fn option_texts(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|(name, value)| {
            let mut texts = vec![name.as_str()];
            match value {
                OptionValue::Text(text) => texts.push(text),
                OptionValue::List(list) => texts.extend(list.iter().map(String::as_str)),
                OptionValue::Map(pairs) => {
                    texts.extend(pairs.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]));
                }
            }
            texts
        })
    }
}
