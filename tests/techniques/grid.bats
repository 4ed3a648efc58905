#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Images in tiles over four processes: training gives what it gives in one, and what crosses is the
# halo, no more.
# shellcheck disable=SC2030,SC2031,SC2154  # root is of use_tools, pids of each test
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1 TF_EXACT=1
    pids=()
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 2 2 3 3 >c
    tf-graph "$root/tests/techniques/grid.lua" | tf-opt >m.tfg
    tf-replicate --grid 2x2 m.tfg | tf-place -c c | tf-part >p.tfg
    python3 - <<'EOF'
import random, struct
random.seed(1)
def npy(name, kind, shape, values):
    head = str({"descr": kind, "fortran_order": False, "shape": shape})
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(name, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        out.write(struct.pack("<%d%s" % (len(values), "f" if kind == "<f4" else "i"), *values))
npy("x.npy", "<f4", (40, 18, 15, 3), [random.gauss(0, 1) for _ in range(40 * 18 * 15 * 3)])
npy("y.npy", "<i4", (40,), [random.randrange(10) for _ in range(40)])
EOF
    tf-data npy x=x.npy y=y.npy --batch 4 --epochs 4 >f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

serve() { # the tiles but the first
    local k
    for k in 1 2 3; do
        tf-exec serve -c c --task worker:$k 2>w$k.err 3>&- &
        pids+=($!)
    done
    for k in 1 2 3; do
        soon 10 grep -q "ready on" w$k.err || { cat w$k.err; return 1; }
    done
}

train() { # OPTION...
    timeout 60 tf-exec -g p.tfg -c c --task worker:0 --run train --fetch loss -q "$@" 3>&-
}

alone() { # OPTION...
    tf-exec -g m.tfg --run train --fetch loss -q "$@"
}

# close RESULT RESULT [MOST]: losses, by 1e-6, or in steps behind the first by MOST
close() {
    paste <(tf-show --json "$1" | jq .loss) <(tf-show --json "$2" | jq .loss) |
        awk -v rest="${3:-1e-6}" '
        { d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > most) most = d
          bad = bad || d > (NR == 1 ? 1e-6 : rest) }
        END { print NR " steps, at most " most + 0; exit bad || NR < 2 }'
}

@test "four processes train as one" {
    alone --feed f.rec >one.rec
    serve
    train --feed f.rec >four.rec
    [ "$(tf-show --json four.rec | wc -l)" = 40 ]
    close one.rec four.rec
    # forward all is the same to the last bit: what comes out of the tiles, the logits, the loss
    alone --feed f.rec -n 1 --fetch loss,logits,Reshape >one.rec
    train --feed f.rec -n 1 --fetch loss,logits,Reshape >four.rec
    tf-show --json one.rec | jq -e '.Reshape | flatten | length == 4 * 8 * 7 * 4'
    cmp <(tf-show --json one.rec) <(tf-show --json four.rec)
}

@test "what crosses is the formula's bytes, and no filter of one position" {
    local grid
    for grid in 1x2 2x1 2x2 3x2; do
        tf-replicate --grid $grid --towers '/device:CPU:*' m.tfg |
            tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3,CPU:4,CPU:5 | tf-part | tf-show --text |
            python3 "$root/tests/techniques/grid.py" ${grid%x*} ${grid#*x} >bytes
        cat bytes
        [ "$(awk '$1 == $2 && $1 > 10000' bytes | wc -l)" = 1 ]
    done
}

# Tiles on shards, whose checkpoints are those of all of them.
on_shards() { # GRID OPTION...: p.tfg, and the shards
    local k n=$((${1%x*} * ${1#*x}))
    for ((k = 0; k < n; k++)); do echo "task ps:$k unix:p$k"; done >c
    echo 'task worker:0 unix:w0' >>c
    tf-replicate --grid "$1" --towers '/job:ps/task:*' m.tfg | tf-place -c c | tf-part >p.tfg
    for ((k = 0; k < n; k++)); do
        tf-ps serve -c c --task ps:$k "${@:2}" 2>p$k.err 3>&- &
        pids+=($!)
    done
    for ((k = 0; k < n; k++)); do
        soon 10 grep -q "ready on" p$k.err || { cat p$k.err; return 1; }
    done
}

# counted GRID STEPS: bytes of values that shards got from each other, and that the driver sent
# them, with all that a run of so many steps begins with
counted() {
    local pid
    on_shards "$1"
    train --feed f.rec -n "$2" --trace t >/dev/null
    tf-ps stats --by peer --json -c c >links
    for pid in "${pids[@]}"; do kill "$pid" && wait "$pid"; done
    pids=()
    jq -s 'map(select(.peer | startswith("ps:")).got) | add' links
    tf-show --json t | jq -s --argjson n "$2" 'map(select(.peer and .step == $n).sent) | add'
}

@test "links count the formula's bytes, values of groups aligned, and from the driver its feeds" {
    local grid
    for grid in 1x2 2x2 3x2; do
        counted $grid 10 >ten
        counted $grid 30 >thirty
        # of twenty steps; a step has a number, too
        tf-show --text p.tfg | python3 "$root/tests/techniques/grid.py" ${grid%x*} ${grid#*x} |
            awk '{ print 20 * $3; print 20 * (4 * 18 * 15 * 3 * 4 + 4 * 4 + 8) }' >want
        paste ten thirty want
        diff want <(paste ten thirty | awk '{ print $2 - $1 }')
    done
}

@test "checkpoints go on in one process, in other grids, and the other way" {
    local grid
    tf-data npy x=x.npy y=y.npy --batch 4 --epochs 4 --after 20 >g.rec
    alone --feed f.rec -n 20 --save one/ >/dev/null
    alone --feed g.rec --restore one/ >one.rec
    on_shards 2x2
    train --feed f.rec -n 20 >/dev/null
    TF_CLUSTER=c tf-ps save four/
    alone --feed g.rec --restore four/ >from-four.rec
    close one.rec from-four.rec
    for grid in 1x2 3x2; do
        tf-replicate --grid $grid --towers '/device:CPU:*' m.tfg |
            tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3,CPU:4,CPU:5 | tf-part >q.tfg
        tf-exec -g q.tfg --run train --fetch loss -q --feed g.rec --restore four/ >other.rec
        close one.rec other.rec
        tf-exec -g q.tfg --run train -q --feed f.rec -n 20 --save $grid.ckpt >/dev/null
        alone --feed g.rec --restore $grid.ckpt >other.rec
        close one.rec other.rec
    done
    tf-exec -g q.tfg --run train --fetch loss -q --feed g.rec --restore 1x2.ckpt >other.rec
    close one.rec other.rec
    TF_CLUSTER=c tf-ps restore one/
    train --feed f.rec >back.rec # what shards have counted is passed over
    close one.rec back.rec
    # as others know the model: whole
    tf-ckpt export four/ whole.npz
    python3 -c 'import zipfile; print(*sorted(zipfile.ZipFile("whole.npz").namelist()))' >names
    grep -q l1/W.npy names
    [ "$(grep -c part_ names)" = 0 ]
}

@test "one line starts the tiles, saves them, and goes on from there" {
    local text
    tf-data npy x=x.npy y=y.npy --batch 4 --epochs 4 --after 20 >g.rec
    alone --feed f.rec >one.rec
    tf-run --grid 2x2 --fetch loss --job run m.tfg -- cat "$PWD/f.rec" 3>&-
    close one.rec run/worker-0.rec
    # cell k is on shard k
    tf-show --text run/parts.tfg | grep '^l1/W/part_. = Variable' >cells
    for k in 0 1 2 3; do grep -q "^l1/W/part_$k = .*/job:ps/task:$k/" cells; done
    tf-run --grid 2x2 --save on4/ --steps 20 m.tfg -- cat "$PWD/f.rec" 3>&-
    alone --feed f.rec -n 20 --save one/ >/dev/null
    alone --feed g.rec --restore one/ >one.rec
    alone --feed g.rec --restore on4/ >other.rec
    close one.rec other.rec
    # another grid goes on from what this one has saved
    tf-run --grid 1x2 --restore on4 --fetch loss --job two m.tfg -- cat "$PWD/g.rec" 3>&-
    close one.rec two/worker-0.rec
    while IFS='|' read -r options text; do
        # shellcheck disable=SC2086  # options
        run --separate-stderr tf-run $options m.tfg -- cat f.rec
        [ "$status" -eq 64 ]
        [[ $stderr == *"$text"* ]]
    done <<'EOF'
--grid 2|tf-run: --grid is ROWSxCOLUMNS of 2 to 1024 tiles, not '2'
--grid 1x1|tf-run: --grid is ROWSxCOLUMNS of 2 to 1024 tiles, not '1x1'
--grid 2x2x2|tf-run: --grid is ROWSxCOLUMNS of 2 to 1024 tiles, not '2x2x2'
--grid 2x2 --workers 2|tf-run: --grid has one worker, which drives all tiles
--grid 2x2 --ps 3|tf-run: --grid 2x2: 4 tiles want as many shards, not 3
--grid 2x2 --mode async|tf-replicate: --grid has no workers, for whom --mode would be
--grid 2x2 --accumulate 2|tf-replicate: --grid has no workers, for whom --accumulate would be
EOF
}

has_saved() {
    [ -n "$(tf-ckpt list --json killed 2>/dev/null)" ]
}

has_stepped() {
    [ "$(tf-show --json job/worker-0.rec 2>/dev/null | wc -l)" -gt 20 ]
}

@test "a job in tiles has its bits whoever is killed, and goes on where it was" {
    local feed=(tf-data npy "x=$PWD/x.npy" "y=$PWD/y.npy" --batch 4 --epochs 30) who
    tf-run --grid 2x2 --save whole/ --fetch loss --job job m.tfg -- "${feed[@]}" 3>&-
    [ "$(tf-ckpt list --json whole | jq .step)" = 300 ]
    for who in worker-0 ps-0 ps-2; do
        rm -rf job killed go
        timeout -k 5 120 tf-run --grid 2x2 --save killed/ --save-every 50 --fetch loss --job job \
            m.tfg -- "$root/tests/lib/halfway" "$PWD/go" "${feed[@]}" 2>err 3>&- &
        local tf_run=$!
        soon 30 has_saved
        kill -9 "$(cat "job/$who.pid")"
        soon 30 grep '(restart 1 of 5)' err
        touch go
        wait "$tf_run" || { cat err; return 1; }
        grep "restored from .*killed@" err
        tf-ckpt diff whole@300 killed@300
    done
    # TERM saves what there is; --resume goes on from there
    rm -rf job killed go
    timeout -k 5 120 tf-run --grid 2x2 --save killed/ --fetch loss --job job \
        m.tfg -- "$root/tests/lib/halfway" "$PWD/go" "${feed[@]}" 2>err 3>&- &
    tf_run=$!
    soon 30 has_stepped
    kill "$tf_run"
    wait "$tf_run" || [ $? -eq 143 ]
    tf-run --grid 2x2 --save killed/ --resume --fetch loss --job job m.tfg -- "${feed[@]}" 3>&-
    tf-ckpt diff whole@300 killed@300
}

@test "a task that is killed ends the step with its name; started again, all go on alike" {
    local status=0 driver
    on_shards 2x2
    train --feed f.rec -n 20 >/dev/null
    TF_CLUSTER=c tf-ps save four/
    train --feed f.rec >whole.rec
    tf-data npy x=x.npy y=y.npy --batch 4 --epochs 0 2>/dev/null | train --feed - >/dev/null 2>err &
    driver=$!
    sleep 1
    kill -9 "${pids[2]}"
    wait $driver || status=$?
    cat err
    [ $status != 0 ]
    grep -q ps:2 err
    kill_pids "${pids[@]}"
    pids=()
    on_shards 2x2 --save four/ --resume
    train --feed f.rec >rest.rec
    [ "$(tf-show --json rest.rec | wc -l)" = 20 ]
    cmp <(tf-show --json whole.rec | jq .loss) <(tf-show --json rest.rec | jq .loss)
}

# big SIDE LAYERS CHANNELS: m.tfg, of images of so many rows and columns, and one of them
big() {
    cat >big.lua <<EOF
x = Placeholder{dtype = float32, shape = {1, $1, $1, 4}}
local c = x
for i = 1, $2 do c = nn.conv2d(c, $3, 3, {name = "c" .. i, activation = Tanh}) end
loss = Mean(Square(nn.conv2d(nn.avg_pool(c, 8), 1, 1, {name = "end"})), {0, 1, 2, 3})
entry.train = minimize(loss, optim.sgd{rate = 0.01})
EOF
    tf-graph big.lua | tf-opt >m.tfg
    python3 - "$1" <<'EOF'
import struct, sys
side = int(sys.argv[1])
head = str({"descr": "<f4", "fortran_order": False, "shape": (1, side, side, 4)})
head += " " * (63 - (10 + len(head)) % 64) + "\n"
n = side * side * 4
with open("big.npy", "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    out.write(struct.pack("<%df" % n, *[i * 7919 % 101 / 101 for i in range(n)]))
EOF
}

@test "what one process has no memory for four train" {
    big 256 6 32
    printf 'task worker:0 unix:w0 memory=60M\n' >c
    run tf-place -c c m.tfg
    [ "$status" = 65 ]
    [[ "$output" == *"does not fit"* ]]
    printf 'task worker:%d unix:w%d memory=60M\n' 0 0 1 1 2 2 3 3 >c
    tf-replicate --grid 2x2 m.tfg | tf-place -c c | tf-part >p.tfg
    # nor, were it placed, would it run
    sed 's/ memory=.*//' c | head -n 1 >any
    tf-place -c any m.tfg | tf-part >alone.tfg
    printf 'task worker:0 unix:w0 memory=60M\n' >one
    run tf-exec -g alone.tfg -c one --task worker:0 --run train --feed x=big.npy -n 3 -q
    [ "$status" = 71 ]
    [[ "$output" == *"no memory"* ]]
    serve
    train --feed x=big.npy -n 3 >four.rec
    alone --feed x=big.npy -n 3 >one.rec
    close one.rec four.rec 1e-5 # seven layers: what rounding makes of gradients adds up
}

@test "nor where the system gives a process no more address space" {
    export MALLOC_ARENA_MAX=1 # each arena of malloc's reserves 64 MB
    local limit options=(--threads 1 --feed x=big.npy -n 2)
    big 512 16 16
    tf-replicate --grid 2x2 m.tfg | tf-place -c c | tf-part >p.tfg
    alone "${options[@]}" >one.rec
    serve
    limit=$(awk '/^VmSize:/ { print $2 + 260000 }' "/proc/${pids[0]}/status") # KiB
    kill_pids "${pids[@]}"
    pids=()
    ulimit -S -v "$limit"
    run alone "${options[@]}"
    [ "$status" = 71 ]
    [[ "$output" == *"no memory"* ]]
    serve
    train "${options[@]}" >four.rec
    ulimit -S -v unlimited
    close one.rec four.rec 1e-5
}
