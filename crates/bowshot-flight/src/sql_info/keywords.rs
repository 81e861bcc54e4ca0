//! Keywords and functions of the SQL dialect, sorted.

/// Keywords of the statements and expressions that the server understands.
pub(crate) const KEYWORDS: &[&str] = bowshot_api::words! {
    ALL ALTER ANALYZE AND ANTI ANY ARRAY AS ASC ASOF BEGIN BETWEEN BY CASE CAST CATALOG CHECK COLLATE
    COLUMN COMMIT COPY CREATE CROSS CUBE CURRENT DATABASE DEALLOCATE DEFAULT DELETE DESC DESCRIBE DISTINCT
    DROP ELSE END ESCAPE EXCEPT EXCLUDE EXECUTE EXISTS EXPLAIN EXTERNAL EXTRACT FALSE FETCH FILTER FIRST
    FOLLOWING FOR FROM FULL FUNCTION GLOBAL GROUP GROUPING HAVING IF IGNORE ILIKE IN INNER INSERT
    INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT LOCATION MAP MATERIALIZED MINUS NATURAL
    NOT NULL NULLS OFFSET ON OPTIONS OR ORDER OUTER OVER OVERLAY PARTITION PARTITIONED PIVOT POSITION
    PRECEDING PREPARE QUALIFY RANGE RECURSIVE REPLACE RESET RESPECT RETURNING RIGHT RLIKE ROLLBACK ROLLUP
    ROW ROWS SCHEMA SELECT SEMI SET SETS SHOW SIMILAR SORT START STORED STRUCT SUBSTRING TABLE TABLESAMPLE
    THEN TO TRIM TRUE TRUNCATE TRY_CAST UNBOUNDED UNION UNIQUE UNNEST UNPIVOT UPDATE USING VALUES VIEW
    WHEN WHERE WINDOW WITH WITHIN ZONE
};

pub(crate) const NUMERIC_FUNCTIONS: &[&str] = bowshot_api::words! {
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor gcd
    isnan iszero lcm ln log log10 log2 nanvl pi pow power radians random round signum sin sinh sqrt tan
    tanh trunc
};

pub(crate) const STRING_FUNCTIONS: &[&str] = bowshot_api::words! {
    ascii bit_length btrim char_length character_length chr concat concat_ws contains decode encode
    ends_with find_in_set initcap instr left length levenshtein lower lpad ltrim md5 octet_length overlay
    position regexp_count regexp_instr regexp_like regexp_match regexp_replace repeat replace reverse
    right rpad rtrim sha224 sha256 sha384 sha512 split_part starts_with strpos substr substr_index
    substring substring_index to_hex translate trim upper uuid
};

/// Functions over any type and about the server.
pub(crate) const SYSTEM_FUNCTIONS: &[&str] = bowshot_api::words! {
    arrow_cast arrow_typeof coalesce greatest least nullif nvl nvl2 version
};

/// Functions over dates and times.
pub(crate) const DATETIME_FUNCTIONS: &[&str] = bowshot_api::words! {
    current_date current_time current_timestamp date_bin date_format date_part date_trunc datepart
    datetrunc extract from_unixtime make_date make_time now to_char to_date to_local_time to_time
    to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds
    to_unixtime today
};
