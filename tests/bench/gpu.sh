#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training steps of gpu.lua's nets on a GPU, in turns with PyTorch's (peer_gpu.py) on the same one:
# each round runs ours, and PyTorch in each of its ways. The ratio to the fastest of these is taken
# within each round. "steps" is the time of small ops in a captured step, and the part of the time
# of copying feeds to the device in which it also computes.
# usage: gpu.sh [MODEL | steps]... | card     (all; card: is there one? 69, and a line, if not)
# PYTHON names a Python with torch (python3); without it there are only our own figures. ROUNDS (3),
# STEPS (by model), TYPES ("float32 tf32 bf16"), HOWS ("eager compile graphs"). ON=CPU: a step of
# each net with batches of one, on the CPU, merely to check that all of them run.
set -euo pipefail
trap '' PIPE # of a peer that dies
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
PATH=$(realpath -m "$build")/bin:$PATH
rounds=${ROUNDS:-3}
PYTHON=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

batch_of() { # MODEL
    case $1 in
    softmax) echo 32 ;;
    vgg | inception) echo 64 ;;
    *) echo 128 ;;
    esac
}

steps_of() { # MODEL: half a second or so
    case $1 in
    softmax | mlp | chain) echo 1000 ;;
    vgg | inception) echo 15 ;;
    overfeat | googlenet) echo 25 ;;
    *) echo 50 ;;
    esac
}

can() { # TOOL OPTION: whether this build has it
    "$1" --help | grep -e "$2 " >/dev/null
}

build_net() { # MODEL BATCH TYPE FILE [OPTION...]
    local model=$1 batch=$2 half=() file=$4
    [[ $3 != bf16 ]] || half=(--half bf16)
    shift 4
    tf-graph -D "model=$model" -D "batch=$batch" "$@" tests/bench/gpu.lua | tf-opt "${half[@]}" |
        tf-place -q --soft --devices GPU:0,CPU:0 | tf-part >"$file"
}

seconds() { # GRAPH STEPS OPTION...: of a whole run
    local began=$EPOCHREALTIME graph=$1 steps=$2
    shift 2
    tf-exec -q -g "$graph" --run train --steps "$steps" "$@" >/dev/null || return
    echo "$EPOCHREALTIME $began" | awk '{ print $1 - $2 }'
}

# The time that as many further steps take.
ours() { # GRAPH STEPS OPTION...: milliseconds a step, "-" if it fails
    local less more graph=$1 steps=$2
    shift 2
    if ! less=$(seconds "$graph" "$steps" "$@") ||
        ! more=$(seconds "$graph" $((3 * steps)) "$@"); then
        touch "$work/failed"
        echo -
        return
    fi
    awk -v less="$less" -v more="$more" -v n="$steps" \
        'BEGIN { print (more - less) / (2 * n) * 1e3 }'
}

# One process of PyTorch for all types and rounds of a model: it compiles once.
start_peer() { # MODEL BATCH
    mkfifo "$work/asked" "$work/answered"
    "$PYTHON" -W ignore tests/bench/peer_gpu.py "$1" "$2" <"$work/asked" >"$work/answered" \
        2>"$work/peer.err" &
    exec 5>"$work/asked" 6<"$work/answered"
    rm "$work/asked" "$work/answered"
}

ask_peer() { # HOW TYPE STEPS: milliseconds a step, "-" if it cannot
    local answer=
    echo "$*" >&5 && read -r answer <&6 || answer=-
    [[ $answer == - ]] || answer=$(awk -v s="$answer" 'BEGIN { print s * 1e3 }')
    echo "$answer"
}

end_peer() {
    exec 5>&- 6<&-
    wait
    grep -E "^$1, " "$work/peer.err" || true # ways that do not work
}

# Prints a line: medians of all columns, and the ratio of ours to the fastest of the others.
summarize() { # MODEL BATCH TYPE, rounds on stdin
    awk -v head="$(printf '%-10s %5d %-8s' "$@")" '
        function median(column,   i, j, n, x, value) {
            for (i = 1; i <= NR; i++) {
                if (cell[i, column] == "-") return "-"
                value[++n] = cell[i, column] + 0
            }
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && value[j - 1] > value[j]; j--) {
                    x = value[j]; value[j] = value[j - 1]; value[j - 1] = x
                }
            i = int((n + 1) / 2)
            return sprintf("%.3f", (value[i] + value[n + 1 - i]) / 2)
        }
        {
            for (i = 1; i <= NF; i++) cell[NR, i] = $i
            best = "-"
            for (i = 2; i <= NF; i++)
                if ($i != "-" && (best == "-" || $i + 0 < best + 0)) best = $i
            cell[NR, NF + 1] = best == "-" || $1 == "-" ? "-" : $1 / best
            columns = NF
        }
        END {
            for (i = 1; i <= columns + 1; i++) head = head sprintf(" %11s", median(i))
            print head
        }'
}

print_head() {
    # shellcheck disable=SC2086  # words
    printf '%-10s %5s %-8s' MODEL BATCH TYPE && printf ' %11s' OURS/ms $hows RATIO && echo
}

bench() { # MODEL
    local batch steps type how round options
    batch=$(batch_of "$1") steps=${STEPS:-$(steps_of "$1")}
    [[ -z $hows ]] || start_peer "$1" "$batch"
    for type in ${TYPES:-float32 tf32 bf16}; do
        options=()
        if [[ $type == tf32 ]]; then
            can tf-exec --tf32 || continue
            options=(--tf32)
        elif [[ $type == bf16 ]]; then
            can tf-opt --half || continue
        fi
        build_net "$1" "$batch" "$type" "$work/net"
        # as PyTorch does before it is timed; a failure shows in its round
        tf-exec -q -g "$work/net" --run train --steps 1 "${options[@]}" >/dev/null 2>&1 || true
        for ((round = 0; round < rounds; round++)); do
            printf '%s' "$(ours "$work/net" "$steps" "${options[@]}")"
            for how in $hows; do
                [[ $1/$how != chain/compile ]] || { printf ' -' && continue; } # it makes one kernel
                printf ' %s' "$(ask_peer "$how" "$type" "$steps")"
            done
            echo
        done | summarize "$1" "$batch" "$type"
    done
    [[ -z $hows ]] || end_peer "$1"
}

# Of the time that copies to the device take in a trace, the part in which it also computes.
overlap() { # TRACE
    tf-show --json "$1" | sed -nE \
        's/.*"start":([0-9]+),"ns":([0-9]+),"queue":"(compute|in)".*/\1 \2 \3/p' | sort -n |
        awk '
            $3 == "compute" && n && $1 <= to[n] { if ($1 + $2 > to[n]) to[n] = $1 + $2; next }
            $3 == "compute" { from[++n] = $1; to[n] = $1 + $2; next }
            { start[++copies] = $1; end[copies] = $1 + $2; all += $2 }
            END {
                k = 1
                for (i = 1; i <= copies; i++) {
                    while (k < n && to[k] < start[i]) k++
                    for (j = k; j <= n && from[j] < end[i]; j++) {
                        a = from[j] > start[i] ? from[j] : start[i]
                        b = to[j] < end[i] ? to[j] : end[i]
                        if (b > a) both += b - a
                    }
                }
                printf "feeds: %d copies in %.3f ms, %.0f %% of it beside the computation\n",
                    copies, all / 1e6, all ? 100 * both / all : 0
            }'
}

steps() {
    TYPES=float32 bench chain
    echo "chain: 200 ops a step, each of 1 KiB"
    build_net fed "$feed_batch" float32 "$work/fed"
    tf-op RandomStandardNormal "[$((8 * feed_batch)),784]" dtype=float32 -o "$work/x.npy"
    tf-data npy "x=$work/x.npy" --batch "$feed_batch" --epochs 4 >"$work/feed"
    tf-exec -q -g "$work/fed" --run train --feed "$work/feed" --trace "$work/trace" >/dev/null
    overlap "$work/trace"
}

on_cpu() { # MODEL
    tf-graph -D "model=$1" -D batch=1 -D length=3 tests/bench/gpu.lua | tf-opt >"$work/net"
    tf-place -q --soft --devices GPU:0,CPU:0 "$work/net" | tf-part >"$work/parts"
    tf-place -q "$work/net" |
        tf-exec -q --run train --fetch loss --steps 1 | tf-show | sed "s/^step 1/$1/"
}

models=("$@")
((${#models[@]} > 0)) || models=(steps softmax mlp alexnet overfeat vgg googlenet inception lstm)
if [[ ${ON-} == CPU ]]; then
    for model in "${models[@]}"; do on_cpu "$model"; done
    exit
fi
tf-graph -e 'y = Neg(Const(1.0), {device = "/device:GPU:0"})' |
    tf-place -q --devices GPU:0,CPU:0 | tf-part | tf-exec --fetch y >/dev/null || exit
[[ ${models[0]} != card ]] || exit 0
export TF_GPU_CHOICES=${TF_GPU_CHOICES-$work/choices} # algorithms are measured, as PyTorch's
feed_batch=${FEED_BATCH:-4096} hows=${HOWS-eager compile graphs}
"$PYTHON" -c 'import torch; print("torch", torch.__version__)' 2>/dev/null ||
    { echo "no torch (set PYTHON): our own figures"; hows=; }
print_head
for model in "${models[@]}"; do
    if [[ $model == steps ]]; then steps; else bench "$model"; fi
done
[[ ! -e $work/failed ]]
