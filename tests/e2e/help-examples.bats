#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The examples of each tool's --help are typed here, literally, where the files that they name are.
# Those that need a running job or another machine are typed by the documents' tests.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples/." "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cp data/digits.csv.gz .
}

# The examples of a tool, a line each; a line that ends in a pipe goes on in the next.
examples() { # TOOL
    "$1" --help | awk 'NR > 2 && /^usage/ { ended = 1 } # read to its end: no SIGPIPE
        NR > 2 && NF && !ended { sub(/^ */, ""); printf "%s%s", $0, /[|]$/ ? " " : "\n" }'
}

# types TOOL N [EXCEPT]: runs the examples, of which there are N, but for those that match EXCEPT.
types() {
    local line n=0
    examples "$1" >lines
    while IFS= read -r line <&9; do
        n=$((n + 1))
        [[ -z ${3-} || ! $line =~ $3 ]] || continue
        timeout 120 bash -c "set -o pipefail; $line" >out 2>err ||
            [[ $? = 141 ]] || { echo "fails: $line"; cat err; return 1; }
    done 9<lines
    [ "$n" = "$2" ] || { echo "$1 has $n examples"; return 1; }
}

digits() { # FILE: the net, placed
    tf-graph digits.lua | tf-opt | tf-place >"$1"
}

forward() { # fwd.tfg: a net that is not trained yet
    cat >fwd.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4, 8}}
h = nn.dense(x, 3, {name = "hidden", activation = Relu})
loss = Mean(Square(h), {0, 1})
LUA
    tf-graph fwd.lua >fwd.tfg
}

records() {
    ./feed --rows 1-256 --batch 64 >train.rec
    ./feed --rows 257-512 --batch 64 >test.rec
}

table() { # FILE: of people
    awk 'BEGIN { print "age,bmi,target"; for (i = 0; i < 400; i++)
        print 20 + i % 60 "," 18 + i % 17 "," i % 90 }' >"$1"
}

idx() { # images.gz and labels.gz, of 256 random images
    python3 - <<'END'
import gzip
import random
import struct
random.seed(1)
with gzip.open("images.gz", "wb") as f:
    f.write(struct.pack(">4I", 2051, 256, 8, 8) + random.randbytes(256 * 64))
with gzip.open("labels.gz", "wb") as f:
    f.write(struct.pack(">2I", 2049, 256) + bytes(i % 10 for i in range(256)))
END
}

@test "tf-ckpt" {
    digits m.tfg
    ./feed --rows 1-1280 --batch 64 --epochs 20 >train.rec # 400 steps
    ./feed --rows 1-1280 --batch 64 --epochs 23 >more.rec
    tf-exec -g m.tfg --run train --fetch loss,accuracy --feed train.rec --save ckpt/ \
        --save-every 50 >/dev/null
    tf-exec -g m.tfg --run train --fetch loss,accuracy --feed more.rec --save ckpt/ --resume \
        >/dev/null
    run -1 tf-ckpt diff ckpt@400 ckpt@460 # they differ
    types tf-ckpt 7 '--job|^tf-ckpt diff'
}

@test "tf-data" {
    table d.csv
    cp d.csv people.csv
    idx
    digits m.tfg
    records
    ./feed --rows 1-384 --batch 64 | tf-exec -g m.tfg --run train --save ck/ >/dev/null
    types tf-data 7 'tail -f'
}

@test "tf-exec" {
    digits m.tfg
    records
    tf-op RandomUniform '[4,64]' dtype=float32 -o x.npy
    types tf-exec 6 'my.cluster'
}

@test "tf-grad" {
    forward
    types tf-grad 2 'tf-exec' # which needs values
    tf-grad --of loss --wrt hidden/W,x fwd.tfg | tf-show --text | grep '^alias grad/x = '
}

@test "tf-graph" {
    forward
    types tf-graph 4
    tf-show --text tanh.tfg | grep ' = Tanh('
}

@test "tf-op" {
    types tf-op 4
}

@test "tf-opt" {
    digits digits.tfg
    types tf-opt 5 '[.][.][.]$'
}

@test "tf-part" {
    digits m.tfg
    cp two.cluster digits.cluster
    tf-graph digits.lua | tf-place --devices CPU:0,CPU:1 >placed.tfg
    mkdir parts
    types tf-part 3
}

@test "tf-place" {
    digits digits.tfg
    cp two.cluster digits.cluster
    records
    tf-exec -g digits.tfg --run train --feed train.rec --trace trace.rec --without all >/dev/null
    tf-show --costs trace.rec >digits.costs
    types tf-place 3
}

@test "tf-replicate" {
    cp two.cluster C
    digits digits.tfg
    types tf-replicate 5 cnn
}

@test "tf-show" {
    digits digits.tfg
    cp digits.tfg m.tfg
    cp digits.tfg a.tfg
    cp digits.tfg b.tfg
    records
    tf-exec -g m.tfg --run train --feed train.rec --trace trace.rec >/dev/null
    types tf-show 8 'predictions'
}
