//! `system.secrets`: which credentials of sources there are, for admins alone. Of their values it tells nothing, not even how long they
//! are.

use crate::system::tables::batch;
use bowshot_api::Result;
use bowshot_object_store::secrets::{SecretSummary, Secrets};
use bowshot_policy::snapshot::Pinned;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use std::sync::Arc;

pub(super) const NAME: &str = "secrets";

/// A row for each secret, by name, as the statement's transaction sees them.
pub(super) fn rows(secrets: &Secrets, pinned: &Pinned) -> Result<RecordBatch> {
    let all = secrets.told(pinned.shared().notes().texts());
    let text = |value: &dyn Fn(&SecretSummary) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(value).collect::<StringArray>())
    };
    let created = all.iter().map(|secret| secret.made).collect::<TimestampMicrosecondArray>();
    let state = |secret: &SecretSummary| match secret.problem {
        None => "ready",
        Some(_) => "unreadable",
    };
    batch(vec![
        ("name", text(&|secret| Some(secret.name.clone()))),
        ("type", text(&|secret| secret.kind.map(str::to_owned))),
        ("scope", text(&|secret| secret.scope.clone())),
        ("owner", text(&|secret| secret.owner.clone())),
        ("created", Arc::new(created.with_timezone("UTC"))),
        ("state", text(&|secret| Some(state(secret).to_owned()))),
        ("problem", text(&|secret| secret.problem.clone())),
    ])
}
