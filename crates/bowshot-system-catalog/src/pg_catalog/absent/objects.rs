//! Things of PostgreSQL's that there are none of here: rules, policies, triggers of events, what depends on what.

use crate::lazy_table::{Defined, columns};
use crate::pg_catalog::absent::empty;

pub(crate) static TABLES: &[Defined] = &[
    empty(
        "pg_aggregate",
        columns![
            aggfnoid Text, aggkind Text, aggnumdirectargs Short, aggtransfn Text, aggfinalfn Text,
            aggcombinefn Text, aggsortop Long, aggtranstype Long, agginitval Text
        ],
    ),
    empty(
        "pg_auth_members",
        columns![
            oid Long, roleid Long, member Long, grantor Long, admin_option Bool, inherit_option Bool,
            set_option Bool
        ],
    ),
    empty("pg_db_role_setting", columns![setdatabase Long, setrole Long, setconfig Texts]),
    empty(
        "pg_default_acl",
        columns![oid Long, defaclrole Long, defaclnamespace Long, defaclobjtype Text, defaclacl Texts],
    ),
    empty(
        "pg_depend",
        columns![
            classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long, refobjsubid Int,
            deptype Text
        ],
    ),
    empty(
        "pg_event_trigger",
        columns![
            oid Long, evtname Text, evtevent Text, evtowner Long, evtfoid Long, evtenabled Text,
            evttags Texts
        ],
    ),
    empty(
        "pg_init_privs",
        columns![objoid Long, classoid Long, objsubid Int, privtype Text, initprivs Texts],
    ),
    empty("pg_largeobject", columns![loid Long, pageno Int, data Text]),
    empty("pg_largeobject_metadata", columns![oid Long, lomowner Long, lomacl Texts]),
    empty(
        "pg_partitioned_table",
        columns![
            partrelid Long, partstrat Text, partnatts Short, partdefid Long, partattrs Shorts,
            partclass Longs, partcollation Longs, partexprs Text
        ],
    ),
    empty(
        "pg_policies",
        columns![
            schemaname Text, tablename Text, policyname Text, permissive Text, roles Texts, cmd Text,
            qual Text, with_check Text
        ],
    ),
    empty(
        "pg_policy",
        columns![
            oid Long, polname Text, polrelid Long, polcmd Text, polpermissive Bool, polroles Longs,
            polqual Text, polwithcheck Text
        ],
    ),
    empty(
        "pg_range",
        columns![
            rngtypid Long, rngsubtype Long, rngmultitypid Long, rngcollation Long, rngsubopc Long,
            rngcanonical Text, rngsubdiff Text
        ],
    ),
    empty(
        "pg_rewrite",
        columns![
            oid Long, rulename Text, ev_class Long, ev_type Text, ev_enabled Text, is_instead Bool,
            ev_qual Text, ev_action Text
        ],
    ),
    empty("pg_rules", columns![schemaname Text, tablename Text, rulename Text, definition Text]),
    empty("pg_seclabel", columns![objoid Long, classoid Long, objsubid Int, provider Text, label Text]),
    empty(
        "pg_seclabels",
        columns![
            objoid Long, classoid Long, objsubid Int, objtype Text, objnamespace Long, objname Text,
            provider Text, label Text
        ],
    ),
    empty(
        "pg_sequence",
        columns![
            seqrelid Long, seqtypid Long, seqstart Long, seqincrement Long, seqmax Long, seqmin Long,
            seqcache Long, seqcycle Bool
        ],
    ),
    empty(
        "pg_shdepend",
        columns![
            dbid Long, classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long, deptype Text
        ],
    ),
    empty("pg_shdescription", columns![objoid Long, classoid Long, description Text]),
];
