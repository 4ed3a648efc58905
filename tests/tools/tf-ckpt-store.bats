#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Stores as files: where they are created, which users may write to them, damage and repair.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
entry init = ^set
entry step = ^add
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]}
zero = Const() {dtype=float32, value=[0,0]}
set = Assign(v, zero)
add = AssignAdd(v, x)
TEXT
    tf-graph --text m.txt >m.tfg
    for steps in 1 2 3; do
        tf-exec -g m.tfg --run step --feed 'x=[1,2.5]' -n $steps --save $steps.ckpt
    done
}

fill() { # STORE
    tf-ckpt init "$1"
    for steps in 1 2 3; do tf-ckpt import $steps.ckpt "$1"; done
}

# One line on stderr, which is or begins with LINE, and nothing on stdout.
refuses() { # STATUS LINE ARGUMENT...
    local wanted=$1 line=$2
    shift 2
    run --separate-stderr tf-ckpt "$@"
    [[ $status -eq $wanted && $stderr == "tf-ckpt: $line"* && ${#stderr_lines[@]} -eq 1 &&
        -z $output ]] || { echo "tf-ckpt $*: $status, $stderr$output" && false; }
}

# A shell that may mount.
may_mount() {
    unshare -rm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || skip "may not mount"
}

@test "a store is made whole on a disk of any size, or not at all: 74" {
    may_mount
    mkdir disk
    # shellcheck disable=SC2016  # for the shell in there
    unshare -rm sh -eu -c '
        made=0 full=0
        for kib in $(seq 4 4 64); do
            mount -t tmpfs -o size=${kib}k none disk
            code=0
            tf-ckpt init disk/store 2>err || code=$?
            case $code in
            0) made=$((made + 1)); tf-ckpt list disk/store >/dev/null ;;
            74) full=$((full + 1)); [ "$(wc -l <err)" = 1 ] && [ -z "$(ls -A disk)" ] ;;
            *) echo "$kib KiB: $code: $(cat err)"; exit 1 ;;
            esac || { echo "$kib KiB: $(cat err; ls -AR disk)"; exit 1; }
            umount disk
        done
        [ $made -gt 0 ] && [ $full -gt 4 ]'
}

@test "a disk that is full when a store is opened is 74, and no signal" {
    may_mount
    mkdir disk
    unshare -rm sh -eu -c '
        mount -t tmpfs -o size=3m none disk
        tf-ckpt init disk/store
        tf-ckpt import 1.ckpt disk/store
        rm disk/store/lock.mdb
        dd if=/dev/zero of=disk/rest bs=4k 2>/dev/null || true
        code=0
        tf-ckpt list disk/store 2>err || code=$?
        cat err
        [ $code = 74 ]
        rm disk/rest
        tf-ckpt diff disk/store 1.ckpt'
}

@test "what creators left that were killed goes, and what a living one makes stays" {
    mkdir s.1-0.tmp s.2-0.tmp s.3-0.tmp s.4-x.tmp
    echo >s.2-0.tmp/data.mdb
    echo >s.2-0.tmp/committed
    echo >s.3-0.tmp/of-somebody-else
    exec 9<s.1-0.tmp
    flock 9
    tf-ckpt init s
    exec 9<&-
    [ "$(echo s.*)" = "s.1-0.tmp s.3-0.tmp s.4-x.tmp" ]
    mkdir -p place/new.7-1.tmp
    tf-ckpt init place
    [ "$(ls place)" = "committed
data.mdb" ]
    strace -qq -o trace.txt -e inject=getppid:error=EIO true 2>/dev/null || skip "may not trace"
    for n in 1 2; do
        strace -f -qq -o trace.txt -e inject=fdatasync:signal=KILL:when=$n tf-ckpt init t || true
    done
    [ ! -e t ]
    tf-ckpt init t
    [ "$(echo t*)" = "t trace.txt" ]
}

@test "a store is made in the root of an empty file system, and in a folder that is there" {
    mkdir full empty
    echo >full/file
    refuses 64 "full: is there already, and no store" init full
    [ "$(ls -A full)" = file ]
    tf-exec -g m.tfg --run step --feed 'x=[1,2.5]' -n 2 --save empty/
    tf-ckpt diff empty 2.ckpt
    may_mount
    mkdir disk
    unshare -rm sh -eu -c '
        for what in tf-ckpt tf-exec; do
            mount -t tmpfs -o size=8m none disk
            mkdir disk/lost+found
            if [ $what = tf-ckpt ]; then
                tf-ckpt init disk
                tf-ckpt import 2.ckpt disk
            else
                tf-exec -g m.tfg --run step --feed "x=[1,2.5]" -n 2 --save disk/
            fi
            tf-ckpt diff disk 2.ckpt
            umount disk
        done'
}

@test "removing writer.lock lets no second writer in, and nothing stays that looks like a lock" {
    fill store
    [ ! -s store/writer.lock ]
    strace -qq -o trace.txt -e inject=getppid:error=EIO true 2>/dev/null || skip "may not trace"
    strace -f -qq -o trace.txt -e inject=fdatasync:delay_enter=2000000:when=1 \
        tf-ckpt import 1.ckpt store --step 9 3>&- &
    soon 10 grep -q ', tf-ckpt import$' store/writer.lock
    rm store/writer.lock
    refuses 75 "store: locked by another process; --lock-wait waits" prune store
    tf-ckpt prune store --lock-wait 30s
    wait $!
    tf-ckpt diff store@9 1.ckpt
    [ ! -s store/writer.lock ]
}

# Writes a .npz of one float under each name; NAMES is a Python expression.
write_npz() { # FILE NAMES
    /usr/bin/python3 - "$@" <<'PY'
import struct, sys, zipfile
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
head += b' ' * (53 + 64 - len(head) - 10 + 10) + b'\n'
npy = b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head + struct.pack('<f', 1)
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    for name in eval(sys.argv[2]):
        z.writestr(name + '.npy', npy)
PY
}

# Damages every copy of a step's manifest.
damage_manifest() { # STORE STEP
    /usr/bin/python3 - "$@" <<'PY'
import sys
file, step = sys.argv[1] + '/data.mdb', bytes([int(sys.argv[2])])
data = bytearray(open(file, 'rb').read())
at, n = data.find(b'TFCKPT\r\n'), 0
while at >= 0:
    found = data.find(b'\xa4step' + step, at, at + 80)
    if found >= 0:
        data[found - 3] ^= 1
        n += 1
    at = data.find(b'TFCKPT\r\n', at + 1)
open(file, 'wb').write(data)
sys.exit(not n)
PY
}

@test "names that cannot be printed are not saved, and named" {
    fill store
    tf-ckpt list --json store >before
    local tab='store: tensor '"'a\\x09b'"' has a name that cannot be printed'
    write_npz tab.npz '["fine", "a\tb"]'
    refuses 65 "$tab" import tab.npz store
    write_npz line.npz '["a\nb"]'
    refuses 65 "store: tensor 'a\\x0ab' has a name" import line.npz store
    write_npz escape.npz '["\x1b[31m"]'
    refuses 65 "store: tensor '\\x1b[31m' has a name" import escape.npz store
    write_npz control.npz '["c\x7f"]'
    refuses 65 "store: tensor 'c\\x7f' has a name" import control.npz store
    write_npz long.npz '["x" * 5000]'
    refuses 65 "store: tensor 'xxx" import long.npz store
    [[ $stderr == *"has a name of 5000 bytes; 4096 are allowed" ]]
    write_npz longest.npz '["x" * 4096, "größer"]'
    tf-ckpt import longest.npz store --step 9
    tf-ckpt verify store --data
    tf-ckpt forget store@9
    tf-ckpt list --json store | diff before -
}

@test "a damaged manifest keeps nobody from the other checkpoints, and can be removed" {
    fill store
    tf-ckpt import 3.ckpt store --step 4
    damage_manifest store 2
    local said='store@2: the manifest'"'"'s digest differs'
    run --separate-stderr tf-ckpt list store
    [ "$status" -eq 0 ]
    [ "$(awk 'NR > 1 {print $1}' <<<"$output" | xargs)" = "1 3 4" ]
    [[ $stderr == "tf-ckpt: $said; tf-ckpt forget STORE@2 removes it" ]]
    refuses 1 "$said" verify store --data
    tf-ckpt init other
    run --separate-stderr tf-ckpt copy store other
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-ckpt: $said"* ]]
    [ "$(tf-ckpt list other | awk 'NR > 1 {print $1}' | xargs)" = "1 3 4" ]
    run --separate-stderr tf-ckpt forget store --keep-last 1 --keep-every 3
    [ "$status" -eq 0 ]
    [[ $stderr == "tf-ckpt: $said"* ]]
    # everything that the damaged one may refer to stays, and the rest goes: step 1's
    run --separate-stderr tf-ckpt prune store -v
    [ "$status" -eq 0 ]
    [[ $output == "8 B removed, 16 B kept" ]]
    tf-ckpt diff store@3 3.ckpt
    run --separate-stderr tf-ckpt forget store@2 --keep-last 1
    [ "$status" -eq 64 ]
    run --separate-stderr tf-ckpt forget store@77
    [ "$status" -eq 66 ]
    [ "$(tf-ckpt forget store@2 -n)" = "step 2  to be forgotten" ]
    tf-ckpt forget store@2
    tf-ckpt verify store --data
    [ "$(tf-ckpt prune store -v)" = "8 B removed, 8 B kept" ]
    # the newest, too
    damage_manifest store 4
    run --separate-stderr tf-ckpt forget store --keep-last 5
    [[ $status -eq 0 && $stderr == "tf-ckpt: store@4: "* && ${#stderr_lines[@]} -eq 1 ]]
    tf-ckpt forget store@4
    tf-ckpt verify store --data
    tf-ckpt diff store 3.ckpt
}

@test "a store that went back to an older commit says so, takes nothing more, and is repaired" {
    fill store
    tf-ckpt import 3.ckpt store --step 5
    # the number of the earlier commit, 4, becomes 6, which makes its meta page the newest
    /usr/bin/python3 -c "
file = open('store/data.mdb', 'r+b')
file.seek(144)
number = file.read(1)[0]
assert number == 4
file.seek(144)
file.write(bytes([number ^ 2]))"
    local said='store: went back to commit 4, step 3; the last one was 5, step 5; '
    said+='tf-ckpt repair mends it'
    run --separate-stderr tf-ckpt list store
    [ "$status" -eq 0 ]
    [ "$stderr" = "tf-ckpt: $said" ]
    [ "$(awk 'NR > 1 {print $1}' <<<"$output" | xargs)" = "1 2 3" ]
    refuses 1 "$said; newest intact is store@3" verify store
    refuses 65 "$said" import 1.ckpt store --step 6
    refuses 65 "$said" show store@5
    run --separate-stderr tf-exec -g m.tfg --run step --feed 'x=[1,2.5]' --restore store
    [ "$status" -eq 0 ]
    [ "$stderr" = "tf-exec: $said; restored store@3" ]
    run --separate-stderr tf-exec -g m.tfg --run step --feed 'x=[1,2.5]' -n 6 --save store/ --resume
    [ "$status" -eq 65 ]
    run --separate-stderr tf-ckpt repair store
    [ "$status" -eq 0 ]
    [ "$stderr" = "tf-ckpt: store: its last commit is back; newest is step 5" ]
    tf-ckpt verify store --data
    tf-ckpt diff store@5 3.ckpt
    [ -z "$(tf-ckpt repair store 2>&1)" ]
    tf-ckpt import 1.ckpt store --step 6
}
