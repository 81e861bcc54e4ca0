//! Operators, casts and what orders them. They are built in, and named nowhere.

use crate::lazy_table::{Defined, columns};
use crate::pg_catalog::absent::empty;

pub(crate) static TABLES: &[Defined] = &[
    empty(
        "pg_amop",
        columns![
            oid Long, amopfamily Long, amoplefttype Long, amoprighttype Long, amopstrategy Short,
            amoppurpose Text, amopopr Long, amopmethod Long, amopsortfamily Long
        ],
    ),
    empty(
        "pg_amproc",
        columns![
            oid Long, amprocfamily Long, amproclefttype Long, amprocrighttype Long, amprocnum Short,
            amproc Text
        ],
    ),
    empty(
        "pg_cast",
        columns![
            oid Long, castsource Long, casttarget Long, castfunc Long, castcontext Text, castmethod Text
        ],
    ),
    empty(
        "pg_conversion",
        columns![
            oid Long, conname Text, connamespace Long, conowner Long, conforencoding Int, contoencoding Int,
            conproc Text, condefault Bool
        ],
    ),
    empty(
        "pg_opclass",
        columns![
            oid Long, opcmethod Long, opcname Text, opcnamespace Long, opcowner Long, opcfamily Long,
            opcintype Long, opcdefault Bool, opckeytype Long
        ],
    ),
    empty(
        "pg_operator",
        columns![
            oid Long, oprname Text, oprnamespace Long, oprowner Long, oprkind Text, oprcanmerge Bool,
            oprcanhash Bool, oprleft Long, oprright Long, oprresult Long, oprcom Long, oprnegate Long,
            oprcode Text, oprrest Text, oprjoin Text
        ],
    ),
    empty("pg_opfamily", columns![oid Long, opfmethod Long, opfname Text, opfnamespace Long, opfowner Long]),
    empty("pg_transform", columns![oid Long, trftype Long, trflang Long, trffromsql Long, trftosql Long]),
    empty("pg_ts_config", columns![oid Long, cfgname Text, cfgnamespace Long, cfgowner Long, cfgparser Long]),
    empty("pg_ts_config_map", columns![mapcfg Long, maptokentype Int, mapseqno Int, mapdict Long]),
    empty(
        "pg_ts_dict",
        columns![
            oid Long, dictname Text, dictnamespace Long, dictowner Long, dicttemplate Long,
            dictinitoption Text
        ],
    ),
    empty(
        "pg_ts_parser",
        columns![
            oid Long, prsname Text, prsnamespace Long, prsstart Text, prstoken Text, prsend Text,
            prsheadline Text, prslextype Text
        ],
    ),
    empty(
        "pg_ts_template",
        columns![oid Long, tmplname Text, tmplnamespace Long, tmplinit Text, tmpllexize Text],
    ),
];
