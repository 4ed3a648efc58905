#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The packages of `make deb`: installed by dpkg into a root of its own, which has this machine's
# packages, used there, and removed.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    [ "${BUILD:-build}" = build ] || return 0
    command -v dpkg-shlibdeps >/dev/null || return 0
    use_tools
    make -s -C "$root" deb-files CPU_ISAS="$(isas)" DEBS="$BATS_FILE_TMPDIR/deb"
}

setup() {
    [ "${BUILD:-build}" = build ] || skip "sanitizers want their own libraries first"
    command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-shlibdeps here (dpkg-dev)"
    use_tools
    debs=$BATS_FILE_TMPDIR/deb
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

@test "each file of an installation is in one package, and of the same bytes" {
    diff <(cd "$debs" && printf '%s\n' *.deb | sed 's/_.*//' | LC_ALL=C sort) - <<'PACKAGES'
libtf-tools-dev
libtf-tools1
tf-tools
tf-tools-doc
PACKAGES
    local deb
    for deb in "$debs"/*.deb; do dpkg-deb --contents "$deb" | awk '!/\/$/ { print $6 }'; done |
        grep -v '/copyright$' | sed 's/\(man[0-9].*\)\.gz$/\1/' | sort >packed
    make -s -C "$root" install-files CPU_ISAS="$(isas)" DESTDIR="$PWD/stage" PREFIX=/usr >/dev/null
    (cd stage && find . ! -type d | sort) | diff packed -
    dpkg-deb -f "$debs"/libtf-tools1_*.deb Depends | finds -E '(^|, )libopenblas0-openmp(,|$)'
    dpkg-deb -f "$debs"/tf-tools_*.deb Depends | finds '^libtf-tools1 (= '
}

@test "installed by dpkg: a model is trained, a program is built with the library, all is removed" {
    [ "$(id -u)" -eq 0 ] || skip "dpkg installs as root alone"
    [ -s /var/lib/dpkg/status ] || skip "no packages of Debian here"
    mkdir -p there/var/lib/dpkg/info there/var/lib/dpkg/updates there/var/lib/dpkg/triggers
    # without our own packages, which may be installed
    awk -v RS= -v ORS='\n\n' '!/^Package: (lib)?tf-tools/' /var/lib/dpkg/status \
        >there/var/lib/dpkg/status
    PATH=$PATH:/usr/sbin:/sbin
    ours() {
        dpkg --root="$BATS_TEST_TMPDIR/there" --no-triggers "$@" >"$BATS_TEST_TMPDIR/said" 2>&1 ||
            { grep -v 'files list file for' "$BATS_TEST_TMPDIR/said" && false; }
    }
    run -1 ours -i "$debs"/tf-tools_*.deb "$debs"/libtf-tools-dev_*.deb
    finds 'tf-tools depends on libtf-tools1 (= ' said
    ours -i "$debs"/*.deb
    ours --verify tf-tools libtf-tools1 libtf-tools-dev tf-tools-doc
    local usr=$PWD/there/usr
    export PATH=$usr/bin:/usr/bin:/bin:/usr/sbin:/sbin LD_LIBRARY_PATH=$usr/lib
    [ "$(command -v tf-exec)" = "$usr/bin/tf-exec" ]
    cp -r "$usr/share/doc/tf-tools/examples" typed
    cd typed
    tf-graph digits.lua | tf-opt | tf-place >d.tfg
    ./feed --rows 1-1437 --shuffle --batch 64 --epochs 3 |
        tf-exec -q -g d.tfg --run train --save ck
    ./feed --rows 1438- --batch 360 | tf-exec -q -g d.tfg --run eval --restore ck |
        tf-show --json | jq -e '.accuracy > 0.8'
    tf-run --dry-run --job job d.tfg -- true | finds "'tf-ps' 'serve'"
    export PKG_CONFIG_PATH=$usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=${usr%/usr}
    # shellcheck disable=SC2046
    cc c/line.c $(pkg-config --cflags --libs tf-tools) -o line
    tf-graph c/line.lua | tf-opt | tf-place >line.tfg
    ./line line.tfg | finds -x 'y = 3.000 x + -1.000'
    cd "$BATS_TEST_TMPDIR"
    gzip -dc there/usr/share/man/man1/tf-run.1.gz | cmp - <(tf-run --man)
    ours -P tf-tools libtf-tools1 libtf-tools-dev tf-tools-doc
    diff <(find there/usr ! -type d) /dev/null
}
