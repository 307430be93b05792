#!/usr/bin/env bash
# A private development server for this working tree: builds it (dev profile), stages it and runs it.
# Usage: scripts/dev-server.sh {start|restart|fresh|stop|psql|log|status} NAME PORT [psql arguments...]
#   start    build, stage, then start (or restart) the server; its data survive from run to run
#   fresh    the same with an empty cluster: what a change of the extension's SQL needs
#   psql     connect to its database "dev", as the superuser
# The socket is in /tmp/cn_NAME; NO_BUILD=1 stages what is built already; PROFILE=release builds that one;
# SETTINGS='name=value;name=value' adds server settings.
# PG=N chooses another major version's server, which has data of its own.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

[ "$#" -ge 3 ] || die "usage: scripts/dev-server.sh {start|restart|fresh|stop|psql|log|status} NAME PORT [psql arguments...]"
verb=$1 name=$2 port=$3
find_postgres
profile=${PROFILE:-dev}
case $verb in
start | restart | fresh)
    if [ -z "${NO_BUILD:-}" ]; then "$ROOT/scripts/build.sh" "$profile"; fi
    stage=$("$ROOT/scripts/stage.sh" "$profile")
    ;;
stop | psql | log | status) stage=$BY_MAJOR/stage/$profile ;;
*) die "unknown verb: $verb" ;;
esac
shift 3
exec python3 "$ROOT/scripts/dev_server.py" "$verb" "$name" "$port" "$stage" "$@"
