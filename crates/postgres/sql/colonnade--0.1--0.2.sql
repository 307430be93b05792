\echo Use "ALTER EXTENSION colonnade UPDATE TO '0.2'" to load this file. \quit

-- Version 0.1 is released: colonnade--0.1.sql never changes any more. CREATE EXTENSION runs it and then this file,
-- so a new installation and an updated one have the same objects.
