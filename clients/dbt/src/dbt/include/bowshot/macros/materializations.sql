{#- Tables and views are replaced in place, in one transaction: nobody sees a moment without them. -#}

{% macro bowshot__make_way(existing, kind) -%}
  {%- if existing is not none and existing.type != kind -%}
    {{ adapter.drop_relation(existing) }}
  {%- endif -%}
{%- endmacro %}

{% materialization table, adapter='bowshot', supported_languages=['sql'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do bowshot__make_way(existing, 'table') %}
  {% call statement('main') -%}
    {{ get_create_table_as_sql(False, target, sql) }}
  {%- endcall %}
  {% do apply_grants(target, config.get('grants'), should_revoke=False) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{% materialization view, adapter='bowshot' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do bowshot__make_way(existing, 'view') %}
  {% call statement('main') -%}
    {{ get_create_view_as_sql(target, sql) }}
  {%- endcall %}
  {% do apply_grants(target, config.get('grants'), should_revoke=False) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{% macro bowshot__get_incremental_default_sql(arg_dict) -%}
  {%- if arg_dict['unique_key'] -%}
    {{ return(get_incremental_delete_insert_sql(arg_dict)) }}
  {%- else -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
{%- endmacro %}

{% macro bowshot__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set target = arg_dict['target_relation'] -%}
  {%- set columns = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set predicates = [] if arg_dict.get('incremental_predicates') is none else [] + arg_dict.get('incremental_predicates') -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do predicates.append(model.config.event_time ~ " >= cast('" ~ model.batch.event_time_start ~ "' as timestamp with time zone)") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do predicates.append(model.config.event_time ~ " < cast('" ~ model.batch.event_time_end ~ "' as timestamp with time zone)") -%}
  {%- endif %}
  delete from {{ target }} where {{ predicates | join(' and ') if predicates else 'true' }};
  insert into {{ target }} ({{ columns }}) (select {{ columns }} from {{ arg_dict['temp_relation'] }})
{%- endmacro %}

{#- Columns of a row that is inserted say that they are the source's. -#}
{% macro bowshot__source_columns(columns) -%}
  {%- for column in columns -%}
    DBT_INTERNAL_SOURCE.{{ column }}{% if not loop.last %}, {% endif %}
  {%- endfor -%}
{%- endmacro %}

{% macro bowshot__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set predicates = [] if incremental_predicates is none else [] + incremental_predicates -%}
  {%- set names = dest_columns | map(attribute='quoted') | list -%}
  {%- set updated = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns) -%}
  {%- set keys = [] if not unique_key else ([unique_key] if unique_key is string else unique_key) -%}
  {%- for key in keys -%}
    {%- do predicates.append('DBT_INTERNAL_SOURCE.' ~ key ~ ' = DBT_INTERNAL_DEST.' ~ key) -%}
  {%- endfor -%}
  {%- if not keys -%}{%- do predicates.append('false') -%}{%- endif %}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on ({{ predicates | join(') and (') }})
  {%- if keys %}
  when matched then update set
    {%- for column in updated %} {{ column }} = DBT_INTERNAL_SOURCE.{{ column }}{% if not loop.last %},{% endif %}{% endfor %}
  {%- endif %}
  when not matched then insert ({{ names | join(', ') }}) values ({{ bowshot__source_columns(names) }})
{%- endmacro %}

{% macro bowshot__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set columns = get_quoted_csv(dest_columns | map(attribute='name')) -%}
  {%- set keys = [] if not unique_key else ([unique_key] if unique_key is string else unique_key) -%}
  {%- if keys %}
  delete from {{ target }} as DBT_INTERNAL_DEST
  where exists (
    select 1 from {{ source }} as DBT_INTERNAL_SOURCE
    where {% for key in keys -%}
      DBT_INTERNAL_SOURCE.{{ key }} = DBT_INTERNAL_DEST.{{ key }}{% if not loop.last %} and {% endif %}
    {%- endfor %}
  )
  {%- for predicate in incremental_predicates or [] %} and {{ predicate }}{% endfor %};
  {%- endif %}
  insert into {{ target }} ({{ columns }}) (select {{ columns }} from {{ source }})
{%- endmacro %}

{% macro bowshot__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set valid_to = 'DBT_INTERNAL_DEST.' ~ columns.dbt_valid_to %}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.{{ columns.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ columns.dbt_scd_id }}
  when matched and ({{ valid_to }} is null
    {%- if config.get('dbt_valid_to_current') %} or {{ valid_to }} = {{ config.get('dbt_valid_to_current') }}{% endif %})
    and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
    then update set {{ columns.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ columns.dbt_valid_to }}
  when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
    then insert ({{ insert_cols | join(', ') }}) values ({{ bowshot__source_columns(insert_cols) }})
{%- endmacro %}

{% materialization incremental, adapter='bowshot' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set temp = make_temp_relation(target) -%}
  {%- set strategy = adapter.get_incremental_strategy_macro(context, config.get('incremental_strategy') or 'default') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set anew = existing is none or not existing.is_table or should_full_refresh() -%}
  {%- if anew -%}
    {% do bowshot__make_way(existing, 'table') %}
    {%- set build_sql = get_create_table_as_sql(False, target, sql) -%}
  {%- else -%}
    {% do run_query(get_create_table_as_sql(True, temp, sql)) %}
    {%- set contract = config.get('contract') -%}
    {%- if not contract or not contract.enforced -%}
      {% do adapter.expand_target_column_types(from_relation=temp, to_relation=target) %}
    {%- endif -%}
    {%- set dest_columns = process_schema_changes(on_schema_change, temp, existing)
      or adapter.get_columns_in_relation(existing) -%}
    {%- set build_sql = strategy({
      'target_relation': target, 'temp_relation': temp, 'unique_key': config.get('unique_key'),
      'dest_columns': dest_columns,
      'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none)
    }) -%}
  {%- endif -%}
  {% call statement('main') -%}
    {{ build_sql }}
  {%- endcall %}
  {%- if not anew -%}
    {% do adapter.drop_relation(temp) %}
  {%- endif -%}

  {% do apply_grants(target, config.get('grants'), should_revoke=False) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{%- endmaterialization %}
