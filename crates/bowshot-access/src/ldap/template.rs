//! DNs and filters with the name of a user, escaped so that it is always a plain value.

use ldap3::{dn_escape, ldap_escape, parse_filter};

const USER: &str = "{user}";
const DN: &str = "{dn}";

/// The DN of a user, by its name.
#[derive(Debug)]
pub(super) struct DistinguishedName(String);

impl DistinguishedName {
    /// # Errors
    /// The reason why it cannot be used.
    pub(super) fn parse(template: &str) -> Result<Self, String> {
        let around = template.split(USER).collect::<Vec<_>>();
        match around.as_slice() {
            // Within a value: behind `attribute=`, and to the end of that part of the name.
            [before, after]
                if before.ends_with('=')
                    && (after.is_empty() || after.starts_with([',', '+']))
                    && !template.replace(USER, "").contains(['{', '}']) =>
            {
                Ok(Self(template.to_owned()))
            }
            _ => Err(format!(
                "`user_dn` has `{USER}` once, as the whole value of an attribute: `uid={USER},ou=people,dc=example,dc=org`"
            )),
        }
    }

    pub(super) fn of(&self, user: &str) -> String {
        self.0.replace(USER, &dn_escape(user))
    }
}

/// A filter for a user or its groups.
#[derive(Debug)]
pub(super) struct Filter(String);

impl Filter {
    /// # Errors
    /// The reason why it cannot be used.
    pub(super) fn parse_user(template: &str) -> Result<Self, String> {
        if template.contains(DN) {
            return Err(format!("`user_filter` finds the entry, and cannot have `{DN}` in it"));
        }
        Self::parse(template, "user_filter")
    }

    /// # Errors
    /// The reason why it cannot be used.
    pub(super) fn parse_groups(template: &str) -> Result<Self, String> {
        Self::parse(template, "group_filter")
    }

    fn parse(template: &str, name: &str) -> Result<Self, String> {
        let known = template.replace(USER, "x").replace(DN, "x");
        if known == template {
            return Err(format!("`{name}` lacks the placeholder `{USER}`"));
        }
        if known.contains(['{', '}']) || !known.starts_with('(') || parse_filter(&known).is_err() {
            return Err(format!("`{name}` is no filter in parentheses with `{USER}` or `{DN}` in it"));
        }
        Ok(Self(template.to_owned()))
    }

    /// The filter for one user. Placeholders in the name are not replaced.
    pub(super) fn of(&self, user: &str, dn: &str) -> String {
        let (user, dn) = (ldap_escape(user), ldap_escape(dn));
        let mut text = String::with_capacity(self.0.len() + user.len() + dn.len());
        let mut rest = self.0.as_str();
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            if let Some(after) = from.strip_prefix(USER) {
                text.push_str(&user);
                rest = after;
            } else if let Some(after) = from.strip_prefix(DN) {
                text.push_str(&dn);
                rest = after;
            } else {
                text.push('{');
                rest = from.strip_prefix('{').unwrap_or_default();
            }
        }
        text.push_str(rest);
        text
    }
}
