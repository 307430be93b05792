# The front door. Every target is a script below scripts/ or bench/; `make help` lists them.

# Which server: scripts/lib.sh chooses by these.
PG_CONFIG ?=
PG ?=
export PG_CONFIG PG
ifeq ($(strip $(PG_CONFIG)),)
unexport PG_CONFIG
endif
ifeq ($(strip $(PG)),)
unexport PG
endif

.DEFAULT_GOAL := help
.PHONY: help setup all build install package wheel dist demo demo-sqlite test test-units test-regress test-isolation test-crash test-sqlite fuzz-sqlite test-differential test-changes test-sqlsmith test-clients test-upgrades test-spilling test-postgres test-beside test-assertions test-packages lint bench bench-events bench-tpch bench-clickbench bench-device bench-majors bench-small bench-cold bench-oltp bench-htap bench-columnstore bench-column-files bench-parquet-copy bench-parquet-tables bench-packing bench-loads bench-plans bench-uint8 bench-sqlite bench-sqlite-tpch bench-encodings clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done
	@echo
	@echo '  PG=16, 17 or 18 chooses the server for any of them (fetched at the first time; default: the installed one, 15)'
	@echo '  PG_CONFIG=/path/to/pg_config chooses any other server of these versions'

setup: ## install the system packages that are missing
	scripts/setup.sh

# What the client of PGXN calls before install.
all: build

build: setup ## build the extension, optimised
	scripts/build.sh release

install: setup ## build and install into the server that PG_CONFIG names
	scripts/build.sh release
	scripts/install.sh release

package: ## the .deb of the extension, its symbols and a tar.gz, in target/packages (PG_MAJORS='15 16 17 18')
	scripts/package.sh

wheel: ## the extension for SQLite as a Python wheel, in target/packages
	scripts/wheel.sh

dist: ## the source package for PGXN, of the last commit, in target/packages
	scripts/dist.sh

demo: ## a private server, a million rows, heap and colcompress side by side (KEEP=1 leaves it running)
	scripts/demo.sh

demo-sqlite: ## build the extension for SQLite and show it: a plain table and a columnar one side by side
	scripts/demo-sqlite.sh

test: ## every test suite: units, SQL regress, isolation, crash (short form)
	scripts/test.sh

test-units: ## the pure crates' tests, without a server
	scripts/test.sh units

test-regress: ## the SQL suites only
	scripts/test.sh regress

test-isolation: ## the concurrency suites only
	scripts/test.sh isolation

test-crash: ## the crash suites in their long form
	scripts/test.sh crash-long

test-sqlite: ## the extension of SQLite in its long form: 1,000 killed processes on each SQLite (CYCLES)
	scripts/test.sh sqlite-long

fuzz-sqlite: ## damaged stripes in SQLite, by a build that does not look at checksums (DURATION=3600 SEED=n)
	scripts/fuzz-sqlite.sh

test-differential: ## random queries on random tables against heap, long (DURATION=600 SEED=n)
	scripts/test.sh differential

test-changes: ## random changes of rows against heap, long (STATEMENTS=10000 SEED=n)
	scripts/test.sh changes

test-sqlsmith: ## sqlsmith's random statements on columnar tables of many types (DURATION=60 SEED=n)
	scripts/test.sh sqlsmith

test-clients: ## the Python of docs/clients.md: SQLAlchemy, pandas, Django (packages from PyPI)
	scripts/test.sh clients

test-upgrades: ## pg_upgrade from each major version to each later one (PAIRS='15-18 16-17', MODES='copy link swap chain')
	scripts/test.sh upgrades

test-spilling: ## statements over 10 million rows with work_mem = 1MB: memory, temporary files, heap's answers and times (ROWS=n ONLY='names')
	scripts/test.sh spilling

test-postgres: ## PostgreSQL's own suites with colcompress tables, held against heap (SOURCE=tree; SUITES="regress isolation cold indexed-regress indexed-isolation")
	scripts/core-suite.sh $(SUITES)

test-beside: ## the SQL suites beside Debian's other extensions, in both orders of preloading (BESIDE='contrib audit statistics plans jobs')
	scripts/beside.sh $(BESIDE)

test-assertions: ## suites on a PostgreSQL built with assertions: no crash (SOURCE=tree; SUITES="regress isolation changes postgres")
	scripts/test-assertions.sh $(SUITES)

test-packages: ## the packages of the optimised build: lintian, then installed, used and purged (PG_MAJORS='15 16 17 18')
	scripts/test.sh packages

lint: ## rustfmt, clippy, licences, layers, shell scripts
	scripts/lint.sh

bench: ## bench-events, and loads and sizes of it by column
	scripts/bench.sh

bench-events: ## 27 questions to a million events: heap, colcompress, rowcompress and DuckDB in turns (ROWS, RUNS, COLD, PEERS)
	scripts/bench.sh events

bench-tpch: ## the 22 queries of TPC-H on the same three (SF=1, RUNS, STEP)
	scripts/bench.sh tpch

bench-clickbench: ## 43 questions to a table of 105 columns on the same three (ROWS, RUNS, STEP)
	scripts/bench.sh clickbench

bench-device: ## TPC-H with nothing in memory, beside dd and beside warm runs (as root; SF=10, RUNS, QUERIES, THREADS, STEP)
	scripts/bench.sh device

bench-majors: ## events, TPC-H and ClickBench on 15 to 18 at once, beside heap on each and DuckDB (MAJORS, SUITES, RUNS)
	scripts/bench.sh majors

bench-small: ## what small queries cost beside heap, hot rows and cold (RUNS, TRANSACTIONS)
	scripts/bench.sh small

bench-cold: ## what changing and locking rows in stripes costs beside heap (ROWS, RUNS, SECONDS, STATEMENTS)
	scripts/bench.sh cold

bench-uint8: ## engine.uint8 beside bigint: ClickBench's questions that name WatchID or UserID, and others (HITS, ROWS, RUNS)
	scripts/bench.sh uint8

bench-oltp: ## pgbench and single-row writes on hot rows beside heap, 8 clients (RUNS, TRANSACTIONS, CLIENTS, SCALE)
	scripts/bench.sh oltp

bench-htap: ## questions beside transactions, TPC-B and CH-benCHmark: heap, columnstore index, colcompress (WORKLOADS, RUNS, SECONDS, CLIENTS, SCALE, WAREHOUSES, COMPARE, ARMS)
	scripts/bench.sh htap

bench-columnstore: ## TPC-H and events on heap with columnstore indexes, by compression, beside heap and colcompress (SF, LEVELS, RUNS, REFRESHES, STEP)
	scripts/bench.sh columnstore

bench-column-files: ## TPC-H on foreign tables over column files beside heap and colcompress (SF, QUERIES, RUNS, COLD, STEP)
	scripts/bench.sh column-files

bench-parquet-copy: ## COPY of TPC-H's lineitem to and from Parquet, beside DuckDB and CSV (SF, RUNS)
	scripts/bench.sh parquet-copy

bench-parquet-tables: ## TPC-H on foreign tables over Parquet files, beside DuckDB on the same files (SF, QUERIES, RUNS, STEP)
	scripts/bench.sh parquet-tables

bench-packing: ## a million rows inserted one by one and packed, beside the same rows loaded at once (ROWS, CLIENTS, RUNS)
	scripts/bench.sh packing

bench-loads: ## COPY of TPC-DS's 24 tables beside heap, small and wide ones among them (SF, RUNS, TABLES)
	scripts/bench.sh loads

bench-plans: ## which questions of the benchmarks are vectorised on this major version (PG=N), beside others
	scripts/bench.sh plans

bench-sqlite: ## columnar tables of SQLite beside plain tables and DuckDB, the seed's questions (ROWS, RUNS, WIDE=1)
	scripts/bench.sh sqlite

bench-sqlite-tpch: ## TPC-H's queries in columnar_query beside DuckDB (SF, RUNS, QUERIES, THREADS, PLAIN=1, FRESH=1)
	scripts/bench.sh sqlite-tpch

bench-encodings: ## size and decode speed of each encoding
	scripts/bench.sh encodings

clean: ## remove what the builds and servers left below target/
	scripts/clean.sh
