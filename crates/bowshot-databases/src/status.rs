//! A row of `system.databases`.

#[derive(Debug)]
pub(crate) struct DatabaseStatus {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) place: String,
    pub(crate) read_only: bool,
    pub(crate) attached: bool,
    pub(crate) pool: Option<usize>,
    pub(crate) connections: Option<usize>,
    pub(crate) tables: Option<usize>,
    pub(crate) problem: Option<String>,
}
