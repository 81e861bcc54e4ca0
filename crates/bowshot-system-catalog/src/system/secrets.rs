//! `system.secrets`: which credentials of sources there are, for admins alone. Of their values it tells nothing, not even how long they
//! are.

use crate::lazy_table::{cells, columns};
use crate::system::tables::batch;
use bowshot_api::Result;
use bowshot_object_store::secrets::Secrets;
use bowshot_policy::snapshot::Pinned;
use datafusion::arrow::array::RecordBatch;

pub(super) const NAME: &str = "secrets";

/// A row for each secret, by name, as the statement's transaction sees them.
pub(super) fn rows(secrets: &Secrets, pinned: &Pinned) -> Result<RecordBatch> {
    let rows = secrets.told(pinned.shared().notes().texts()).into_iter().map(|secret| {
        let state = if secret.problem.is_none() { "ready" } else { "unreadable" };
        cells![secret.name, secret.kind, secret.scope, secret.owner, secret.made, state, secret.problem]
    });
    let columns = columns![
        name Text, type Text, scope Text, owner Text, created Time, state Text, problem Text
    ];
    batch(columns, rows)
}
