//! Things of PostgreSQL's that there are none of here: rules, policies, triggers of events, what depends on what.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
    pg_aggregate: aggfnoid Text, aggkind Text, aggnumdirectargs Short, aggtransfn Text, aggfinalfn Text,
        aggcombinefn Text, aggsortop Long, aggtranstype Long, agginitval Text;
    pg_auth_members: oid Long, roleid Long, member Long, grantor Long, admin_option Bool, inherit_option Bool,
        set_option Bool;
    pg_available_extensions: name Text, default_version Text, installed_version Text, comment Text;
    pg_db_role_setting: setdatabase Long, setrole Long, setconfig Texts;
    pg_default_acl: oid Long, defaclrole Long, defaclnamespace Long, defaclobjtype Text, defaclacl Texts;
    pg_depend: classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long, refobjsubid Int,
        deptype Text;
    pg_event_trigger: oid Long, evtname Text, evtevent Text, evtowner Long, evtfoid Long, evtenabled Text,
        evttags Texts;
    pg_extension: oid Long, extname Text, extowner Long, extnamespace Long, extrelocatable Bool,
        extversion Text, extconfig Longs, extcondition Texts;
    pg_inherits: inhrelid Long, inhparent Long, inhseqno Int, inhdetachpending Bool;
    pg_init_privs: objoid Long, classoid Long, objsubid Int, privtype Text, initprivs Texts;
    pg_largeobject: loid Long, pageno Int, data Text;
    pg_largeobject_metadata: oid Long, lomowner Long, lomacl Texts;
    pg_partitioned_table: partrelid Long, partstrat Text, partnatts Short, partdefid Long, partattrs Shorts,
        partclass Longs, partcollation Longs, partexprs Text;
    pg_policies: schemaname Text, tablename Text, policyname Text, permissive Text, roles Texts, cmd Text,
        qual Text, with_check Text;
    pg_policy: oid Long, polname Text, polrelid Long, polcmd Text, polpermissive Bool, polroles Longs,
        polqual Text, polwithcheck Text;
    pg_range: rngtypid Long, rngsubtype Long, rngmultitypid Long, rngcollation Long, rngsubopc Long,
        rngcanonical Text, rngsubdiff Text;
    pg_rewrite: oid Long, rulename Text, ev_class Long, ev_type Text, ev_enabled Text, is_instead Bool,
        ev_qual Text, ev_action Text;
    pg_rules: schemaname Text, tablename Text, rulename Text, definition Text;
    pg_seclabel: objoid Long, classoid Long, objsubid Int, provider Text, label Text;
    pg_seclabels: objoid Long, classoid Long, objsubid Int, objtype Text, objnamespace Long, objname Text,
        provider Text, label Text;
    pg_shdepend: dbid Long, classid Long, objid Long, objsubid Int, refclassid Long, refobjid Long,
        deptype Text;
    pg_shdescription: objoid Long, classoid Long, description Text;
    pg_trigger: oid Long, tgrelid Long, tgname Text, tgfoid Long, tgtype Short, tgenabled Text,
        tgisinternal Bool, tgparentid Long, tgconstrrelid Long, tgconstrindid Long, tgconstraint Long,
        tgdeferrable Bool, tginitdeferred Bool, tgnargs Short, tgattr Shorts, tgargs Text, tgqual Text,
        tgoldtable Text, tgnewtable Text;
};
