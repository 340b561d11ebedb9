-- Two streams on one table: what was inserted, and what has changed in the end.
CREATE TABLE orders (order_id number(8), state varchar(20));
CREATE STREAM delta_s ON TABLE orders;
CREATE STREAM append_s ON TABLE orders APPEND_ONLY = TRUE;
INSERT INTO orders VALUES (1, 'open'), (2, 'open'), (3, 'open');
UPDATE orders SET state = 'paid' WHERE order_id = 2;
DELETE FROM orders WHERE order_id = 1;
SELECT order_id, state, METADATA$ACTION, METADATA$ISUPDATE FROM delta_s;
--> 2 | paid | INSERT | False
--> 3 | open | INSERT | False
SELECT order_id, state, METADATA$ACTION, METADATA$ISUPDATE FROM append_s;
--> 1 | open | INSERT | False
--> 2 | open | INSERT | False
--> 3 | open | INSERT | False
-- consumed without any use of it: the filter takes no row, the whole window is gone
CREATE TABLE nowhere (order_id number(8));
INSERT INTO nowhere SELECT order_id FROM append_s WHERE 0 = 1;
--> 0 | 0 | 0
SELECT * FROM append_s;
--> nothing
TRUNCATE TABLE orders;
SELECT SYSTEM$STREAM_HAS_DATA('delta_s');
--> True
SELECT * FROM delta_s;
--> nothing
SELECT * FROM append_s;
--> nothing
