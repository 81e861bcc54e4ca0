//! `tables`, `views`, `schemata` and the small ones.

use crate::CatalogView;
use crate::information_schema::columns::comment;
use crate::lazy_table::Make::Now;
use crate::lazy_table::{Cell, Defined, Rows, cells, replace, tables};
use crate::listing::{About, Listed, What};

pub(crate) static TABLES: &[Defined] = tables! {
    tables: table_catalog Text, table_schema Text, table_name Text, table_type Text,
        self_referencing_column_name Text, reference_generation Text, user_defined_type_catalog Text,
        user_defined_type_schema Text, user_defined_type_name Text, is_insertable_into Text, is_typed Text,
        commit_action Text, table_comment Text,
        // MySQL's: what the statement that made the table says beside its columns.
        create_options Text, engine Text, version Count, row_format Text, table_rows Count,
        avg_row_length Count, data_length Count, max_data_length Count, index_length Count, data_free Count,
        auto_increment Count, create_time Text, update_time Text, check_time Text, table_collation Text,
        checksum Count => Now(tables);
    views: table_catalog Text, table_schema Text, table_name Text, view_definition Text, check_option Text,
        is_updatable Text, is_insertable_into Text,
        // MySQL's, which dumps ask for.
        definer Text, security_type Text, character_set_client Text, collation_connection Text
        => Now(views);
    schemata: catalog_name Text, schema_name Text, schema_owner Text, default_character_set_catalog Text,
        default_character_set_schema Text, default_character_set_name Text, sql_path Text,
        // MySQL's: clients compare with it, as texts are compared anyway.
        default_collation_name Text => Now(schemata);

    character_sets: character_set_catalog Text, character_set_schema Text, character_set_name Text,
        character_repertoire Text, form_of_use Text, default_collate_name Text, maxlen Int
    => Now(|_, _, rows| {
        rows.add(cells![Cell::Null, Cell::Null, "UTF8", "UCS", "UTF8", "C", 4]);
    });

    collations: collation_catalog Text, collation_schema Text, collation_name Text, pad_attribute Text
    => Now(|_, _, rows| {
        rows.add(cells![Cell::Null, "pg_catalog", "C", "NO PAD"]);
    });

    information_schema_catalog_name: catalog_name Text
    => Now(|visible, _, rows| {
        rows.add([visible.default_names().0.into()]);
    });

    enabled_roles: role_name Text
    => Now(|visible, _, rows| {
        rows.add([Cell::from(&visible.principal.name)]);
    });
};

/// Catalog, schema and name, as most tables begin with them.
pub(crate) fn full(listed: &Listed) -> [Cell; 3] {
    cells![&listed.name.catalog, &listed.name.schema, &listed.name.name]
}

pub(crate) fn yes(truth: bool) -> Cell {
    if truth { "YES" } else { "NO" }.into()
}

fn tables(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        let kind = match &listed.what {
            _ if listed.is_view() => "VIEW",
            _ if listed.materialized().is_some() => "MATERIALIZED VIEW",
            _ if listed.is_temporary() => "LOCAL TEMPORARY",
            _ => "BASE TABLE",
        };
        let own = matches!(listed.what, What::Table(_) | What::Part(_));
        let commit = (listed.is_temporary() && own).then_some("PRESERVE");
        let cells = full(&listed).into_iter();
        let nothing = std::iter::repeat_n(Cell::Null, 5);
        let comment = comment(listed.comment(), visible.flavour());
        let engine = (kind != "VIEW").then_some("Bowshot");
        let rest = cells![yes(own), "NO", commit, comment, listed.clauses(), engine];
        rows.add(cells.chain([kind.into()]).chain(nothing).chain(rest).chain(sizes(&listed)));
    }
}

/// From `version` to `table_collation`: what is known of the sizes of tables of our own. Who sees a part of one is told none.
fn sizes(listed: &Listed) -> [Cell; 13] {
    let mut cells = [const { Cell::Null }; 13];
    let What::Table(table) = &listed.what else { return cells };
    let average = table.bytes().checked_div(table.rows()).unwrap_or(0);
    let sizes = [(2, table.rows()), (3, average), (4, table.bytes()), (6, 0), (7, 0)];
    replace(&mut cells, sizes.map(|(place, number)| (place, Cell::Number(number.cast_signed()))));
    replace(&mut cells, [(12, "utf8mb4_bin".into())]);
    cells
}

fn views(visible: &CatalogView, about: &About, rows: &mut Rows) {
    for listed in visible.listed(about) {
        let Some(view) = listed.view() else { continue };
        let rest = cells![&view.sql, "NONE", yes(false), yes(false)];
        let of_mysql = ["root@%", "INVOKER", "utf8mb4", "utf8mb4_bin"].map(Cell::from);
        rows.add(full(&listed).into_iter().chain(rest).chain(of_mysql));
    }
}

fn schemata(visible: &CatalogView, _: &About, rows: &mut Rows) {
    for (catalog, schema) in visible.all_schemas() {
        let owner = &visible.principal.name;
        rows.add(cells![catalog, schema, owner, Cell::Null, Cell::Null, "UTF8", Cell::Null, "utf8mb4_bin"]);
    }
}
