#!/usr/bin/env bash
# Runs the SQL suites on servers that preload Debian's extensions beside ours, before it and after it.
# Usage: scripts/beside.sh [GROUP]...
# A group is one of those below; default: all. TESTS limits the suites to files and folders, SUITES='regress
# isolation' names them. The packages are unpacked below target/beside, nothing is installed; the library that
# is tested is the staged one of the dev profile.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# Group: Debian packages (postgresql-15-...), libraries, settings, files left out.
# vectorised/pruning: pg_qualstats 2.0.4 ends the server at a generic plan that prunes all partitions, of heap
# tables as well.
groups=(
    "contrib||pg_stat_statements,auto_explain|pg_stat_statements.track=all;auto_explain.log_min_duration=0;auto_explain.log_analyze=on;auto_explain.log_buffers=on;auto_explain.log_wal=on;auto_explain.log_verbose=on;auto_explain.log_triggers=on;auto_explain.log_nested_statements=on"
    "audit|pgaudit set-user|pgaudit,set_user|pgaudit.log=all;pgaudit.log_relation=on;pgaudit.log_parameter=on;pgaudit.log_statement_once=off"
    "statistics|pg-qualstats pg-stat-kcache pg-wait-sampling powa|pg_stat_statements,pg_stat_kcache,pg_qualstats,pg_wait_sampling,powa|pg_stat_statements.track=all;pg_qualstats.sample_rate=1;pg_stat_kcache.track=all;pg_stat_kcache.track_planning=on;powa.frequency=-1|vectorised/pruning"
    "plans|hypopg plpgsql-check pldebugger|hypopg,plpgsql_check,plugin_debugger|plpgsql_check.mode=every_start"
    "profiler|plprofiler|plprofiler|plprofiler.enabled=on"
    "jobs|cron partman|pg_cron,pg_partman_bgw|pg_partman_bgw.interval=5;max_worker_processes=24"
)

find_cargo
find_postgres
[ "$PG_MAJOR" = 15 ] || die "Debian has these extensions for PostgreSQL 15 only: run it without PG and PG_CONFIG"
find_libclang
"$ROOT/scripts/build.sh" dev
stage=$TARGET/beside/stage
# Background workers name their library without a directory.
libdir=$("$PG_CONFIG" --pkglibdir)
debs=$TARGET/beside/debs
mkdir -p "$debs"
rm -rf "$stage"
"$ROOT/scripts/stage.sh" dev "$stage" >/dev/null

status=0
for line in "${groups[@]}"; do
    IFS='|' read -r group packages libraries settings skipped <<<"$line"
    if [ "$#" -gt 0 ] && [[ " $* " != *" $group "* ]]; then continue; fi
    for package in $packages; do
        name=postgresql-$PG_MAJOR-$package
        found=("$debs/$name"_*.deb)
        if [ ! -e "${found[0]}" ]; then (cd "$debs" && apt-get download "$name"); fi
        found=("$debs/$name"_*.deb)
        dpkg-deb -x "${found[0]}" "$stage"
    done
    for order in "$libraries,colonnade" "colonnade,$libraries"; do
        echo "==> $group: $order"
        # shellcheck disable=SC2086
        EXTRA_PRELOAD=$order SKIP=${skipped:-} SETTINGS="compute_query_id=regress;dynamic_library_path=$stage$libdir:\$libdir;$settings" python3 "$ROOT/scripts/run_tests.py" --stage "$stage" ${SUITES:-regress} || status=1
    done
done
exit $status
