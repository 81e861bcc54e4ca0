{#- What there is. -#}

{% macro bowshot__list_schemas(database) -%}
  {% call statement('list_schemas', fetch_result=True, auto_begin=False) -%}
    select distinct schema_name from information_schema.schemata
    where lower(catalog_name) = lower('{{ database }}')
  {%- endcall %}
  {{ return(load_result('list_schemas').table) }}
{%- endmacro %}

{% macro bowshot__check_schema_exists(information_schema, schema) -%}
  {% call statement('check_schema_exists', fetch_result=True, auto_begin=False) -%}
    select count(*) from information_schema.schemata
    where lower(catalog_name) = lower('{{ information_schema.database }}') and schema_name = '{{ schema }}'
  {%- endcall %}
  {{ return(load_result('check_schema_exists').table) }}
{%- endmacro %}

{% macro bowshot__list_relations_without_caching(schema_relation) -%}
  {% call statement('list_relations_without_caching', fetch_result=True, auto_begin=False) -%}
    select table_catalog as "database", table_name as name, table_schema as "schema",
      case when table_type like '%VIEW' then 'view' else 'table' end as type
    from information_schema.tables
    where lower(table_catalog) = lower('{{ schema_relation.database }}')
      and lower(table_schema) = lower('{{ schema_relation.schema }}')
  {%- endcall %}
  {{ return(load_result('list_relations_without_caching').table) }}
{%- endmacro %}

{% macro bowshot__get_columns_in_relation(relation) -%}
  {% call statement('get_columns_in_relation', fetch_result=True, auto_begin=False) -%}
    select column_name, lower(data_type) as data_type, character_maximum_length, numeric_precision, numeric_scale
    from information_schema.columns
    where table_name = '{{ relation.identifier }}'
      {%- if relation.schema %} and table_schema = '{{ relation.schema }}'{% endif %}
      {%- if relation.database %} and lower(table_catalog) = lower('{{ relation.database }}'){% endif %}
    order by ordinal_position
  {%- endcall %}
  {{ return(sql_convert_columns_in_relation(load_result('get_columns_in_relation').table)) }}
{%- endmacro %}

{% macro bowshot__information_schema_name(database) -%}
  information_schema
{%- endmacro %}

{% macro bowshot__get_relation_last_modified(information_schema, relations) -%}
  {% call statement('last_modified', fetch_result=True, auto_begin=False) -%}
    select table_schema as "schema", table_name as identifier, max(committed_at) as last_modified,
      now() as snapshotted_at
    from bowshot.system.table_history
    where {% for relation in relations -%}
      (table_schema = '{{ relation.schema }}' and table_name = '{{ relation.identifier }}')
      {%- if not loop.last %} or {% endif %}
    {%- endfor %}
    group by table_schema, table_name
  {%- endcall %}
  {{ return(load_result('last_modified')) }}
{%- endmacro %}

{#- Making and taking away. -#}

{% macro bowshot__create_table_as(temporary, relation, sql) -%}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  {%- set contract = config.get('contract') -%}
  {%- if contract.enforced and not temporary %}
  {{ get_assert_columns_equivalent(sql) }}
  create or replace table {{ relation }} {{ get_table_columns_and_constraints() }};
  insert into {{ relation }} ({{ bowshot__get_column_names() }}) {{ get_select_subquery(sql) }}
  {%- elif temporary %}
  create or replace temporary table {{ relation }} as (
    {{ sql }}
  )
  {%- else %}
  create or replace table {{ relation }} as (
    {{ sql }}
  )
  {%- endif %}
{%- endmacro %}

{% macro bowshot__get_column_names() -%}
  {%- for name in model['columns'] -%}
    {%- set column = model['columns'][name] -%}
    {{ adapter.quote(column['name']) if column.get('quote') else column['name'] }}{% if not loop.last %}, {% endif %}
  {%- endfor -%}
{%- endmacro %}

{% macro bowshot__create_view_as(relation, sql) -%}
  {%- set sql_header = config.get('sql_header', none) -%}
  {{ sql_header if sql_header is not none }}
  {%- if config.get('contract').enforced %}
  {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  create or replace view {{ relation }} as (
    {{ sql }}
  )
{%- endmacro %}

{% macro bowshot__make_temp_relation(base_relation, suffix) -%}
  {%- set name = base_relation.identifier ~ suffix -%}
  {{ return(base_relation.incorporate(path={'database': 'temp', 'schema': 'main', 'identifier': name}, type='table')) }}
{%- endmacro %}

{% macro bowshot__make_backup_relation(base_relation, backup_relation_type, suffix) -%}
  {{ return(base_relation.incorporate(path={'identifier': base_relation.identifier ~ suffix}, type=backup_relation_type)) }}
{%- endmacro %}

{% macro bowshot__rename_relation(from_relation, to_relation) -%}
  {#- A view keeps no rows: it is made again under its other name. -#}
  {%- if from_relation.is_view -%}
    {% call statement('rename_view', fetch_result=True) -%}
      select view_definition from information_schema.views
      where table_name = '{{ from_relation.identifier }}' and table_schema = '{{ from_relation.schema }}'
    {%- endcall %}
    {%- set text = load_result('rename_view').table.columns[0].values()[0] -%}
    {% call statement('rename_relation') -%}
      create or replace view {{ to_relation }} as {{ text }}; drop view {{ from_relation }}
    {%- endcall %}
  {%- else -%}
    {% call statement('rename_relation') -%}
      alter table {{ from_relation }} rename to {{ to_relation }}
    {%- endcall %}
  {%- endif -%}
{%- endmacro %}

{% macro bowshot__alter_column_type(relation, column_name, new_column_type) -%}
  {% call statement('alter_column_type') -%}
    alter table {{ relation }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall %}
{%- endmacro %}

{% macro bowshot__alter_relation_comment(relation, comment) -%}
  comment on {{ relation.type }} {{ relation }} is '{{ comment | replace("'", "''") }}'
{%- endmacro %}

{% macro bowshot__alter_column_comment(relation, column_dict) -%}
  {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
  {%- for name in column_dict if name in existing %}
  comment on column {{ relation }}.{{ adapter.quote(name) if column_dict[name]['quote'] else name }}
    is '{{ column_dict[name]['description'] | replace("'", "''") }}';
  {%- endfor %}
{%- endmacro %}

{#- Seeds. -#}

{% macro bowshot__load_csv_rows(model, agate_table) -%}
  {% do adapter.load_rows(this, agate_table) %}
  {{ return('-- ' ~ agate_table.rows | length ~ ' rows were ingested') }}
{%- endmacro %}

{#- Times. -#}

{% macro bowshot__current_timestamp() -%}
  now()
{%- endmacro %}

{% macro bowshot__snapshot_string_as_time(timestamp) -%}
  {{ return("cast('" ~ timestamp ~ "' as timestamp)") }}
{%- endmacro %}

{% macro bowshot__snapshot_get_time() -%}
  cast({{ current_timestamp() }} as timestamp)
{%- endmacro %}

{#- The server has no grants: who connects may do everything. -#}

{% macro bowshot__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {{ exceptions.raise_compiler_error('bowshot has no grants; the operator says who may connect') }}
  {%- endif -%}
{%- endmacro %}
