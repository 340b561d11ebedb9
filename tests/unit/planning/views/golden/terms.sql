## a filter
v(x): SELECT a + 1 AS x FROM t WHERE b > 2
changed: t
=>
-- 0 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_c0
FROM (
  SELECT
    `x` AS `x`,
    tidemark_id_0,
    tidemark_sign
  FROM (
    SELECT
      a + 1 AS x,
      tidemark_id_0,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    WHERE
      b > 2
  ) AS v(`x`, tidemark_id_0, tidemark_sign)
) AS q(tidemark_c0, tidemark_id_0, tidemark_sign)

## a join of two tables
v(a, c): SELECT t.a, u.c FROM t JOIN u ON t.k = u.k
changed: t, u
=>
-- 0 changed, 1 old
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `c` AS `c`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      t.a,
      u.c,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    JOIN tidemark_scan_1 AS `u`
      ON t.k = u.k
  ) AS v(`a`, `c`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

-- 0 new, 1 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `c` AS `c`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      t.a,
      u.c,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    JOIN tidemark_scan_1 AS `u`
      ON t.k = u.k
  ) AS v(`a`, `c`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

## a star beside another
v(a, b): SELECT t.*, u.b FROM t, u WHERE t.k = u.k
changed: u
=>
-- 0 new, 1 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `b` AS `b`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      t.*
      EXCEPT (tidemark_id_0),
      u.b,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    CROSS JOIN tidemark_scan_1 AS `u`
    WHERE
      t.k = u.k
  ) AS v
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

## UNION ALL with an arm that reads nothing
v(a): SELECT a FROM t UNION ALL SELECT b FROM u UNION ALL SELECT 0
changed: t
=>
-- 0 changed, 1 nothing
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_id_2,
  tidemark_c0
FROM (
  SELECT
    `a` AS `a`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_id_2,
    tidemark_sign
  FROM (
    SELECT
      a,
      tidemark_id_0,
      NULL AS tidemark_id_1,
      NULL AS tidemark_id_2,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    UNION ALL
    SELECT
      b,
      NULL AS tidemark_id_0,
      tidemark_id_1,
      NULL AS tidemark_id_2,
      NULL AS tidemark_sign
    FROM tidemark_scan_1 AS `u`
    UNION ALL
    SELECT
      0,
      NULL AS tidemark_id_0,
      NULL AS tidemark_id_1,
      CAST(0 AS BIGINT) AS tidemark_id_2,
      NULL AS tidemark_sign
    WHERE
      FALSE
  ) AS v(`a`, tidemark_id_0, tidemark_id_1, tidemark_id_2, tidemark_sign)
) AS q(tidemark_c0, tidemark_id_0, tidemark_id_1, tidemark_id_2, tidemark_sign)

## the same table twice
v(a, p): SELECT child.a, parent.a AS p FROM t child JOIN t AS parent ON child.up = parent.id
changed: t
=>
-- 0 changed, 1 old
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `p` AS `p`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      child.a,
      parent.a AS p,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM tidemark_scan_0 AS child
    JOIN tidemark_scan_1 AS parent
      ON child.up = parent.id
  ) AS v(`a`, `p`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

-- 0 new, 1 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `p` AS `p`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      child.a,
      parent.a AS p,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM tidemark_scan_0 AS child
    JOIN tidemark_scan_1 AS parent
      ON child.up = parent.id
  ) AS v(`a`, `p`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

## a view in a view, and a subquery under an alias with columns
known(a, b): SELECT a, b FROM t WHERE b IS NOT NULL
v(x, b): SELECT s.x, known.b FROM known JOIN (SELECT k FROM u) AS s(x) ON s.x = known.a
changed: t
=>
-- 0 changed, 1 old
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `x` AS `x`,
    `b` AS `b`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      s.x,
      known.b,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM (
      SELECT
        `a` AS `a`,
        `b` AS `b`,
        tidemark_id_0,
        tidemark_sign
      FROM (
        SELECT
          a,
          b,
          tidemark_id_0,
          tidemark_sign
        FROM tidemark_scan_0 AS `t`
        WHERE
          NOT b IS NULL
      ) AS v(`a`, `b`, tidemark_id_0, tidemark_sign)
    ) AS `known`
    JOIN (
      SELECT
        k,
        tidemark_id_1
      FROM tidemark_scan_1 AS `u`
    ) AS s(x, tidemark_id_1)
      ON s.x = known.a
  ) AS v(`x`, `b`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

## common table expressions
v(a, b): WITH one AS (SELECT a, b FROM t), two(x) AS (SELECT a FROM one) SELECT one.a, two.x FROM one JOIN two ON one.a = two.x
changed: t
=>
-- 0 changed, 1 old
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `b` AS `b`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      one.a,
      two.x,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM (
      SELECT
        a,
        b,
        tidemark_id_0,
        tidemark_sign
      FROM tidemark_scan_0 AS `t`
    ) AS `one`
    JOIN (
      SELECT
        a,
        tidemark_id_1
      FROM (
        SELECT
          a,
          b,
          tidemark_id_1
        FROM tidemark_scan_1 AS `t`
      ) AS `one`
    ) AS `two`(x, tidemark_id_1)
      ON one.a = two.x
  ) AS v(`a`, `b`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

-- 0 new, 1 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_c0,
  tidemark_c1
FROM (
  SELECT
    `a` AS `a`,
    `b` AS `b`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_sign
  FROM (
    SELECT
      one.a,
      two.x,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_sign
    FROM (
      SELECT
        a,
        b,
        tidemark_id_0
      FROM tidemark_scan_0 AS `t`
    ) AS `one`
    JOIN (
      SELECT
        a,
        tidemark_id_1,
        tidemark_sign
      FROM (
        SELECT
          a,
          b,
          tidemark_id_1,
          tidemark_sign
        FROM tidemark_scan_1 AS `t`
      ) AS `one`
    ) AS `two`(x, tidemark_id_1, tidemark_sign)
      ON one.a = two.x
  ) AS v(`a`, `b`, tidemark_id_0, tidemark_id_1, tidemark_sign)
) AS q(tidemark_c0, tidemark_c1, tidemark_id_0, tidemark_id_1, tidemark_sign)

## joins in parentheses
v(a): SELECT t.a FROM t CROSS JOIN (u JOIN w ON u.k = w.k)
changed: w
=>
-- 0 new, 1 new, 2 changed
SELECT
  tidemark_sign,
  tidemark_id_0,
  tidemark_id_1,
  tidemark_id_2,
  tidemark_c0
FROM (
  SELECT
    `a` AS `a`,
    tidemark_id_0,
    tidemark_id_1,
    tidemark_id_2,
    tidemark_sign
  FROM (
    SELECT
      t.a,
      tidemark_id_0,
      tidemark_id_1,
      tidemark_id_2,
      tidemark_sign
    FROM tidemark_scan_0 AS `t`
    CROSS JOIN (
      tidemark_scan_1 AS `u`
        JOIN tidemark_scan_2 AS `w`
          ON u.k = w.k
    )
  ) AS v(`a`, tidemark_id_0, tidemark_id_1, tidemark_id_2, tidemark_sign)
) AS q(tidemark_c0, tidemark_id_0, tidemark_id_1, tidemark_id_2, tidemark_sign)
