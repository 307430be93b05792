-- The events table of the benchmark: 17 columns, ROWS rows (psql variable), the same rows on every run.
-- Written to ORDER: the heap table events_source, which the benchmark then copies to CSV for every engine.
-- Day, user, page and the like follow from the row's number; amounts, prices and so on from a seeded generator.
SET timezone = 'UTC';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE events_source (
    id           bigint NOT NULL,
    created_at   timestamptz NOT NULL,
    event_date   date NOT NULL,
    user_id      bigint NOT NULL,
    session_id   text NOT NULL,
    amount       numeric(15,4),
    price        double precision,
    quantity     integer,
    duration_ms  integer,
    score        real,
    country_code char(2) NOT NULL,
    browser      text NOT NULL,
    url          text,
    is_mobile    boolean NOT NULL,
    event_type   text NOT NULL,
    metadata     jsonb,
    tags         text[]
);
SELECT setseed(0.42);
INSERT INTO events_source
SELECT n,
       timestamptz '2024-01-01 00:00:00+00' + n * interval '30 seconds',
       date '2024-01-01' + (n / 2880)::integer,
       n % 50000 + 1,
       md5(n::text),
       round((random() * 9999.99)::numeric, 4),
       random() * 999.99,
       n % 100 + 1,
       round(random() * 30000)::integer + 50,
       random()::real,
       (ARRAY['BR','US','DE','FR','IN','GB','JP','CN','RU','CA'])[n % 10 + 1],
       (ARRAY['Chrome','Firefox','Safari','Edge','Opera','Samsung'])[n % 6 + 1],
       format('/page/%s', n % 5000),
       n % 3 <> 0,
       (ARRAY['click','pageview','purchase','signup','search','logout'])[n % 6 + 1],
       jsonb_build_object(
           'os', (ARRAY['android','ios','windows','macos','linux'])[n % 5 + 1],
           'version', (12 + n % 8)::text,
           'app', (ARRAY['mobile','web','desktop','tv'])[n % 4 + 1],
           'campaign', (ARRAY['summer','black_friday','organic','referral','email'])[n % 5 + 1],
           'revenue', round((random() * 500)::numeric, 2),
           'ab_group', (ARRAY['A','B','C'])[n % 3 + 1],
           'premium', n % 7 = 0),
       ARRAY[format('tag_%s', n % 20), format('cat_%s', n % 8)]
FROM generate_series(1, :ROWS) AS n;
