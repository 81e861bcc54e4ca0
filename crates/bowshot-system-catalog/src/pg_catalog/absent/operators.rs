//! Operators, casts and what orders them. They are built in, and named nowhere.

use crate::lazy_table::{Defined, tables};

pub(crate) static TABLES: &[Defined] = tables! {
    pg_amop: oid Long, amopfamily Long, amoplefttype Long, amoprighttype Long, amopstrategy Short,
        amoppurpose Text, amopopr Long, amopmethod Long, amopsortfamily Long;
    pg_amproc: oid Long, amprocfamily Long, amproclefttype Long, amprocrighttype Long, amprocnum Short,
        amproc Text;
    pg_cast: oid Long, castsource Long, casttarget Long, castfunc Long, castcontext Text, castmethod Text;
    pg_conversion: oid Long, conname Text, connamespace Long, conowner Long, conforencoding Int,
        contoencoding Int, conproc Text, condefault Bool;
    pg_opclass: oid Long, opcmethod Long, opcname Text, opcnamespace Long, opcowner Long, opcfamily Long,
        opcintype Long, opcdefault Bool, opckeytype Long;
    pg_operator: oid Long, oprname Text, oprnamespace Long, oprowner Long, oprkind Text, oprcanmerge Bool,
        oprcanhash Bool, oprleft Long, oprright Long, oprresult Long, oprcom Long, oprnegate Long,
        oprcode Text, oprrest Text, oprjoin Text;
    pg_opfamily: oid Long, opfmethod Long, opfname Text, opfnamespace Long, opfowner Long;
    pg_transform: oid Long, trftype Long, trflang Long, trffromsql Long, trftosql Long;
    pg_ts_config: oid Long, cfgname Text, cfgnamespace Long, cfgowner Long, cfgparser Long;
    pg_ts_config_map: mapcfg Long, maptokentype Int, mapseqno Int, mapdict Long;
    pg_ts_dict: oid Long, dictname Text, dictnamespace Long, dictowner Long, dicttemplate Long,
        dictinitoption Text;
    pg_ts_parser: oid Long, prsname Text, prsnamespace Long, prsstart Text, prstoken Text, prsend Text,
        prsheadline Text, prslextype Text;
    pg_ts_template: oid Long, tmplname Text, tmplnamespace Long, tmplinit Text, tmpllexize Text;
};
