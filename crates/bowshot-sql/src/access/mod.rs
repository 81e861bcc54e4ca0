//! Statements about access: who there is, what they may do, and which rows and values they see.
//!
//! ```text
//! CREATE ROLE [IF NOT EXISTS] r                 DROP ROLE [IF EXISTS] r
//! CREATE USER [IF NOT EXISTS] u [PASSWORD 'p'] [ADMIN | NOADMIN] [SET name = 'value', …] [RESET name, …]
//! ALTER USER u [the same]                       DROP USER [IF EXISTS] u
//! GRANT what ON [TABLE | SCHEMA | CATALOG | MODEL] o TO [ROLE | USER] r, … [WITH GRANT OPTION]
//! REVOKE [GRANT OPTION FOR] what ON … FROM r, … [CASCADE | RESTRICT]
//! ALTER TABLE | VIEW | MATERIALIZED VIEW | SCHEMA | CATALOG | MODEL [IF EXISTS] o OWNER TO r
//! GRANT r, … TO s, …                            REVOKE r, … FROM s, …
//! ALTER DEFAULT PRIVILEGES [FOR u, …] [IN SCHEMA s, …] GRANT what ON TABLES TO r, … | REVOKE what ON TABLES FROM r, …
//! CREATE ROW POLICY p ON t [FOR r, …] USING (condition)                 DROP ROW POLICY [IF EXISTS] p ON t
//! CREATE TOKEN t [FOR u] [EXPIRES '30 days' | EXPIRES NEVER]           DROP TOKEN [IF EXISTS] t [FOR u]
//! CREATE MASK m ON t (column) [FOR r, …] USING (mask)                   DROP MASK [IF EXISTS] m ON t
//! ```
//!
//! Who may say it, and what it then means, is not decided here.

mod read;

use bowshot_api::Secret;
use sqlparser::ast::{Expr, ObjectName};
use std::time::Duration;

pub(crate) use read::{begins, read};

/// See the module. Names of roles and users are as written where they are quoted, else in lower case.
#[derive(Debug, Clone, PartialEq)]
pub enum AccessStatement {
    /// `CREATE ROLE`
    CreateRole { name: String, if_not_exists: bool },
    /// `DROP ROLE`, `DROP USER`
    DropGrantee { user: bool, name: String, if_exists: bool },
    /// `CREATE USER`, `ALTER USER`
    User {
        name: String,
        /// What becomes of one that is there, or is not.
        change: UserChange,
        password: Option<Secret>,
        /// Whether the user may do everything.
        admin: Option<bool>,
        /// Attributes that are set, and those that are taken away.
        attributes: Vec<(String, Option<String>)>,
    },
    /// `GRANT … ON …`, `REVOKE … ON …`
    Rights {
        give: bool,
        privileges: Vec<(Privilege, Vec<String>)>,
        object: Object,
        grantees: Vec<String>,
        /// Whether they may be handed on (`WITH GRANT OPTION`); for REVOKE, whether that alone is taken (`GRANT OPTION FOR`).
        option: bool,
        /// Whether what was given by virtue of a right goes with it.
        cascade: bool,
    },
    /// `ALTER … OWNER TO`
    Owner { object: Object, owner: String, if_exists: bool },
    /// `ALTER DEFAULT PRIVILEGES`
    DefaultRights {
        give: bool,
        /// What, on tables that are made later.
        privileges: Vec<Privilege>,
        /// Of those who make them; of who says it, if there are none.
        users: Vec<String>,
        schemas: Vec<ObjectName>,
        grantees: Vec<String>,
    },
    /// `GRANT role TO …`, `REVOKE role FROM …`
    Membership { give: bool, roles: Vec<String>, members: Vec<String> },
    /// `CREATE TOKEN`
    CreateToken {
        name: String,
        /// Whose; of who says it, if it is not said.
        user: Option<String>,
        expires: Expiry,
    },
    /// `DROP TOKEN`
    DropToken { name: String, user: Option<String>, if_exists: bool },
    /// `CREATE ROW POLICY`, `CREATE MASK`
    CreatePolicy {
        name: String,
        table: ObjectName,
        /// The column of a mask; `None` for a row policy.
        column: Option<String>,
        /// For whom; empty: everybody.
        roles: Vec<String>,
        using: Box<Expr>,
    },
    /// `DROP ROW POLICY`, `DROP MASK`
    DropPolicy { mask: bool, name: String, table: ObjectName, if_exists: bool },
}

/// How long a token is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// As long as is usual.
    Usual,
    /// Until it is dropped.
    Never,
    /// For so long.
    After(Duration),
}

/// How a statement finds a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChange {
    /// `CREATE USER`
    Create,
    /// `CREATE USER IF NOT EXISTS`
    CreateIfMissing,
    /// `ALTER USER`
    Alter,
}

bowshot_api::named! {
    /// What somebody may do with something.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Privilege: as_str {
        /// See it at all, though nothing in it.
        Usage = "USAGE",
        /// Read rows.
        Select = "SELECT",
        /// Add rows.
        Insert = "INSERT",
        /// Change rows.
        Update = "UPDATE",
        /// Take rows out.
        Delete = "DELETE",
        /// Make things in it.
        Create = "CREATE",
        /// All that its owner may do: change and drop it, and say who may do what with it.
        Own = "OWN",
    }
}

/// What rights are about.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    Table(ObjectName),
    /// A schema, with all tables in it.
    Schema(ObjectName),
    /// A catalog, with all schemas in it.
    Catalog(ObjectName),
    /// A model. What may be read of a table, may be asked of it.
    Model(ObjectName),
}
