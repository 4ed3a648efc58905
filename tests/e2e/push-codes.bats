#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that push quantized gradients to shards: the quantization error is kept by the worker
# alone, and yet none of it is lost, whichever process dies.
# shellcheck disable=SC2030,SC2031,SC2154  # workers is each test's, stderr of run, feed of lib
load ../lib/tools
load ../lib/push_codes

bats_require_minimum_version 1.5.0

@test "what counted and what was lost are all gradients, also when a worker dies" {
    nothing_is_lost <<'END'
sync 2 worker-1 sync,bits=1
async 1 worker-0 async,top=0.02
END
}

@test "a job in which a worker is killed ends with the bits of one without" {
    digits
    export workers=3
    job whole sync,bits=1 --save-every 4 m.tfg -- "${feed[@]}"
    killed one sync,bits=1 worker-0 "$root/tests/lib/halfway" "$PWD/one.go" "${feed[@]}"
    same whole one
}

# spoiled NAME WHY COMMAND...: worker 1 dies in its step 7, between two checkpoints and in no wait
# for data, and its journal is changed; it prints WHY, and all go back to the newest checkpoint
spoiled() {
    local name=$1 why=$2 pid tool bin
    shift 2
    bin=$(dirname "$(command -v tf-exec)")
    mkdir "$name-bin"
    for tool in "$bin"/tf-*; do ln -s "$tool" "$name-bin/${tool##*/}"; done
    rm "$name-bin/tf-exec" "$name-bin/tf-run"
    cp "$bin/tf-run" "$name-bin/tf-run"
    ln -sfn "$bin/../lib" lib
    cat >"$name-bin/tf-exec" <<END
#!/bin/sh
case " \$* " in *" --task worker:1 "*)
    mkdir "$PWD/$name-once" 2>/dev/null && export TF_FAILPOINTS=journal.commit:7:stop ;;
esac
exec "$bin/tf-exec" "\$@"
END
    chmod +x "$name-bin/tf-exec"
    PATH=$PWD/$name-bin:$PATH job "$name" sync,bits=1 --save-every 4 --lease 20s m.tfg -- \
        "${feed[@]}" &
    pid=$!
    soon 60 test -s "job-$name/worker-1.pid"
    soon 60 grep -q '^State:.*T' "/proc/$(cat "job-$name/worker-1.pid")/status"
    (cd "job-$name" && "$@")
    kill -9 "$(cat "job-$name/worker-1.pid")"
    wait $pid
    cat "$name.err" "job-$name/worker-1.err"
    finds 'restored from' "$name.err"
    finds "worker-1.journal: $why\$" "job-$name/worker-1.err"
}

@test "what a worker had kept and is another's, or was changed, is refused: all go back" {
    digits
    export workers=3
    job whole sync,bits=1 --save-every 4 m.tfg -- "${feed[@]}"
    spoiled other 'is of another worker, graph or job' cp worker-0.journal worker-1.journal
    same whole other
    spoiled zeros 'is damaged' dd if=/dev/zero of=worker-1.journal bs=64k seek=3 count=1000 \
        conv=notrunc status=none
    same whole zeros
}

@test "after=N: the first N updates are those of whole gradients, then nothing is lost either" {
    rows 16
    local plain=(tf-data csv x.csv x=1-1024 --batch 1)
    job plain sync m.tfg -- "${plain[@]}"
    job first sync,bits=1,after=8 m.tfg -- "${plain[@]}"
    cmp <(tf-ckpt cat plain w | tf-show --json) <(tf-ckpt cat first w | tf-show --json)
    tf-ckpt cat first worker_value:w/gradient/residual/1 | tf-show --json |
        jq -e 'map(flatten | all(. == 0)) | all'
    nothing_is_lost <<'END'
sync 2 worker-1 sync,bits=1,after=12
async 1 worker-0 async,top=0.02,after=9
downpour 1 worker-1 downpour,push=2,threshold=2,after=5
END
}

@test "after=N is counted on where a job goes on: killed or not, it ends with the same bits" {
    digits
    workers=3 job whole sync,bits=1,after=11 --save-every 4 m.tfg -- "${feed[@]}"
    workers=3 killed one sync,bits=1,after=11 worker-0 \
        "$root/tests/lib/halfway" "$PWD/one.go" "${feed[@]}"
    same whole one
    workers=3 job coded sync,bits=1 m.tfg -- "${feed[@]}"
    run -1 tf-ckpt diff whole coded
}

@test "it goes on with fewer workers, and with more: what all have lost stays" {
    rows 60
    local all=(tf-data csv all.csv x=1-1024 --batch 1)
    cp x.csv all.csv
    workers=3 job some async,top=0.02 --steps 8 m.tfg -- "${all[@]}"
    head -n 24 all.csv >x.csv
    all_there some 1
    for n in 2 5; do
        rm -rf more
        cp -r some more
        workers=$n job more async,top=0.02 --resume --steps 12 m.tfg -- "${all[@]}"
        # workers that were there before skip as many of their present rows
        { head -n 24 all.csv && awk -v n=$n '{ k = (NR - 1) % n; j = int((NR - 1) / n) }
            j < 12 && (k > 2 || j > 7)' all.csv; } >x.csv
        all_there more 1
        grep -cx "worker_value:.*/[0-$((n - 1))]" names | grep -x $n
        [ "$(wc -l <names)" = $n ]
    done
}

@test "a job that waits for data saves, and ends, as any other" {
    rows 40
    half waits
    job waits sync,bits=1 m.tfg -- "${feed[@]}" &
    local pid=$!
    soon 60 test -S job-waits/ps-0.sock
    have_half() { tf-ps status --job job-waits | finds 'step=9 '; } # the header is in it, too
    soon 60 have_half
    tf-ps save other/ --job job-waits --timeout 30s
    tf-ckpt show --all other | grep -c '^worker_value:' | grep -x 2
    tf-run stop --job job-waits
    local code=0
    wait "$pid" || code=$?
    [ "$code" -eq 143 ]
    tf-ckpt list --json waits | jq -e '.step == 9'
    head -n 18 x.csv >y.csv
    mv y.csv x.csv
    all_there waits 2
}

@test "who comes back without what it had kept is told so, and so are the others" {
    rows 40
    printf 'task ps:0 unix:p\ntask worker:0 unix:w\n' >c
    tf-replicate --mode async,bits=1 m.tfg | tf-place -c c | tf-part >p.tfg
    tf-ps serve -c c --task ps:0 2>ps.err 3>&- &
    pids=($!)
    soon 10 grep -q 'ps:0: ready' ps.err
    tf-data csv x.csv x=1-1024 --batch 1 -o f.rec
    work() { timeout 20 tf-exec -c c --task worker:0 -g p.tfg --run train "$@"; }
    TF_FAILPOINTS=worker.leave:1:error run -69 work --feed f.rec --steps 3
    run -69 --separate-stderr work --feed f.rec --steps 3
    why="worker:0 was started again without what it had kept since its step 0: all have to go back"
    [[ $stderr == *"$why to a checkpoint" ]]
    tf-ps status -c c | grep ' failed=worker:0 was started again'
}

# in_of MODE: bytes of values that the shard gets from a worker in a step of 9
in_of() {
    tf-replicate --mode "$1" m.tfg | tf-place -c c | tf-part >p.tfg
    tf-ps serve -c c --task ps:0 --no-key 2>ps.err 3>&- &
    pids=($!)
    soon 10 grep -q 'ps:0: ready' ps.err
    tf-exec -c c --task worker:0 -g p.tfg --run train --steps 9 --trace t --no-key \
        >out 2>worker.err
    kill "${pids[0]}"
    wait "${pids[0]}" || [ $? -eq 143 ]
    tf-show --json t | jq -s '[.[] | select(.peer == "ps:0") | .sent] | (.[8] - .[1]) / 7'
}

@test "what a worker sends is the code, what formulas say" {
    port=$((20000 + RANDOM % 10000))
    printf 'task ps:0 127.0.0.1:%d\ntask worker:0 127.0.0.1:%d\n' $port $((port + 1)) >c
    cat >m.lua <<'LUA'
local x = RandomUniform({8, 256}, {dtype = float32})
local W = variable{name = "W", shape = {256, 1024}, init = init.normal{}}
loss = nn.mse(MatMul(x, W), RandomUniform({8, 1024}, {dtype = float32}))
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    tf-graph m.lua | tf-opt >m.tfg
    # for each group of 1024, or 65536, elements; and 8 bytes for the version
    while read -r mode bytes; do
        sent=$(in_of "sync,$mode")
        [ "$(jq -n "$sent - $bytes | fabs <= 64")" = true ] || { echo "$mode: $sent"; return 1; }
    done <<END
bits=1 $((256 * (8 + 1024 / 8)))
bits=4 $((256 * (8 + 1024 / 2)))
bits=2,threshold=0.1 $((256 * 1024 / 4))
top=0.01 $((4 * 656 * 8))
bits=1,after=5 $(((3 * 256 * 1024 * 4 + 4 * 256 * (8 + 1024 / 8)) / 7))
END
}
