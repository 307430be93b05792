# shellcheck shell=bash
# A server with assertions, built from the source of the chosen major version.
# Sourced after lib.sh and apt.sh.

# Builds it where it is not there, and the extension. From here on it is the chosen server, everything lies
# below target/assertions (target/assertions-N for another major version than 15), and $TARGET/stage has the
# extension. That is the one that was built for the server chosen before: assertions change the layout of no
# structure that it reads. SOURCE is the source.
assertion_server() {
    local home library prefix where part
    "$ROOT/scripts/setup.sh" server
    find_postgres
    find_source
    "$ROOT/scripts/build.sh" dev
    home=$TARGET/assertions
    if [ "$PG_MAJOR" != 15 ]; then home=$home-$PG_MAJOR; fi
    library=$(built_library dev)
    # Debian's patch of the source installs libraries below /usr, over the system's own, unless the path has
    # this word in it.
    prefix=$home/postgresql
    mkdir -p "$home/build"
    if [ ! -e "$home/installed" ]; then
        say "building PostgreSQL with assertions (log: $home/build.log)"
        (
            cd "$home/build" || exit
            # The server's makefiles make headers only where no other make has called them.
            unset MAKELEVEL MAKEFLAGS MFLAGS
            "$SOURCE/configure" --prefix="$prefix" --enable-cassert --enable-debug --with-icu CFLAGS='-O1 -g1' >"$home/build.log" 2>&1
            where=$(printf '%s\n' 'include src/Makefile.global' "show: ; @echo \$(pkglibdir)" | make -s -f - show top_builddir=.)
            case $where in
            "$prefix"/*) ;;
            *) die "this source would install its libraries in $where" ;;
            esac
            make -j "$(nproc)" >>"$home/build.log" 2>&1
            for part in . contrib src/test/regress src/test/isolation; do make -C "$part" install >>"$home/build.log" 2>&1; done
        )
        touch "$home/installed"
    fi
    # The results of these runs, too, stay apart from the others.
    export PG_CONFIG=$prefix/bin/pg_config CARGO_TARGET_DIR=$home
    TARGET=$home
    mkdir -p "$(dirname "$(built_library dev)")"
    cp "$library" "$(built_library dev)"
    "$ROOT/scripts/stage.sh" dev "$home/stage"
}
