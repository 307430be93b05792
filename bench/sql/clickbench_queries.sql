-- 43 questions to the hits table: those of ClickBench, in our own words; see events_queries.sql for the form. "any of
-- ties" says that LIMIT cuts among equals: the answer is then compared with all output columns added to ORDER BY.

-- C0: hits
SELECT count(*) FROM hits;

-- C1: hits out of advertising
SELECT count(*) FROM hits WHERE AdvEngineID <> 0;

-- C2: three aggregates
SELECT sum(AdvEngineID), count(*), avg(ResolutionWidth) FROM hits;

-- C3: mean of a large integer
SELECT avg(UserID) FROM hits;

-- C4: users
SELECT count(DISTINCT UserID) FROM hits;

-- C5: phrases
SELECT count(DISTINCT SearchPhrase) FROM hits;

-- C6: first and last day
SELECT min(EventDate), max(EventDate) FROM hits;

-- C7: hits by advertising engine, ordered by 2
SELECT AdvEngineID, count(*) FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY count(*) DESC;

-- C8: users by region, any of ties
SELECT RegionID, count(DISTINCT UserID) AS users FROM hits GROUP BY RegionID ORDER BY users DESC LIMIT 10;

-- C9: aggregates by region, any of ties
SELECT RegionID, sum(AdvEngineID), count(*) AS hits, avg(ResolutionWidth), count(DISTINCT UserID)
FROM hits GROUP BY RegionID ORDER BY hits DESC LIMIT 10;

-- C10: users by phone, any of ties
SELECT MobilePhoneModel, count(DISTINCT UserID) AS users FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhoneModel ORDER BY users DESC LIMIT 10;

-- C11: users by kind of phone, any of ties
SELECT MobilePhone, MobilePhoneModel, count(DISTINCT UserID) AS users FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhone, MobilePhoneModel ORDER BY users DESC LIMIT 10;

-- C12: phrases, any of ties
SELECT SearchPhrase, count(*) AS hits FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY hits DESC LIMIT 10;

-- C13: users by phrase, any of ties
SELECT SearchPhrase, count(DISTINCT UserID) AS users FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY users DESC LIMIT 10;

-- C14: phrases by engine, any of ties
SELECT SearchEngineID, SearchPhrase, count(*) AS hits FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, SearchPhrase ORDER BY hits DESC LIMIT 10;

-- C15: the busiest users, any of ties
SELECT UserID, count(*) FROM hits GROUP BY UserID ORDER BY count(*) DESC LIMIT 10;

-- C16: users and their phrases, any of ties
SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase ORDER BY count(*) DESC LIMIT 10;

-- C17: any ten users and phrases, any of ties
SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10;

-- C18: users and phrases by minute, any of ties
SELECT UserID, extract(minute FROM EventTime) AS minute, SearchPhrase, count(*) FROM hits
GROUP BY UserID, minute, SearchPhrase ORDER BY count(*) DESC LIMIT 10;

-- C19: one user
SELECT UserID FROM hits WHERE UserID = :USER;

-- C20: URLs that contain a word
SELECT count(*) FROM hits WHERE URL LIKE '%google%';

-- C21: phrases that lead to a word, any of ties
SELECT SearchPhrase, min(URL), count(*) AS hits FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY hits DESC LIMIT 10;

-- C22: titles with a word and no address of it, any of ties
SELECT SearchPhrase, min(URL), min(Title), count(*) AS hits, count(DISTINCT UserID) FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY hits DESC LIMIT 10;

-- C23: whole rows, sorted, ordered by 5, any of ties
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10;

-- C24: phrases by time, any of ties
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10;

-- C25: phrases by alphabet, any of ties
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10;

-- C26: phrases by time and alphabet, any of ties
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10;

-- C27: counters with long URLs, any of ties
SELECT CounterID, avg(length(URL)) AS len, count(*) AS hits FROM hits WHERE URL <> ''
GROUP BY CounterID HAVING count(*) > :MANY ORDER BY len DESC LIMIT 25;

-- C28: hosts of referers, any of ties
SELECT regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, avg(length(Referer)) AS len, count(*) AS hits, min(Referer)
FROM hits WHERE Referer <> '' GROUP BY host HAVING count(*) > :MANY ORDER BY len DESC LIMIT 25;

-- C29: ninety sums
SELECT :SUMS FROM hits;

-- C30: addresses by engine, any of ties
SELECT SearchEngineID, ClientIP, count(*) AS hits, sum(IsRefresh), avg(ResolutionWidth) FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, ClientIP ORDER BY hits DESC LIMIT 10;

-- C31: addresses by hit with a phrase, any of ties
SELECT WatchID, ClientIP, count(*) AS hits, sum(IsRefresh), avg(ResolutionWidth) FROM hits WHERE SearchPhrase <> ''
GROUP BY WatchID, ClientIP ORDER BY hits DESC LIMIT 10;

-- C32: addresses by hit, any of ties
SELECT WatchID, ClientIP, count(*) AS hits, sum(IsRefresh), avg(ResolutionWidth) FROM hits
GROUP BY WatchID, ClientIP ORDER BY hits DESC LIMIT 10;

-- C33: URLs, any of ties
SELECT URL, count(*) AS hits FROM hits GROUP BY URL ORDER BY hits DESC LIMIT 10;

-- C34: URLs and a constant, any of ties
SELECT 1, URL, count(*) AS hits FROM hits GROUP BY 1, URL ORDER BY hits DESC LIMIT 10;

-- C35: an address and its neighbours, any of ties
SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, count(*) AS hits FROM hits
GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY hits DESC LIMIT 10;

-- C36: pages of one counter, any of ties
SELECT URL, count(*) AS views FROM hits WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> '' GROUP BY URL ORDER BY views DESC LIMIT 10;

-- C37: titles of one counter, any of ties
SELECT Title, count(*) AS views FROM hits WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND DontCountHits = 0 AND IsRefresh = 0 AND Title <> '' GROUP BY Title ORDER BY views DESC LIMIT 10;

-- C38: links of one counter, any of ties
SELECT URL, count(*) AS views FROM hits WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0 GROUP BY URL ORDER BY views DESC LIMIT 10 OFFSET 100;

-- C39: ways through one counter, any of ties
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
       CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS src, URL AS dst, count(*) AS views
FROM hits WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, src, dst ORDER BY views DESC LIMIT 10 OFFSET 100;

-- C40: days of one referer, any of ties
SELECT URLHash, EventDate, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0
  AND TraficSourceID IN (-1, 6) AND RefererHash = :REFERER GROUP BY URLHash, EventDate ORDER BY views DESC LIMIT 10 OFFSET 2;

-- C41: window sizes of one page, any of ties
SELECT WindowClientWidth, WindowClientHeight, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0 AND DontCountHits = 0
  AND URLHash = :PAGE GROUP BY WindowClientWidth, WindowClientHeight ORDER BY views DESC LIMIT 10 OFFSET 3;

-- C42: views by minute
SELECT date_trunc('minute', EventTime) AS minute, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0
GROUP BY date_trunc('minute', EventTime) ORDER BY date_trunc('minute', EventTime) LIMIT 10 OFFSET 5;
