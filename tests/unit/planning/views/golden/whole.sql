## groups
v(a, n): SELECT a, count(*) AS n FROM t WHERE b > 0 GROUP BY a HAVING count(*) > 1
changed: t
=>
-- 1 old
SELECT
  tidemark_id_0,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `n` AS `n`,
    tidemark_id_0
  FROM (
    SELECT
      a,
      COUNT(*) AS n,
      TO_JSON(
        STRUCT(a AS k0),
        MAP(
          'ignoreNullFields',
          'false',
          'timestampFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX',
          'timestampNTZFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'
        )
      ) AS tidemark_id_0
    FROM tidemark_scan_1 AS `t`
    WHERE
      b > 0
    GROUP BY
      a
    HAVING
      COUNT(*) > 1
  ) AS v(`a`, `n`, tidemark_id_0)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0)

## groups by number
v(x, n): SELECT upper(a) AS x, sum(b) AS n FROM t GROUP BY 1
changed: t
=>
-- 1 old
SELECT
  tidemark_id_0,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `x` AS `x`,
    `n` AS `n`,
    tidemark_id_0
  FROM (
    SELECT
      UPPER(a) AS x,
      SUM(b) AS n,
      TO_JSON(
        STRUCT(UPPER(a) AS k0),
        MAP(
          'ignoreNullFields',
          'false',
          'timestampFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX',
          'timestampNTZFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'
        )
      ) AS tidemark_id_0
    FROM tidemark_scan_1 AS `t`
    GROUP BY
      1
  ) AS v(`x`, `n`, tidemark_id_0)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0)

## one group of all
v(n): SELECT count(DISTINCT a) AS n FROM t
changed: t
=>
-- 1 old
SELECT
  tidemark_id_0,
  tidemark_c0
FROM (
  SELECT
    `n` AS `n`,
    tidemark_id_0
  FROM (
    SELECT
      COUNT(DISTINCT a) AS n,
      '' AS tidemark_id_0
    FROM tidemark_scan_1 AS `t`
  ) AS v(`n`, tidemark_id_0)
) AS q(tidemark_c0, tidemark_id_0)

## DISTINCT with a star
v(a, b): SELECT DISTINCT * FROM t
changed: t
=>
-- 1 old
SELECT
  tidemark_id_0,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `b` AS `b`,
    tidemark_id_0
  FROM (
    SELECT
      d.*,
      TO_JSON(
        STRUCT(d.*),
        MAP(
          'ignoreNullFields',
          'false',
          'timestampFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX',
          'timestampNTZFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'
        )
      ) AS tidemark_id_0
    FROM (
      SELECT DISTINCT
        *
        EXCEPT (tidemark_id_1)
      FROM tidemark_scan_1 AS `t`
    ) AS d
  ) AS v
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0)

## UNION
v(a): SELECT a FROM t UNION SELECT b FROM u
changed: t
=>
-- 1 old, 2 old
SELECT
  tidemark_id_0,
  tidemark_c0
FROM (
  SELECT
    `a` AS `a`,
    tidemark_id_0
  FROM (
    SELECT
      d.*,
      TO_JSON(
        STRUCT(d.*),
        MAP(
          'ignoreNullFields',
          'false',
          'timestampFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX',
          'timestampNTZFormat',
          'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS'
        )
      ) AS tidemark_id_0
    FROM (
      SELECT DISTINCT
        *
      FROM (
        SELECT
          a
        FROM tidemark_scan_1 AS `t`
        UNION ALL
        SELECT
          b
        FROM tidemark_scan_2 AS `u`
      ) AS u
    ) AS d
  ) AS v
) AS q(tidemark_c0, tidemark_id_0)

## an outer join
v(a, c): SELECT t.a, u.c FROM t LEFT JOIN u ON t.k = u.k
changed: t
=>
-- 0 old, 1 old
SELECT
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `c` AS `c`,
    tidemark_id_0,
    tidemark_id_1
  FROM (
    SELECT
      t.a,
      u.c,
      tidemark_id_0,
      tidemark_id_1
    FROM tidemark_scan_0 AS `t`
    LEFT JOIN tidemark_scan_1 AS `u`
      ON t.k = u.k
  ) AS v(`a`, `c`, tidemark_id_0, tidemark_id_1)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1)

## an anti join behind a star
v(a): SELECT * FROM t LEFT ANTI JOIN u ON t.k = u.k
changed: t
=>
-- 0 old, 1 old
SELECT
  tidemark_id_0,
  tidemark_c0
FROM (
  SELECT
    `a` AS `a`,
    tidemark_id_0
  FROM (
    SELECT
      *
      EXCEPT (tidemark_id_0),
      tidemark_id_0
    FROM tidemark_scan_0 AS `t`
    LEFT ANTI JOIN tidemark_scan_1 AS `u`
      ON t.k = u.k
  ) AS v
) AS q(tidemark_c0, tidemark_id_0)
