"""What the server does of what the suite asks for. `closed` is not there, each with the reason."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

OPEN = """
    and_or_operators_parens array_type autocommit binary_comparisons binary_literals bound_limit_offset
    comment_reflection comment_reflection_full_unicode compat_literal_values create_table ctes ctes_on_dml
    ctes_with_update_delete ctes_with_values cursor_works_post_insert date datetime datetime_historic
    datetime_literals datetime_microseconds datetime_timezone delete_from delete_returning drop_table
    duplicate_key_raises_integrity_error except_ implicitly_named_constraints independent_connections
    inline_check_constraint_reflection insert_executemany_returning insert_from_select insert_order_dicts
    insert_returning intersect is_distinct_from isolation_level multivalues_inserts named_constraints offset
    order_by_col_from_union parens_in_union_contained_select_w_limit_offset
    parens_in_union_contained_select_wo_limit_offset precision_generic_float_type precision_numerics_general
    primary_key_constraint_reflection reflects_pk_names regexp_match sane_rowcount schema_create_delete schema_reflection
    schemas sql_expression_limit_offset standalone_null_binds_whereclause table_reflection
    table_value_constructor temp_table_names temp_table_reflection temporary_tables text_type time
    time_microseconds timestamp_microseconds unbounded_varchar unicode_data unicode_ddl union_all
    unique_constraint_reflection update_from update_returning uuid_data_type views window_functions
"""
CLOSED = """
    autoincrement_insert_alternative autoincrement_without_sequence computed_columns computed_columns_stored
    computed_columns_virtual dbapi_lastrowid deferrable_fks empty_inserts emulated_lastrowid
    fk_constraint_option_reflection foreign_key_constraint_option_reflection_ondelete
    foreign_key_constraint_reflection foreign_keys identity_columns implements_get_lastrowid index_reflection
    indexes_with_ascdesc json_type lastrowid nullsordering on_update_cascade ordered_aggregates
    percent_schema_names recursive_fk_cascade reflect_indexes_with_expressions reflects_indexes_w_sorting
    self_referential_foreign_keys sequences supports_distinct_on supports_lastrowid tablesample
    unique_index_reflect_as_unique_constraints views_foreign_keys
"""


class Requirements(SuiteRequirements):
    pass


for _name in OPEN.split():
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
for _name in CLOSED.split():
    setattr(Requirements, _name, property(lambda self: exclusions.closed()))
