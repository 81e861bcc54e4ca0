{#- Functions that dbt names in its own way. -#}

{% macro bowshot__dateadd(datepart, interval, from_date_or_timestamp) -%}
  cast({{ from_date_or_timestamp }} as timestamp) + ({{ interval }}) * interval '1 {{ datepart }}'
{%- endmacro %}

{% macro bowshot__datediff(first_date, second_date, datepart) -%}
  {%- set first = 'cast(' ~ first_date ~ ' as timestamp)' -%}
  {%- set second = 'cast(' ~ second_date ~ ' as timestamp)' -%}
  {%- if datepart == 'week' -%}
    {#- Mondays that lie between them. -#}
    (datediff('day', date_trunc('week', {{ first }}), date_trunc('week', {{ second }})) / 7)
  {%- else -%}
    datediff('{{ datepart }}', {{ first }}, {{ second }})
  {%- endif -%}
{%- endmacro %}

{% macro bowshot__last_day(date, datepart) -%}
  cast({{ dbt.dateadd('day', '-1', dbt.dateadd(datepart, '1', dbt.date_trunc(datepart, date))) }} as date)
{%- endmacro %}

{% macro bowshot__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if limit_num -%}
    array_to_string(array_slice(array_agg({{ measure }} {{ order_by_clause or '' }}), 1, {{ limit_num }}), {{ delimiter_text }})
  {%- else -%}
    string_agg({{ measure }}, {{ delimiter_text }} {{ order_by_clause or '' }})
  {%- endif -%}
{%- endmacro %}

{% macro bowshot__any_value(expression) -%}
  min({{ expression }})
{%- endmacro %}

{% macro bowshot__safe_cast(field, type) -%}
  try_cast({{ field }} as {{ type }})
{%- endmacro %}
