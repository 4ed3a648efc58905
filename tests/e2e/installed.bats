#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The results of `make install` for others: the library, its headers, and custom ops. Everything is
# compiled against the installed files only, as the examples say.
# shellcheck disable=SC2154  # root and stderr are of use_tools and run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    [ "${BUILD:-build}" = build ] || return 0
    use_tools
    make -s -C "$root" install-files CPU_ISAS="$(isas)" PREFIX="$BATS_FILE_TMPDIR/prefix"
}

setup() {
    [ "${BUILD:-build}" = build ] || skip "sanitizers want their own libraries first"
    use_tools
    prefix=$BATS_FILE_TMPDIR/prefix
    PATH=$prefix/bin:$PATH
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib OMP_NUM_THREADS=1
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

# compile_op FILE [OPTION]...: compiles as the example says; the object is op.so
compile_op() {
    # shellcheck disable=SC2046
    cc -shared -fPIC -O2 -Wall -Wextra -Werror $(pkg-config --cflags tf-tools) "$@" -o op.so -lm
}

line_graph() {
    tf-graph "$root/examples/c/line.lua" | tf-opt | tf-place >line.tfg
}

is_line() { # FILE: what the examples print
    diff "$1" - <<'LINE'
loss 0.000000 after step 2000
y = 3.000 x + -1.000
LINE
}

@test "only public headers and one public library are installed, wherever they are staged" {
    make -s -C "$root" install-files CPU_ISAS="$(isas)" DESTDIR="$PWD/stage" PREFIX=/opt/tf
    diff <(cd stage/opt/tf && find . | sort) <(cd "$prefix" && find . | sort)
    grep -q '^prefix=/opt/tf$' stage/opt/tf/lib/pkgconfig/tf-tools.pc
    diff <(ls "$prefix/include/tf-tools") - <<'HEADERS'
tf_op.h
tf_op_calls.h
tf_tools.h
tf_types.h
HEADERS
    diff <(ls "$prefix/lib") - <<'LIBRARIES'
libtf-tools.so
libtf-tools.so.1
pkgconfig
tf-tools
LIBRARIES
}

@test "a prefix may have blanks in it, and what is uninstalled leaves nothing" {
    make -s -C "$root" install-files CPU_ISAS="$(isas)" PREFIX="$PWD/a b"
    diff <(ls) <(echo 'a b')
    line_graph
    eval "cc '$root/examples/c/line.c' \
        $(PKG_CONFIG_PATH="$PWD/a b/lib/pkgconfig" pkg-config --cflags --libs tf-tools) -o line"
    env -u LD_LIBRARY_PATH ./line line.tfg >out
    is_line out
    echo mine >"a b/share/doc/tf-tools/examples/mine"
    make -s -C "$root" uninstall CPU_ISAS="$(isas)" PREFIX="$PWD/a b"
    diff <(find 'a b' ! -type d) <(echo 'a b/share/doc/tf-tools/examples/mine')
    make -s -C "$root" uninstall CPU_ISAS="$(isas)" PREFIX="$PWD/none" # nor minds that nothing is
}

@test "documents, examples and the files of cron and systemd are installed" {
    cd "$prefix/share/doc/tf-tools"
    for file in README.md docs/design.md docs/pictures/shards.svg examples/digits.lua \
        examples/data/digits.csv.gz examples/two.cluster scripts/cron/crontab \
        scripts/systemd/tf-ckpt-save@.timer; do
        cmp "$file" "$root/$file"
    done
    [ -x examples/feed ] && [ -x scripts/cron/restore-drill ]
}

@test "who lacks a library is told by one line what installs it" {
    run -2 --separate-stderr make -s -C "$root" BUILD="$PWD/b" HEADERS='stdio.h no_such.h' \
        "$PWD/b/gen/headers_found"
    # shellcheck disable=SC2154
    local says="make: <no_such.h> is missing: on Debian, scripts/setup build installs it"
    [ "${stderr_lines[0]}" = "$says" ]
}

@test "tf-run finds its parts beside itself" {
    line_graph
    env -i PATH=/usr/bin:/bin "$prefix/bin/tf-run" --dry-run --job job line.tfg -- true >commands
    grep -q "^'tf-ps' 'serve' .* 'ps:0'" commands
    diff <("$prefix/bin/tf-run" --man) "$prefix/share/man/man1/tf-run.1"
}

@test "the library exports the functions of its header and nothing else, and needs libc alone" {
    library=$prefix/lib/libtf-tools.so.1
    grep -o '^[a-z_].*\btf_[a-z_]*(' "$prefix/include/tf-tools/tf_tools.h" |
        grep -o 'tf_[a-z_]*($' | tr -d '(' | sort >declared
    nm -D --defined-only "$library" | awk '{ print $3 }' >names
    run -1 grep -v '^tf_' names
    sed -n 's/@.*//p' names | sort >exported
    diff declared exported
    [ "$(wc -l <exported)" -gt 15 ]
    objdump -p "$library" | finds 'SONAME *libtf-tools.so.1$'
    diff <(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }') <(echo libc.so.6)
}

@test "the headers are C99 and C++, with all warnings" {
    for header in tf_tools tf_op; do
        echo "#include <$header.h>" >include.c
        # shellcheck disable=SC2046
        cc -std=c99 -pedantic -Wall -Wextra -Werror $(pkg-config --cflags tf-tools) \
            -fsyntax-only include.c
        # shellcheck disable=SC2046
        clang++ -x c++ -Wall -Wextra -Werror -Wno-unused-function \
            $(pkg-config --cflags tf-tools) -fsyntax-only include.c
    done
}

@test "the example in C trains, saves and restores, with the bits of tf-exec" {
    line_graph
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror "$root/examples/c/line.c" $(pkg-config --cflags --libs tf-tools) \
        -o line
    ./line line.tfg >out
    is_line out
    tf-exec -g line.tfg --run train --feed 'x=[0,1,2,3]' --feed 'y=[-1,2,5,8]' -n 2000 \
        --save exec.ckpt
    diff <(tf-show --json line.ckpt) <(tf-show --json exec.ckpt)
    tf-exec -g line.tfg --fetch w --restore line.ckpt >/dev/null
    run -66 --separate-stderr ./line none.tfg
    [ "$stderr" = "line: none.tfg: No such file or directory" ]
}

@test "the parts of a graph that was cut for two devices run in it as one" {
    cat >two.lua <<'LUA'
device("/device:CPU:1", function()
  w = variable{name = "w", shape = {}}
  b = variable{name = "b", shape = {}}
end)
device("/device:CPU:0", function()
  x = Placeholder{dtype = float32, shape = {-1}}
  y = Placeholder{dtype = float32, shape = {-1}}
  loss = Mean(Square(w * x + b - y), 0)
end)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
LUA
    tf-graph two.lua | tf-opt | tf-place --devices CPU:0,CPU:1 | tf-part >line.tfg
    [ "$(tf-show line.tfg | grep -c '^graph')" = 2 ]
    # shellcheck disable=SC2046
    cc "$root/examples/c/line.c" $(pkg-config --cflags --libs tf-tools) -o line
    ./line line.tfg >out
    is_line out
}

@test "the example in Python does the same" {
    line_graph
    python3 "$root/examples/python/line.py" line.tfg >out
    is_line out
    run -66 --separate-stderr python3 "$root/examples/python/line.py" none.tfg
    [ "$stderr" = "line.py: none.tfg: No such file or directory" ]
}

@test "a program whose own functions have the names of ours keeps them, and the library its own" {
    line_graph
    sed 's/^int main/void clash_check(void);&/; s/    return 0;/    clash_check();&/' \
        "$root/examples/c/line.c" >line.c
    {
        echo '#include <stdio.h>'
        for name in session_new graph_free tensor_alloc error_set_at mem_alloc plan_run \
            log_text registry_find kernel_fault buffer_new ops_registry; do
            echo "int calls_$name; void $name(void); void $name(void) { calls_$name++; }"
            echo "$name" >>names
        done
        echo 'void clash_check(void); void clash_check(void) {'
        sed 's/.*/&(); printf("%d", calls_&);/' names
        echo 'puts(""); }'
    } >clash.c
    # shellcheck disable=SC2046
    cc -shared -fPIC clash.c -o libclash.so
    # shellcheck disable=SC2046
    cc line.c $(pkg-config --cflags --libs tf-tools) -L. -lclash -Wl,-rpath,"$PWD" -o line
    ./line line.tfg >out
    [ "$(tail -n 1 out)" = 11111111111 ]
    head -n 2 out >both
    is_line both
}

@test "where a program of C++ has no memory it is told as ever: its new is its own" {
    line_graph
    cat >check.cc <<'CODE'
extern "C" int puts(const char *);
extern "C" void fill(void) { try { ::operator new(1ul << 62); } catch (...) { puts("caught"); } }
CODE
    clang++ -O0 -shared -fPIC check.cc -o libcheck.so
    sed 's/^int main/void fill(void);&/; s/    return 0;/    fill();&/' \
        "$root/examples/c/line.c" >line.c
    # shellcheck disable=SC2046
    cc line.c $(pkg-config --cflags --libs tf-tools) -L. -lcheck -Wl,-rpath,"$PWD" -o line
    ./line line.tfg >out
    [ "$(tail -n 1 out)" = caught ]
}

@test "where the library is not installed wholly, each call says so" {
    cp "$prefix/lib/libtf-tools.so.1" .
    # shellcheck disable=SC2046
    cc "$root/examples/c/line.c" $(pkg-config --cflags --libs tf-tools) -o line
    LD_LIBRARY_PATH=. run -78 --separate-stderr ./line line.tfg
    [[ $stderr == "line: "*"tf-tools/libtf-graph.so: cannot open shared object file"* ]]
}

@test "an op of one page runs, has its gradient, and trains" {
    compile_op "$root/examples/op/softclip.c"
    export TF_OPS=./op.so
    tf-op SoftClip '[-9.0, 0.1, 9]' limit=3 | tf-show --json >out
    [ "$(jq -c '[.value[] * 1e4 | round]' out)" = '[-29852,1000,29852]' ]
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float64, shape = {-1}}
y = SoftClip(x, {limit = 3.0})
grad = gradients(y, {x})[1]
direct = 1 - Square(Tanh(x / 3.0))
w = variable{name = "w", shape = {}, dtype = float64}
loss = Square(SoftClip(w + 1.0, {limit = 2.0}) - 0.5)
entry.train = minimize(loss, optim.sgd{rate = 0.2})
entry.slopes = {grad, direct}
entry.eval = loss
LUA
    tf-graph m.lua | tf-opt | tf-place | tf-part >m.tfg
    tf-show --text m.tfg | finds 'SoftClip'
    tf-exec -g m.tfg --run slopes --feed 'x=[-4,-0.5,0,1,2.5]' | tf-show --json |
        jq -e '.direct as $direct | .grad | to_entries |
            all(.value - $direct[.key] | fabs < 1e-12)'
    tf-exec -g m.tfg --run train --steps 100 --save m.ckpt
    tf-exec -g m.tfg --run eval --restore m.ckpt | tf-show --json |
        jq -e '.loss < 1e-9'
}

@test "an op of an older header runs; one of a later header is refused" {
    cp -r "$prefix/include/tf-tools" older
    cp -r older later
    sed -i 's/sizeof(struct tf_op_functions),/sizeof(struct tf_op_functions) - sizeof(void *),/' \
        older/tf_op.h
    sed -i 's/int (\*gradient)(tf_grad \*grad);/& void *more;/' later/tf_op.h
    run -1 cmp older/tf_op.h later/tf_op.h
    for header in older later; do
        cc -shared -fPIC -I$header "$root/examples/op/softclip.c" -o $header.so -lm
    done
    tf-op --ops ./older.so SoftClip 0.0 | tf-show | finds ' 0$'
    run --separate-stderr -78 bash -c 'tf-op --ops ./later.so SoftClip 0.0 >/dev/null'
    [ "$stderr" = "tf-op: --ops ./later.so: made for a later tf-tools: compile it again" ]
}

@test "a library with the op loaded runs graphs that have it" {
    compile_op "$root/examples/op/softclip.c"
    echo 'y = SoftClip(Const({-9.0, 9.0}), {limit = 3.0})' >m.lua
    tf-graph --ops ./op.so m.lua >m.tfg
    cat >run.py <<'PYTHON'
import ctypes, sys
tf = ctypes.CDLL("libtf-tools.so.1")
error = ctypes.create_string_buffer(1028)
for name in ("graph_open", "session_new", "call_prepare"):
    getattr(tf, "tf_" + name).restype = ctypes.c_void_p
for ops in sys.argv[1:]:
    assert not tf.tf_ops_load(ops.encode(), error), error[4:]
graph = tf.tf_graph_open(b"m.tfg", error)
if not graph:
    sys.exit(error[4:].split(b"\0")[0].decode())
session = tf.tf_session_new(ctypes.c_void_p(graph), None, error)
call = tf.tf_call_prepare(ctypes.c_void_p(session), None, b"y", None, error)
assert not tf.tf_call_run(ctypes.c_void_p(call), error), error[4:]
PYTHON
    python3 run.py ./op.so
    run -1 python3 run.py
    [[ $output == *"unknown op 'SoftClip'"*"--ops FILE.so" ]]
}
