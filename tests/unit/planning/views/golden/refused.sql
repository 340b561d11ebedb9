## GROUP BY
SELECT a, count(*)
FROM t
GROUP BY a
=>
GROUP BY @ 3:1 GROUP BY a

## an aggregate alone
SELECT max(a) AS a FROM t
=>
aggregate functions @ 1:8 max(a)

## DISTINCT
SELECT DISTINCT a FROM t
=>
DISTINCT @ 1:8 DISTINCT a

## QUALIFY
SELECT a FROM t QUALIFY a = 1
=>
QUALIFY @ 1:17 QUALIFY a = 1

## window
SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM t
=>
window functions @ 1:24 OVER (PARTITION BY a ORDER BY b)

## LIMIT
SELECT a FROM t LIMIT 3
=>
LIMIT @ 1:17 LIMIT 3

## LIMIT behind a union
SELECT a FROM t UNION ALL SELECT a FROM u LIMIT 4
=>
LIMIT @ 1:43 LIMIT 4

## OFFSET
SELECT a FROM t OFFSET 4
=>
OFFSET @ 1:17 OFFSET 4

## IN with a subquery
SELECT a FROM t WHERE a IN (SELECT b FROM u)
=>
subquery expressions @ 1:29 SELECT b FROM u

## correlated EXISTS
SELECT a FROM t
WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
=>
correlated subquery expressions @ 2:15 SELECT 1 FROM u WHERE u.a = t.a

## scalar subquery
SELECT (SELECT max(a) FROM u) AS a FROM t
=>
subquery expressions @ 1:9 SELECT max(a) FROM u

## left outer join
SELECT t.a FROM t
  LEFT JOIN u ON t.a = u.a
=>
joins of type '[LEFT_OUTER_JOIN]' @ 2:3 LEFT JOIN u ON t.a = u.a

## full outer join
SELECT a FROM t FULL OUTER JOIN u USING (a)
=>
joins of type '[FULL_OUTER_JOIN]' @ 1:17 FULL OUTER JOIN u USING (a)

## right join
SELECT a FROM t RIGHT JOIN u USING (a)
=>
joins of type '[RIGHT_OUTER_JOIN]' @ 1:17 RIGHT JOIN u USING (a)

## semi join
SELECT a FROM t LEFT SEMI JOIN u USING (a)
=>
joins of type '[LEFT_SEMI_JOIN]' @ 1:17 LEFT SEMI JOIN u USING (a)

## anti join
SELECT a FROM t ANTI JOIN u USING (a)
=>
joins of type '[LEFT_ANTI_JOIN]' @ 1:17 ANTI JOIN u USING (a)

## UNION
SELECT a FROM t UNION SELECT b FROM u
=>
joins of type '[UNION]' @ 1:17 UNION SELECT b FROM u

## INTERSECT
SELECT a FROM t INTERSECT SELECT b FROM u
=>
joins of type '[INTERSECT]' @ 1:17 INTERSECT SELECT b FROM u

## EXCEPT, by its other name
SELECT a FROM t MINUS SELECT b FROM u
=>
joins of type '[EXCEPT]' @ 1:17 MINUS SELECT b FROM u

## table function
SELECT * FROM range(10)
=>
'Table Function' @ 1:15 range(10)

## lateral view
SELECT a FROM t LATERAL VIEW explode(b) AS a
=>
'Table Function' @ 1:17 LATERAL VIEW explode(b) AS a

## generator
SELECT explode(b) AS a FROM t
=>
'Table Function' @ 1:8 explode(b)

## lateral subquery
SELECT a FROM t, LATERAL (SELECT t.a + 1)
=>
correlated subquery expressions @ 1:18 LATERAL (SELECT t.a + 1)

## user function
SELECT mine(a) AS a FROM t
=>
the user function 'mine' @ 1:8 mine(a)

## user function of a schema
SELECT db.mine(a) AS a FROM t
=>
the user function 'mine' @ 1:11 mine(a)

## function of chance
SELECT rand() AS a FROM t
=>
the non-deterministic function 'rand' @ 1:8 rand

## function of the row's place
SELECT monotonically_increasing_id() AS a FROM t
=>
the non-deterministic function 'monotonically_increasing_id' @ 1:8 monotonically_increasing_id

## sample
SELECT a FROM t TABLESAMPLE (10 PERCENT)
=>
TABLESAMPLE @ 1:15 t TABLESAMPLE (10 PERCENT)

## time travel
SELECT a FROM t VERSION AS OF 3
=>
time travel @ 1:15 t VERSION AS OF 3

## PIVOT
SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))
=>
PIVOT @ 1:15 t PIVOT (sum(a) FOR b IN (1, 2))

## inline table
SELECT a FROM VALUES (1), (2) AS t(a)
=>
'Values' @ 1:15 VALUES (1), (2) AS t(a)

## file metadata
SELECT _metadata.file_name AS a FROM t
=>
columns of file metadata @ 1:8 _metadata.file_name

## recursion
WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) SELECT a FROM r
=>
recursive common table expressions @ 1:1 WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3)

## in a subquery
SELECT a FROM (SELECT a FROM t LIMIT 2) AS s
=>
LIMIT @ 1:32 LIMIT 2

## in a common table expression
WITH q AS (SELECT DISTINCT a FROM t) SELECT a FROM q
=>
DISTINCT @ 1:19 DISTINCT a
