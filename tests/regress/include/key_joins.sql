-- Joins by all columns of a key: what the planner expects of them. The tables `lines` and `offers` are there.
VACUUM ANALYZE lines, offers;
SELECT expected('SELECT * FROM lines JOIN offers USING (part, supplier)');
SELECT expected('SELECT * FROM lines l, offers o WHERE o.supplier = l.supplier AND l.part = o.part AND l.amount >= 0');
-- what is equal to what is equal
SELECT expected('SELECT * FROM lines a, lines b, offers o WHERE a.id = b.id AND a.part = o.part AND b.part = a.part AND a.supplier = o.supplier');
-- one of the columns, another table's columns, a constant
SELECT expected('SELECT * FROM lines l JOIN offers o USING (part)') > 900000 AS many;
SELECT expected('SELECT * FROM lines a, lines b, offers o WHERE a.id = b.id AND a.part = o.part AND b.supplier = o.supplier') < 5000 AS few;
SELECT expected('SELECT * FROM lines JOIN offers USING (part, supplier) WHERE part = 77') BETWEEN 1 AND 200 AS few;
-- the tables in the other places, and what only one side has
SELECT expected('SELECT * FROM offers o LEFT JOIN lines l ON l.part = o.part AND l.supplier = o.supplier') <= 100000 AS no_more;
SELECT expected('SELECT * FROM offers o WHERE EXISTS (SELECT FROM lines l WHERE l.part = o.part AND l.supplier = o.supplier)') <= 20000 AS no_more;
SELECT count(*), sum(amount * cost) FROM lines JOIN offers USING (part, supplier);
SELECT count(*), sum(lines.amount * cost) FROM lines JOIN offers USING (part, supplier) JOIN lines twin USING (id, part, supplier) WHERE cost % 3 = 0;
-- a key that need not hold at once or for all rows is none
BEGIN;
ALTER TABLE offers DROP CONSTRAINT offers_pkey, ADD UNIQUE (part, supplier) DEFERRABLE;
SELECT expected('SELECT * FROM lines JOIN offers USING (part, supplier)') < 5000 AS few;
ROLLBACK;
-- a foreign key says the same, and is not counted twice
BEGIN;
ALTER TABLE lines ADD FOREIGN KEY (supplier, part) REFERENCES offers (supplier, part);
SELECT expected('SELECT * FROM lines JOIN offers USING (part, supplier)');
ROLLBACK;
DROP TABLE lines, offers;
