//! Functions that give rows and are asked by clients of PostgreSQL: its keywords, and what could be installed.

use crate::lazy_table::Make::Now;
use crate::lazy_table::{Defined, cells, tables};
use datafusion::sql::sqlparser::keywords::{
    ALL_KEYWORDS, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS,
};

pub(crate) static FUNCTIONS: &[Defined] = tables! {
    pg_get_keywords: word Text, catcode Text, barelabel Bool, catdesc Text, baredesc Text
    => Now(|_, _, rows| {
        let reserved = RESERVED_FOR_COLUMN_ALIAS.iter().chain(RESERVED_FOR_TABLE_ALIAS);
        let reserved: Vec<String> = reserved.map(|word| format!("{word:?}").to_ascii_lowercase()).collect();
        for word in ALL_KEYWORDS {
            let word = word.to_ascii_lowercase();
            let is_reserved = reserved.contains(&word);
            let (code, told) = if is_reserved { ("R", "reserved") } else { ("U", "unreserved") };
            let (bare, label) =
                if is_reserved { (false, "requires AS") } else { (true, "can be bare label") };
            rows.add(cells![word, code, bare, told, label]);
        }
    });

    // The function of that name does not know what is installed.
    pg_available_extensions: name Text, default_version Text, comment Text;
    pg_available_extension_versions: name Text, version Text, superuser Bool, trusted Bool,
        relocatable Bool, schema Text, requires Texts, comment Text;
};
