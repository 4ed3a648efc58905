# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What a piece of gpu-check prints: TAP, and figures for the report.
n=0

ok() { # TEXT
    n=$((n + 1))
    echo "ok $n - $1"
}

not_ok() { # TEXT
    n=$((n + 1))
    echo "not ok $n - $1"
}

skip() { # TEXT REASON
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

figure() { # TEXT
    echo "figure: $1"
}

plan() {
    echo "1..$n"
}

# Runs a command, and shows its output if it fails.
check() { # TEXT COMMAND...
    text=$1
    shift
    if "$@" >"$work/check.out" 2>&1; then
        ok "$text"
    else
        sed 's/^/# /' "$work/check.out"
        not_ok "$text"
    fi
}

# Runs a program that prints TAP itself. If it dies, or succeeds without a plan, it has failed.
program() { # NAME COMMAND...
    name=$1
    shift
    echo "# $name"
    { # its output is in the log even if the piece is ended
        CMOCKA_MESSAGE_OUTPUT=TAP "$@" 2>&1 </dev/null
        echo $? >"$work/program.status"
    } | tee "$work/program.out" | sed -u '/^1\.\./d'
    status=$(cat "$work/program.status")
    failures=$(grep '^not ok ' "$work/program.out" | grep -civ '# *skip')
    if [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]; then
        not_ok "$name ends with $status"
    elif [ "$status" -eq 0 ] && ! grep -q '^1\.\.' "$work/program.out"; then
        not_ok "$name has no plan"
    fi
}
