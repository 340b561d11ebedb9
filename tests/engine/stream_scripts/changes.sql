-- Changes between two moments, without a stream and without an offset.
CREATE OR REPLACE TABLE paints (id number(8) NOT NULL, c1 varchar(255) default NULL);
ALTER TABLE paints SET CHANGE_TRACKING = TRUE;
SET ts1 = (SELECT CURRENT_TIMESTAMP());
INSERT INTO paints (id, c1) VALUES (1, 'red'), (2, 'blue'), (3, 'green');
DELETE FROM paints WHERE id = 1;
UPDATE paints SET c1 = 'purple' WHERE id = 2;
SELECT id, c1, METADATA$ACTION, METADATA$ISUPDATE FROM paints CHANGES(INFORMATION => DEFAULT) AT(TIMESTAMP => $ts1);
--> 2 | purple | INSERT | False
--> 3 | green | INSERT | False
SELECT id, c1, METADATA$ACTION FROM paints CHANGES(INFORMATION => APPEND_ONLY) AT(TIMESTAMP => $ts1);
--> 1 | red | INSERT
--> 2 | blue | INSERT
--> 3 | green | INSERT
SET ts2 = (SELECT CURRENT_TIMESTAMP());
INSERT INTO paints (id, c1) VALUES (4, 'grey');
CREATE OR REPLACE TABLE colours (c1 varchar(255) default NULL);
INSERT INTO colours (c1)
  SELECT c1 FROM paints CHANGES(INFORMATION => APPEND_ONLY) AT(TIMESTAMP => $ts1) END(TIMESTAMP => $ts2);
SELECT * FROM colours;
--> blue
--> green
--> red
SELECT * FROM paints AT(TIMESTAMP => $ts1);
--> nothing
