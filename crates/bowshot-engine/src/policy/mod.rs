//! Who may do what, and which rows and values they see: decided here and nowhere else.
//!
//! ```text
//! notes of the snapshot ─► Rules (roles, rights, owners, policies)  ┐
//! configuration ─► AccessSettings (users, roles, admins)            ├─► Gate of a session ─► Access of a statement
//! who asks ─► Principal                                             ┘
//!
//! Access ─┬─► seen     the snapshot that is left for metadata, names and system tables: what one may not see is not there
//!         ├─► reading  how a table is read: as it is, through a guard (filter, masks, columns), or not
//!         └─► needs    what a statement that changes something needs
//! ```
//!
//! Every table of a query comes from [`Visible`](crate::catalog::Visible), which asks `reading`; every plan that changes
//! something passes `authorize`, which asks `changes`; rows on their way into a table pass `write/fit.rs`, which holds them
//! against the filters of who writes. A guarded table is a leaf of the physical plan, so that no rule of an optimiser, no
//! statistics and no metrics reach through it, and it has no key in the caches. What leaves it is rebuilt (`shown`): no buffer holds
//! what rows and values that are hidden had.
//!
//! What is not known is denied: a user that is neither configured nor in the catalog has no rights at all, notes that
//! cannot be read give none, and a table with row policies of which none is for the user has no rows.

pub(crate) mod access;
mod files;
mod follow;
mod functions;
pub(crate) mod gate;
pub(crate) mod grants;
pub(crate) mod guard;
pub(crate) mod mask;
pub(crate) mod rules;
mod shown;

pub(crate) use access::{Access, Reading, Touched};
pub(crate) use files::{SeenFiles, file_name};
pub(crate) use follow::{follow, without_model, without_type};
pub(crate) use functions::user_attribute;
pub use gate::{AccessSettings, CatalogUsers, ConfiguredUser, UsersSeen};
pub(crate) use gate::{Basis, CurrentSettings, Gate, has_user, is_known};
pub(crate) use guard::{behind_guard, guarded, inside, is_guarded, plan_filter};
