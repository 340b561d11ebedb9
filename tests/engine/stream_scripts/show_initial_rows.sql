-- The rows that are there come first; what happened since comes after the first consumption.
CREATE TABLE rooms (room_id INT, name STRING);
CREATE TABLE seen (room_id INT, name STRING, action STRING);
INSERT INTO rooms VALUES (1, 'red'), (2, 'blue');
CREATE STREAM first_look ON TABLE rooms SHOW_INITIAL_ROWS = TRUE;
INSERT INTO rooms VALUES (3, 'green');
UPDATE rooms SET name = 'pink' WHERE room_id = 1;
SELECT room_id, name, METADATA$ACTION, METADATA$ISUPDATE FROM first_look;
--> 1 | red | INSERT | False
--> 2 | blue | INSERT | False
INSERT INTO seen SELECT room_id, name, METADATA$ACTION FROM first_look;
--> 2 | 0 | 0
SELECT room_id, name, METADATA$ACTION, METADATA$ISUPDATE FROM first_look;
--> 1 | pink | INSERT | True
--> 1 | red | DELETE | True
--> 3 | green | INSERT | False
