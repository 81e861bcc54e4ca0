//! Names of tables and views, taken as they are: whoever reads SQL has folded them before.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName {
    pub catalog: String,
    pub schema: String,
    pub name: String,
}

impl EntryName {
    pub fn new(catalog: impl Into<String>, schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { catalog: catalog.into(), schema: schema.into(), name: name.into() }
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.schema, self.name)
    }
}
