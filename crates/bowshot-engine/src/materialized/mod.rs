//! Which queries read materialized views in the place of their tables (`block`, `rewrite`), and which views would answer
//! more of them (`suggest`). A view is never read where its rows may be others than those of its query. `write/refresh/` brings them
//! up to date.

pub(crate) mod block;
pub(crate) mod rewrite;
pub(crate) mod suggest;
