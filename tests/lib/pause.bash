# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: the op Pause (tests/techniques/pause.c), which scripts and
# tools have then.

make_pause() {
    "${CC:-cc}" -std=c11 -shared -fPIC -D_POSIX_C_SOURCE=200809L -I "$root/libcommon/api" \
        "$root/tests/techniques/pause.c" -o pause.so
    export TF_OPS_PATH=$PWD/pause.so
}
