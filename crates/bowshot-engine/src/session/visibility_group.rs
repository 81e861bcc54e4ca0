//! The visibility group of a session: with whom it shares what is outside of tables.

use crate::session::EngineSession;
use bowshot_api::{Error, ErrorKind, Result};

impl EngineSession {
    /// With whom the session meets outside of tables: those who have this role too, or without one, where there are rules, those
    /// who are the same user.
    ///
    /// # Errors
    /// `Denied` without the role.
    pub fn visibility_group(&self, role: Option<&str>) -> Result<String> {
        let access = self.gate.newest();
        match role {
            Some(role) if access.is_off() || access.has_role(role) => Ok(format!("role {role}")),
            Some(role) => {
                let message = format!("`{}` does not have the role `{role}`", access.user());
                Err(Error::new(ErrorKind::Denied, message)
                    .with_hint(format!("an admin can run `GRANT {role} TO …`")))
            }
            None if access.is_off() => Ok("everybody".to_owned()),
            None => Ok(format!("user {}", access.user())),
        }
    }
}
