# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # pieces, report, limit, emulated are of gpu-check
# The results of gpu-check's pieces, and the report of them.

count() { # LOG PATTERN
    grep -cE "$2" "$1"
}

# Writes one line: PIECE PASSED FAILED SKIPPED SECONDS COMMIT. A piece that its limit ends, or that
# fails without a line that says so, counts one more failure. Returns whether nothing failed.
write_result() { # PIECE LOG STATUS SECONDS
    skipped=$(count "$2.log" '^(not )?ok .*# *(skip|SKIP)') # cmocka 1.1.5 writes "not ok" for them
    passed=$(grep -E '^ok ' "$2.log" | grep -cviE '# *skip')
    failed=$(grep -E '^not ok ' "$2.log" | grep -cviE '# *skip')
    if [ "$3" -eq 124 ] || [ "$3" -eq 137 ]; then
        echo "not ok - not over after $limit s" >>"$2.log"
        failed=$((failed + 1))
    elif [ "$3" -ne 0 ] && [ "$failed" -eq 0 ] || ! grep -q '^1\.\.' "$2.log"; then
        echo "not ok - ended with $3" >>"$2.log"
        failed=$((failed + 1))
    fi
    printf '%-20s %5d passed %3d failed %4d skipped %4d s  %s\n' "$1" "$passed" "$failed" \
        "$skipped" "$4" "$(commit)" >"$2.result"
    [ "$failed" -eq 0 ]
}

commit() {
    if git rev-parse --short HEAD 2>/dev/null | tr -d '\n'; then
        git diff --quiet HEAD 2>/dev/null || printf '%s' '+'
    fi
}

version_of() { # LIBRARY: the file that its name links to
    file=$(ldconfig -p 2>/dev/null | awk -v name="$1" '$1 == name { print $NF; exit }')
    [ -z "$file" ] || basename "$(realpath "$file")"
}

# Prints what the pieces ran on.
write_machine() {
    nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
    echo "| | |"
    echo "|---|---|"
    echo "| date | $(date -u +%Y-%m-%dT%H:%M:%SZ) |"
    echo "| commit | $(commit) |"
    echo "| machine | $(uname -sm), $(nproc) processors |"
    if [ -n "$emulated" ]; then
        echo "| card | none: the device is emulated |"
        return
    fi
    for entry in card:name driver:driver_version memory:memory.total capability:compute_cap; do
        echo "| ${entry%:*} | $(nvidia-smi --query-gpu="${entry#*:}" --format=csv,noheader \
            2>/dev/null | paste -sd, -) |"
    done
    echo "| CUDA of the driver | $(nvidia-smi 2>/dev/null |
        sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p') |"
    echo "| CUDA of nvcc | $([ -z "$nvcc" ] || "$nvcc" --version |
        sed -n 's/.*release \([0-9.]*\).*/\1/p') |"
    for library in libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcusolver.so.12 \
        libnccl.so.2; do
        echo "| $library | $(version_of $library) |"
    done
}

write_piece() { # LOG: failures, reasons of skips, figures
    grep -E -B 3 '^not ok' "$1" | grep -viE '^(not )?ok .*# *skip' | grep -E '^(not ok|#)' |
        head -n 60 | sed 's/^/    /'
    grep -iE '^(not )?ok .*# *skip' "$1" |
        sed -E 's/.*# *(skip|SKIP) *//; s/.*: ([A-Za-z0-9]+: no CUDA kernel)/\1/' | sort | uniq -c |
        sort -rn | head -n 50 | sed -E 's/^ *([0-9]+) /    skipped, \1: /'
    sed -n 's/^figure: /    /p' "$1"
}

write_report() {
    {
        echo "# gpu-check"
        echo
        write_machine
        echo
        echo "    piece                 passed     failed      skipped    time  commit"
        for piece in $pieces; do
            result=$report/$(echo "$piece" | tr : -).result
            if [ -s "$result" ]; then
                sed 's/^/    /' "$result"
            else
                printf '    %-20s not run\n' "$piece"
            fi
        done
        for piece in $pieces; do
            log=$report/$(echo "$piece" | tr : -).log
            [ -s "$log" ] || continue
            printf '\n## %s\n\n%s\n\n' "$piece" "$(about "$piece")"
            write_piece "$log"
        done
    } >"$report/report.md.new" && mv "$report/report.md.new" "$report/report.md" &&
        echo "gpu-check: the report is $report/report.md"
}
