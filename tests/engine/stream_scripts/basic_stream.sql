-- A stream on a table; what it shows is the net change; a write that reads it moves it on.
CREATE OR REPLACE TABLE members (id number(8) NOT NULL, name varchar(255) default NULL, fee number(3) NULL);
CREATE OR REPLACE TABLE signup (id number(8), dt DATE);
CREATE OR REPLACE STREAM member_check ON TABLE members;
INSERT INTO members (id, name, fee) VALUES (1, 'Ann', 0), (2, 'Ben', 0), (3, 'Cleo', 0), (4, 'Dov', 0);
INSERT INTO signup VALUES (1, '2026-01-01'), (2, '2026-02-15'), (4, '2026-03-30');
SELECT id, name, fee, METADATA$ACTION, METADATA$ISUPDATE FROM member_check;
--> 1 | Ann | 0 | INSERT | False
--> 2 | Ben | 0 | INSERT | False
--> 3 | Cleo | 0 | INSERT | False
--> 4 | Dov | 0 | INSERT | False
-- updated before it was read: only the last image comes, as an insert
MERGE INTO members m
  USING (SELECT id, dt FROM signup s WHERE datediff(day, dt, DATE '2026-04-01') < 60) s
  ON m.id = s.id
  WHEN MATCHED THEN UPDATE SET m.fee = 90;
SELECT id, fee, METADATA$ACTION, METADATA$ISUPDATE FROM member_check WHERE fee > 0;
--> 2 | 90 | INSERT | False
--> 4 | 90 | INSERT | False
-- reading has moved nothing; this does
CREATE TABLE IF NOT EXISTS members_prod (id number(8), name varchar(255), fee number(3));
INSERT INTO members_prod (id, name, fee) SELECT id, name, fee FROM member_check WHERE METADATA$ACTION = 'INSERT';
--> 4 | 0 | 0
SELECT * FROM member_check;
--> nothing
SELECT SYSTEM$STREAM_HAS_DATA('member_check');
--> False
-- from now on an update is a pair with one row id
UPDATE members SET fee = fee + 15 WHERE fee > 0 AND id = 2;
DELETE FROM members WHERE id = 3;
SELECT id, name, fee, METADATA$ACTION, METADATA$ISUPDATE FROM member_check;
--> 2 | Ben | 105 | INSERT | True
--> 2 | Ben | 90 | DELETE | True
--> 3 | Cleo | 0 | DELETE | False
SELECT count(DISTINCT METADATA$ROW_ID) FROM member_check WHERE METADATA$ISUPDATE;
--> 1
SELECT * FROM members_prod WHERE id > 2;
--> 3 | Cleo | 0
--> 4 | Dov | 90
