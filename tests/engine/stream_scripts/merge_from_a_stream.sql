-- A mirror kept by MERGE; one row per key, so that an update's two halves do not meet the same row twice.
CREATE TABLE stock (item varchar(20), amount number(8));
CREATE TABLE mirror (item varchar(20), amount number(8));
CREATE STREAM stock_changes ON TABLE stock;
INSERT INTO stock VALUES ('bolt', 10), ('nut', 20), ('gear', 30);
MERGE INTO mirror m USING (SELECT * FROM stock_changes WHERE METADATA$ACTION = 'INSERT' OR NOT METADATA$ISUPDATE) s
  ON m.item = s.item
  WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' THEN DELETE
  WHEN MATCHED THEN UPDATE SET amount = s.amount
  WHEN NOT MATCHED AND s.METADATA$ACTION = 'INSERT' THEN INSERT (item, amount) VALUES (s.item, s.amount);
--> 3 | 0 | 0
UPDATE stock SET amount = 11 WHERE item = 'bolt';
UPDATE stock SET amount = 12 WHERE item = 'bolt';
DELETE FROM stock WHERE item = 'nut';
INSERT INTO stock VALUES ('pin', 5);
INSERT INTO stock VALUES ('rod', 6);
DELETE FROM stock WHERE item = 'rod';
SELECT item, amount, METADATA$ACTION, METADATA$ISUPDATE FROM stock_changes;
--> bolt | 10 | DELETE | True
--> bolt | 12 | INSERT | True
--> nut | 20 | DELETE | False
--> pin | 5 | INSERT | False
MERGE INTO mirror m USING (SELECT * FROM stock_changes WHERE METADATA$ACTION = 'INSERT' OR NOT METADATA$ISUPDATE) s
  ON m.item = s.item
  WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' THEN DELETE
  WHEN MATCHED THEN UPDATE SET amount = s.amount
  WHEN NOT MATCHED AND s.METADATA$ACTION = 'INSERT' THEN INSERT (item, amount) VALUES (s.item, s.amount);
--> 1 | 1 | 1
SELECT * FROM mirror;
--> bolt | 12
--> gear | 30
--> pin | 5
