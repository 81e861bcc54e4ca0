{#- For `dbt docs generate`. -#}

{% macro bowshot__catalog_sql(information_schema, condition) -%}
  select
    t.table_catalog as table_database,
    t.table_schema as table_schema,
    t.table_name as table_name,
    case when t.table_type like '%VIEW' then 'VIEW' else t.table_type end as table_type,
    t.table_comment as table_comment,
    c.column_name as column_name,
    c.ordinal_position as column_index,
    c.data_type as column_type,
    nullif(c.column_comment, '') as column_comment,
    cast(null as varchar) as table_owner
  from information_schema.tables t
  join information_schema.columns c
    on c.table_catalog = t.table_catalog and c.table_schema = t.table_schema and c.table_name = t.table_name
  where lower(t.table_catalog) = lower('{{ information_schema.database }}') and ({{ condition }})
  order by t.table_schema, t.table_name, c.ordinal_position
{%- endmacro %}

{% macro bowshot__get_catalog(information_schema, schemas) -%}
  {%- set conditions = [] -%}
  {%- for schema in schemas -%}
    {%- do conditions.append("lower(t.table_schema) = lower('" ~ schema ~ "')") -%}
  {%- endfor -%}
  {{ return(run_query(bowshot__catalog_sql(information_schema, conditions | join(' or ') or 'false'))) }}
{%- endmacro %}

{% macro bowshot__get_catalog_relations(information_schema, relations) -%}
  {%- set conditions = [] -%}
  {%- for relation in relations -%}
    {%- do conditions.append("(lower(t.table_schema) = lower('" ~ relation.schema ~ "')"
      ~ (" and lower(t.table_name) = lower('" ~ relation.identifier ~ "')" if relation.identifier else "") ~ ")") -%}
  {%- endfor -%}
  {{ return(run_query(bowshot__catalog_sql(information_schema, conditions | join(' or ') or 'false'))) }}
{%- endmacro %}
