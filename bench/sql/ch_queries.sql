-- The 22 questions of CH-benCHmark: TPC-H's, asked of TPC-C's tables. A stock row belongs to supplier s_w_id * s_i_id mod 10000; a
-- customer's nation is the code of its state's first sign. See events_queries.sql for the form.

-- C1: lines by number, ordered by 1
SELECT ol_number, sum(ol_quantity) AS sum_qty, sum(ol_amount) AS sum_amount, avg(ol_quantity) AS avg_qty, avg(ol_amount) AS avg_amount, count(*) AS count_order
FROM order_line WHERE ol_delivery_d > timestamp '2024-02-15' GROUP BY ol_number ORDER BY ol_number;

-- C2: suppliers with the least stock of an item
SELECT su_suppkey, su_name, n_name, i_id, i_name, su_address, su_phone, su_comment
FROM item JOIN stock ON i_id = s_i_id JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey
    JOIN nation ON su_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
    JOIN (SELECT s_i_id AS least_i_id, min(s_quantity) AS least
          FROM stock JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey JOIN nation ON su_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
          WHERE r_name LIKE 'Europ%' GROUP BY s_i_id) AS low ON i_id = least_i_id AND s_quantity = least
WHERE r_name LIKE 'Europ%' AND i_data LIKE '%b' ORDER BY n_name, su_name, i_id;

-- C3: orders that wait, by worth
SELECT ol_o_id, ol_w_id, ol_d_id, sum(ol_amount) AS revenue, o_entry_d
FROM customer JOIN orders ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE c_state LIKE 'A%' AND o_entry_d > timestamp '2024-05-01' GROUP BY ol_o_id, ol_w_id, ol_d_id, o_entry_d ORDER BY revenue DESC, o_entry_d;

-- C4: orders that came late
SELECT o_ol_cnt, count(*) AS order_count FROM orders
WHERE o_entry_d >= timestamp '2024-03-01' AND o_entry_d < timestamp '2024-05-01'
  AND EXISTS (SELECT * FROM order_line WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id AND ol_delivery_d >= o_entry_d)
GROUP BY o_ol_cnt ORDER BY o_ol_cnt;

-- C5: worth by nation of supplier and customer
SELECT n_name, sum(ol_amount) AS revenue
FROM customer JOIN orders ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    JOIN order_line ON ol_o_id = o_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id
    JOIN stock ON ol_w_id = s_w_id AND ol_i_id = s_i_id JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey AND ascii(c_state) = su_nationkey
    JOIN nation ON su_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
WHERE r_name = 'Europe' AND o_entry_d >= timestamp '2024-03-01' GROUP BY n_name ORDER BY revenue DESC;

-- C6: worth of some lines
SELECT sum(ol_amount) AS revenue FROM order_line
WHERE ol_delivery_d >= timestamp '2024-03-01' AND ol_delivery_d < timestamp '2024-05-01' AND ol_quantity BETWEEN 1 AND 100000;

-- C7: worth between two nations by year
SELECT su_nationkey AS supp_nation, substr(c_state, 1, 1) AS cust_nation, extract(year FROM o_entry_d) AS year, sum(ol_amount) AS revenue
FROM supplier JOIN stock ON s_w_id * s_i_id % 10000 = su_suppkey JOIN order_line ON ol_supply_w_id = s_w_id AND ol_i_id = s_i_id
    JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id JOIN customer ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    JOIN nation n1 ON su_nationkey = n1.n_nationkey JOIN nation n2 ON ascii(c_state) = n2.n_nationkey
WHERE ((n1.n_name = 'Nation G' AND n2.n_name = 'Nation C') OR (n1.n_name = 'Nation C' AND n2.n_name = 'Nation G'))
  AND ol_delivery_d BETWEEN timestamp '2024-02-15' AND timestamp '2024-05-15'
GROUP BY su_nationkey, substr(c_state, 1, 1), extract(year FROM o_entry_d) ORDER BY su_nationkey, cust_nation, year;

-- C8: share of a nation by year
SELECT extract(year FROM o_entry_d) AS year, sum(CASE WHEN n2.n_name = 'Nation G' THEN ol_amount ELSE 0 END) / sum(ol_amount) AS share
FROM item JOIN stock ON i_id = s_i_id JOIN order_line ON ol_i_id = s_i_id AND ol_supply_w_id = s_w_id
    JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id JOIN customer ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey JOIN nation n1 ON n1.n_nationkey = ascii(c_state)
    JOIN region ON n1.n_regionkey = r_regionkey JOIN nation n2 ON su_nationkey = n2.n_nationkey
WHERE ol_i_id < 10000 AND r_name = 'Europe' AND i_data LIKE '%b' GROUP BY extract(year FROM o_entry_d) ORDER BY year;

-- C9: worth of some items by nation and year
SELECT n_name, extract(year FROM o_entry_d) AS year, sum(ol_amount) AS sum_profit
FROM item JOIN stock ON i_id = s_i_id JOIN order_line ON ol_i_id = s_i_id AND ol_supply_w_id = s_w_id
    JOIN orders ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey JOIN nation ON su_nationkey = n_nationkey
WHERE i_data LIKE '%bb' OR i_data LIKE '%7b' GROUP BY n_name, extract(year FROM o_entry_d) ORDER BY n_name, year DESC;

-- C10: customers by worth of late orders
SELECT c_id, c_last, sum(ol_amount) AS revenue, c_city, c_phone, n_name
FROM customer JOIN orders ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id JOIN nation ON n_nationkey = ascii(c_state)
WHERE o_entry_d >= timestamp '2024-05-20' AND o_entry_d <= ol_delivery_d
GROUP BY c_id, c_last, c_city, c_phone, n_name ORDER BY revenue DESC;

-- C11: items of a nation's suppliers by orders
SELECT s_i_id, sum(s_order_cnt) AS order_count FROM stock JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey JOIN nation ON su_nationkey = n_nationkey
WHERE n_name = 'Nation G' GROUP BY s_i_id
HAVING sum(s_order_cnt) > (SELECT sum(s_order_cnt) * 0.00005 FROM stock JOIN supplier ON s_w_id * s_i_id % 10000 = su_suppkey JOIN nation ON su_nationkey = n_nationkey WHERE n_name = 'Nation G')
ORDER BY order_count DESC;

-- C12: orders by carrier and size
SELECT o_ol_cnt, sum(CASE WHEN o_carrier_id IN (1, 2) THEN 1 ELSE 0 END) AS high, sum(CASE WHEN o_carrier_id NOT IN (1, 2) THEN 1 ELSE 0 END) AS low
FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE o_entry_d <= ol_delivery_d AND ol_delivery_d < timestamp '2024-06-15' GROUP BY o_ol_cnt ORDER BY o_ol_cnt;

-- C13: customers by number of orders
SELECT c_count, count(*) AS custdist
FROM (SELECT c_id, count(o_id) AS c_count FROM customer LEFT JOIN orders ON c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id AND o_carrier_id > 8 GROUP BY c_id) AS by_customer
GROUP BY c_count ORDER BY custdist DESC, c_count DESC;

-- C14: share of promoted items
SELECT 100.00 * sum(CASE WHEN i_data LIKE 'PR%' THEN ol_amount ELSE 0 END) / (1 + sum(ol_amount)) AS promo
FROM order_line JOIN item ON ol_i_id = i_id WHERE ol_delivery_d >= timestamp '2024-03-01' AND ol_delivery_d < timestamp '2024-04-01';

-- C15: best supplier
WITH revenue AS (
    SELECT s_w_id * s_i_id % 10000 AS supplier_no, sum(ol_amount) AS total FROM order_line JOIN stock ON ol_i_id = s_i_id AND ol_supply_w_id = s_w_id
    WHERE ol_delivery_d >= timestamp '2024-04-01' GROUP BY s_w_id * s_i_id % 10000)
SELECT su_suppkey, su_name, su_address, su_phone, total FROM supplier JOIN revenue ON su_suppkey = supplier_no
WHERE total = (SELECT max(total) FROM revenue) ORDER BY su_suppkey;

-- C16: suppliers by item's name and price
SELECT i_name, substr(i_data, 1, 3) AS brand, i_price, count(DISTINCT s_w_id * s_i_id % 10000) AS supplier_cnt
FROM stock JOIN item ON i_id = s_i_id
WHERE i_data NOT LIKE 'zz%' AND s_w_id * s_i_id % 10000 NOT IN (SELECT su_suppkey FROM supplier WHERE su_comment LIKE '%bad%')
GROUP BY i_name, substr(i_data, 1, 3), i_price ORDER BY supplier_cnt DESC;

-- C17: small lines of some items
SELECT sum(ol_amount) / 2.0 AS avg_yearly
FROM order_line JOIN (SELECT i_id, avg(ol_quantity) AS mean FROM item JOIN order_line ON ol_i_id = i_id WHERE i_data LIKE '%b' GROUP BY i_id) AS means ON ol_i_id = i_id
WHERE ol_quantity < mean;

-- C18: large orders
SELECT c_last, c_id, o_id, o_entry_d, o_ol_cnt, sum(ol_amount) AS total
FROM customer JOIN orders ON c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
GROUP BY o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt HAVING sum(ol_amount) > 80000 ORDER BY total DESC, o_entry_d;

-- C19: worth of items by price, quantity and warehouse
SELECT sum(ol_amount) AS revenue FROM order_line JOIN item ON ol_i_id = i_id
WHERE (i_data LIKE '%a' AND ol_quantity BETWEEN 1 AND 10 AND i_price BETWEEN 1 AND 50 AND ol_w_id IN (1, 2, 3))
   OR (i_data LIKE '%b' AND ol_quantity BETWEEN 1 AND 10 AND i_price BETWEEN 1 AND 50 AND ol_w_id IN (1, 2, 4))
   OR (i_data LIKE '%c' AND ol_quantity BETWEEN 1 AND 10 AND i_price BETWEEN 1 AND 50 AND ol_w_id IN (1, 5, 3));

-- C20: suppliers of a nation with much stock
SELECT su_name, su_address FROM supplier JOIN nation ON su_nationkey = n_nationkey
WHERE su_suppkey IN (SELECT s_i_id * s_w_id % 10000 FROM stock JOIN order_line ON ol_i_id = s_i_id
                     WHERE s_i_id IN (SELECT i_id FROM item WHERE i_data LIKE 'PR %') AND ol_delivery_d > timestamp '2024-05-15'
                     GROUP BY s_i_id, s_w_id, s_quantity HAVING 2 * s_quantity > sum(ol_quantity))
  AND n_name = 'Nation G' ORDER BY su_name;

-- C21: suppliers that keep orders waiting
SELECT su_name, count(*) AS numwait
FROM supplier JOIN stock ON s_w_id * s_i_id % 10000 = su_suppkey JOIN order_line l1 ON l1.ol_supply_w_id = s_w_id AND l1.ol_i_id = s_i_id
    JOIN orders ON l1.ol_w_id = o_w_id AND l1.ol_d_id = o_d_id AND l1.ol_o_id = o_id JOIN nation ON su_nationkey = n_nationkey
WHERE l1.ol_delivery_d > o_entry_d AND n_name = 'Nation G'
  AND NOT EXISTS (SELECT * FROM order_line l2 WHERE l2.ol_o_id = l1.ol_o_id AND l2.ol_w_id = l1.ol_w_id AND l2.ol_d_id = l1.ol_d_id AND l2.ol_delivery_d > l1.ol_delivery_d)
GROUP BY su_name ORDER BY numwait DESC, su_name;

-- C22: customers without an order, by state
SELECT substr(c_state, 1, 1) AS country, count(*) AS numcust, sum(c_balance) AS totacctbal FROM customer
WHERE substr(c_phone, 16, 1) IN ('1', '2', '3', '4', '5', '6', '7')
  AND c_balance > (SELECT avg(c_balance) FROM customer WHERE c_balance > 0.00 AND substr(c_phone, 16, 1) IN ('1', '2', '3', '4', '5', '6', '7'))
  AND NOT EXISTS (SELECT * FROM orders WHERE o_c_id = c_id AND o_w_id = c_w_id AND o_d_id = c_d_id AND o_carrier_id > 8)
GROUP BY substr(c_state, 1, 1) ORDER BY country;
