"""The columns of the hits table, for bench/hits.py, which makes them, and bench/clickbench.py, which creates
the table."""

# Every column in the table's order: name, type (s small, i int, l bigint, t text, d date, z timestamp, c one
# character), and how it is made; see `column`.
COLUMNS = """WatchID l unique|JavaEnable s flag:0.86|Title t title|GoodEvent s one|EventTime z time|EventDate d date|CounterID i counter|ClientIP i ip|
RegionID i region|UserID l user|CounterClass s few:0,0,0,1,-1|OS s zipf:90|UserAgent s zipf:80|URL t url|Referer t referer|IsRefresh s flag:0.13|
RefererCategoryID s rare:20000|RefererRegionID i rare:3000|URLCategoryID s rare:20000|URLRegionID i rare:3000|ResolutionWidth s width|ResolutionHeight s height|
ResolutionDepth s few:32,32,24,37,0|FlashMajor s few:10,11,11,0,8|FlashMinor s few:0,1,2,3|FlashMinor2 t words:,0,700,775|NetMajor s rare:4|NetMinor s rare:9|
UserAgentMajor s zipf:30|UserAgentMinor t words:,D6,s1,K9,20|CookieEnable s flag:0.98|JavascriptEnable s flag:0.97|IsMobile s flag:0.07|
MobilePhone s rare:60|MobilePhoneModel t model|Params t empty|IPNetworkID i zipf:400000|TraficSourceID s few:-1,-1,0,2,3,6,1|SearchEngineID s engine|
SearchPhrase t phrase|AdvEngineID s rare:60|IsArtifical s flag:0.02|WindowClientWidth s width|WindowClientHeight s height|ClientTimeZone s few:4,3,5,-1,7|
ClientEventTime z time|SilverlightVersion1 s few:0,4,5|SilverlightVersion2 s few:0,1|SilverlightVersion3 i rare:60000|SilverlightVersion4 s none|
PageCharset t words:utf-8,utf-8,windows-1251,|CodeVersion i zipf:40|IsLink s flag:0.05|IsDownload s flag:0.004|IsNotBounce s flag:0.1|FUniqID l user|
OriginalURL t sparse|HID i random|IsOldCounter s none|IsEvent s flag:0.01|IsParameter s none|DontCountHits s flag:0.03|WithHash s none|HitColor c few:5,5,g,D,2|
LocalEventTime z time|Age s few:0,0,22,31,39,50|Sex s few:0,0,1,2|Income s few:0,0,1,2,3|Interests s rare:30000|Robotness s zipf:60|RemoteIP i ip|
WindowName i few:-1,1,3,4|OpenerName i few:-1,-1,2,5|HistoryLength s zipf:200|BrowserLanguage t words:S0,NH,h1,zh|BrowserCountry t words:,Py,KO,OV|
SocialNetwork t words:,,,,Y|SocialAction t words:,,,,l|HTTPError s none|SendTiming i timing|DNSTiming i timing|ConnectTiming i timing|
ResponseStartTiming i timing|ResponseEndTiming i timing|FetchTiming i timing|SocialSourceNetworkID s rare:8|SocialSourcePage t sparse|ParamPrice l rare:90000|
ParamOrderID t empty|ParamCurrency t words:,NH|ParamCurrencyID s rare:4|OpenstatServiceName t sparse|OpenstatCampaignID t sparse|OpenstatAdID t sparse|
OpenstatSourceID t sparse|UTMSource t sparse|UTMMedium t words:,,,,cpc,email|UTMCampaign t sparse|UTMContent t sparse|UTMTerm t empty|FromTag t sparse|
HasGCLID s flag:0.01|RefererHash l hash:referer|URLHash l hash:url|CLID i rare:900"""


def columns():
    return [tuple(entry.split(" ", 2)) for entry in COLUMNS.replace("\n", "").split("|")]
