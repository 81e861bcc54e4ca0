-- Statements that the fuzz run starts from, one a line, over `numbers` (id, value, ratio, flag, day) and `words` (id, word).
SELECT 1
SELECT id, value FROM numbers WHERE value > 10 ORDER BY id
SELECT count(*), sum(value), avg(ratio), min(day), max(day) FROM numbers
SELECT flag, count(*) FROM numbers GROUP BY flag HAVING count(*) > 1 ORDER BY flag DESC NULLS LAST
SELECT n.id, w.word FROM numbers n JOIN words w ON n.id = w.id WHERE w.word LIKE 'w%' LIMIT 5 OFFSET 2
SELECT n.id, w.word FROM numbers n LEFT JOIN words w USING (id) WHERE n.ratio BETWEEN 0.1 AND 0.5
SELECT * FROM numbers WHERE id IN (SELECT id FROM words WHERE length(word) > 3)
SELECT * FROM numbers n WHERE EXISTS (SELECT 1 FROM words w WHERE w.id = n.id AND w.word <> 'word7')
WITH big AS (SELECT * FROM numbers WHERE value > 100), small AS (SELECT * FROM numbers WHERE value < 5) SELECT * FROM big UNION ALL SELECT * FROM small
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20) SELECT sum(n) FROM t
SELECT id, row_number() OVER (PARTITION BY flag ORDER BY value) AS place, sum(value) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM numbers
SELECT CASE WHEN value % 2 = 0 THEN 'even' WHEN value % 3 = 0 THEN 'three' ELSE NULL END, CAST(value AS VARCHAR) FROM numbers
SELECT upper(word), substr(word, 2, 3), word || '!', replace(word, 'w', 'v'), strpos(word, 'o') FROM words
SELECT date_trunc('month', day), extract(year FROM day), day + INTERVAL '1 day' FROM numbers
SELECT [1, 2, 3], make_array(1, NULL), struct(1, 'a'), map(['k'], [1]), array_length([1, 2])
SELECT unnest([1, 2, 3]) AS x, unnest(['a', 'b', 'c']) AS y
SELECT DISTINCT flag FROM numbers INTERSECT SELECT true EXCEPT SELECT false
SELECT * FROM (VALUES (1, 'a', NULL), (2, 'b', 1.5)) AS t(a, b, c)
SELECT $1 + id FROM numbers WHERE id = $2
SELECT ? AS a, id FROM numbers WHERE value > ? AND ratio < ?
SELECT table_name FROM information_schema.tables ORDER BY table_name
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'numbers'
SELECT * FROM system.queries LIMIT 3
EXPLAIN SELECT * FROM numbers JOIN words ON numbers.id = words.id
EXPLAIN ANALYZE SELECT count(*) FROM numbers
SHOW TABLES
SHOW COLUMNS FROM numbers
DESCRIBE numbers
SET endpoints = '4'
SET compression = 'lz4'
SET time_zone = 'Europe/Berlin'
SET views = 'true'
SET datafusion.execution.batch_size = 1
RESET endpoints
CREATE TABLE made AS SELECT 1 AS a
DROP TABLE numbers
INSERT INTO numbers VALUES (1, 2, 3.0, true, DATE '2024-01-01')
DELETE FROM numbers WHERE id = 1
COPY numbers TO '/tmp/x.parquet'
CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'
CREATE EXTERNAL TABLE x (a INT, y INT) STORED AS CSV WITH HEADER ROW DELIMITER ';' PARTITIONED BY (y) LOCATION 'x/' OPTIONS ('format.quote' '') COMMENT 'c'
SELECT * FROM '/etc/passwd'
PREPARE p AS SELECT $1
BEGIN
SELECT regexp_like(word, '^w[0-9]+$'), regexp_replace(word, '(o)', '[\1]'), to_char(DATE '2024-01-01', '%Y') FROM words
SELECT sum(value) FILTER (WHERE flag), array_agg(id ORDER BY id), approx_distinct(value), median(ratio), stddev(ratio) FROM numbers
SELECT * FROM generate_series(1, 100000)
SELECT a.id FROM numbers a, numbers b WHERE a.id = b.id ORDER BY a.id LIMIT 10
SELECT * FROM numbers TABLESAMPLE BERNOULLI (10)
SELECT arrow_typeof(arrow_cast(1, 'Decimal256(76, 10)')), arrow_cast('a', 'Utf8View'), arrow_cast('b', 'Dictionary(Int32, Utf8)')
SELECT md5('a'), sha256('b'), encode('c', 'base64'), random() >= 0, now() > TIMESTAMP '2020-01-01'
