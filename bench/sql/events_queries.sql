-- The questions asked of the events table; :t is the table. A name line starts each; "ordered by N" names the
-- output column (from 1) whose order the answer must keep, beside its rows.

-- Q1: how many rows
SELECT count(*) FROM :t;

-- Q2: sums and averages of two columns
SELECT sum(amount), avg(amount), sum(price), avg(price) FROM :t;

-- Q3: few groups, ordered by 2
SELECT country_code, count(*) AS n, avg(score) FROM :t GROUP BY country_code ORDER BY n DESC;

-- Q4: groups with a percentile, ordered by 3
SELECT event_type, count(*), sum(amount), avg(duration_ms),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms)
FROM :t GROUP BY event_type ORDER BY sum(amount) DESC NULLS LAST;

-- Q5: one month of the year, ordered by 1
SELECT event_date, count(*), sum(amount), avg(price) FROM :t
WHERE event_date BETWEEN '2024-01-01' AND '2024-01-31' GROUP BY event_date ORDER BY event_date;

-- Q6: jsonb containment
SELECT count(*), avg(amount) FROM :t WHERE metadata @> '{"os":"android"}';

-- Q7: groups of a jsonb field, ordered by 3
SELECT metadata->>'campaign', count(*), sum(amount) FROM :t WHERE metadata ? 'campaign'
GROUP BY 1 ORDER BY 3 DESC NULLS LAST;

-- Q8: array containment
SELECT count(*), avg(price) FROM :t WHERE tags @> ARRAY['tag_5'];

-- Q9: LIKE with a prefix
SELECT count(*), sum(amount) FROM :t WHERE url LIKE '/page/1%';

-- Q10: many aggregates over two keys, ordered by 3
SELECT browser, is_mobile, count(*), sum(amount), avg(amount), min(amount), max(amount), sum(price * quantity),
       avg(duration_ms), count(DISTINCT user_id), sum(CASE WHEN event_type = 'purchase' THEN amount END)
FROM :t GROUP BY browser, is_mobile ORDER BY count(*) DESC;

-- K1: one row by its key
SELECT id, user_id, amount, event_type FROM :t WHERE id = 500000;

-- K2: ten rows by their keys
SELECT count(*), sum(amount) FROM :t
WHERE id IN (1000, 50000, 100000, 200000, 300000, 400000, 500000, 700000, 850000, 999000);

-- K3: a hundred keys out of a subquery
SELECT count(*), sum(amount), avg(duration_ms) FROM :t WHERE id IN (SELECT (s * 10000)::bigint FROM generate_series(1, 100) s);

-- K4: a thousand keys out of a subquery
SELECT count(*), sum(amount), avg(duration_ms) FROM :t WHERE id IN (SELECT (s * 1000)::bigint FROM generate_series(1, 1000) s);

-- K5: one user
SELECT count(*), sum(amount) FROM :t WHERE user_id = 25000;

-- K6: ten users
SELECT count(*), sum(amount), max(duration_ms) FROM :t
WHERE user_id IN (1000, 5000, 10000, 15000, 20000, 25000, 30000, 35000, 40000, 45000);

-- K7: a hundred users out of a subquery
SELECT count(*), sum(amount), avg(price) FROM :t WHERE user_id IN (SELECT s * 500 FROM generate_series(1, 100) s);

-- K8: a thousand users out of a subquery
SELECT count(*), sum(amount), avg(price) FROM :t WHERE user_id IN (SELECT s * 50 FROM generate_series(1, 1000) s);

-- K9: groups by event type, ordered by 1
SELECT event_type, count(*), sum(amount), avg(duration_ms) FROM :t GROUP BY event_type ORDER BY event_type;

-- K10: groups by country, ordered by 1
SELECT country_code, count(*), sum(amount), avg(price) FROM :t GROUP BY country_code ORDER BY country_code;

-- K11: the twenty best users, ordered by 3
SELECT user_id, count(*), sum(amount) FROM :t GROUP BY user_id ORDER BY sum(amount) DESC LIMIT 20;

-- K12: groups within one month, ordered by 1
SELECT event_type, count(*), sum(amount), avg(duration_ms) FROM :t
WHERE event_date BETWEEN '2024-06-01' AND '2024-06-30' GROUP BY event_type ORDER BY event_type;

-- W1: the three largest amounts of each country, ordered by 1, 4, 3
SELECT country_code, event_type, id, place
FROM (SELECT country_code, event_type, id, row_number() OVER (PARTITION BY country_code ORDER BY amount DESC, id) AS place FROM :t) x
WHERE place <= 3 ORDER BY country_code, place, id;

-- W2: steps from one event of a user to the next
SELECT count(*), sum(step), max(step)
FROM (SELECT duration_ms - lag(duration_ms) OVER (PARTITION BY user_id ORDER BY created_at) AS step FROM :t) x WHERE step > 0;

-- W3: running totals of users
SELECT count(*), max(total) FROM (SELECT sum(amount) OVER (PARTITION BY user_id ORDER BY created_at) AS total FROM :t) x WHERE total > 100000;

-- W4: moving averages and extremes of a hundred events, ordered by 1
SELECT event_type, max(mean), max(spread)
FROM (SELECT event_type, avg(duration_ms) OVER w AS mean, max(duration_ms) OVER w - min(duration_ms) OVER w AS spread FROM :t
      WINDOW w AS (PARTITION BY event_type ORDER BY created_at ROWS BETWEEN 99 PRECEDING AND CURRENT ROW)) x
GROUP BY event_type ORDER BY event_type;

-- W5: events with a large share of their country's day, ordered by 1
SELECT country_code, count(*), sum(amount)
FROM (SELECT country_code, amount, sum(amount) OVER (PARTITION BY country_code, event_date) AS total FROM :t) x
WHERE amount > 0.006 * total GROUP BY country_code ORDER BY country_code;
