-- The questions asked of the flights; see events_queries.sql for the form.

-- F1: how many flights and how many were cancelled
SELECT count(*), count(*) - count(dep_time) FROM :t;

-- F2: mean delay of each airline, ordered by 3
SELECT carrier, count(*), avg(arr_delay) FROM :t GROUP BY carrier ORDER BY avg(arr_delay) DESC NULLS LAST;

-- F3: delays by hour of the day, ordered by 1
SELECT hour, count(*), avg(dep_delay), max(dep_delay) FROM :t WHERE dep_delay IS NOT NULL GROUP BY hour ORDER BY hour;

-- F4: one week in July
SELECT origin, dest, count(*), sum(distance) FROM :t
WHERE time_hour >= '2013-07-01' AND time_hour < '2013-07-08' GROUP BY origin, dest;

-- F5: the busiest aircraft, ordered by 2
SELECT tailnum, count(*), sum(air_time) FROM :t WHERE tailnum IS NOT NULL
GROUP BY tailnum ORDER BY count(*) DESC, tailnum LIMIT 10;

-- F6: long delays to places that start with S
SELECT dest, count(*) FROM :t WHERE dest LIKE 'S%' AND arr_delay > 120 GROUP BY dest;

-- F7: speed by month, ordered by 1
SELECT month, avg(distance / (air_time / 60.0)) FROM :t WHERE air_time > 0 GROUP BY month ORDER BY month;
