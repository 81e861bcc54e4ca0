//! Who may do what, and which rows and values they see: decided here and nowhere else. [`rules`], [`AccessSettings`] and the
//! principal make the [`SessionAccess`] of a session, and that the [`Access`] of a statement over the tables that it has pinned
//! ([`snapshot`]). Unknown means denied: an unknown user has no rights, records that cannot be read give none, and a table with
//! row policies of which none is for the user has no rows.

pub mod access;
mod files;
mod function_note;
mod functions;
pub mod grants;
mod rule_propagation;
pub mod rules;
mod session_access;
pub mod snapshot;

pub use access::{Access, Reading, Touched};
pub use files::{SeenFiles, file_name};
pub use function_note::FunctionNote;
pub use functions::user_attribute;
pub use rule_propagation::{propagate_rules, without_function, without_model, without_type};
pub use session_access::{
    AccessSettings, Basis, CatalogUsers, ConfiguredUser, CurrentSettings, SessionAccess, UsersSeen,
};
pub use session_access::{has_user, is_known, is_role};
