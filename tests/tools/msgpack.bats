#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A stream is plain msgpack: the reader printed in docs/stream.md reads one with Python's library.

root=$BATS_TEST_DIRNAME/../..

@test "the reader of docs/stream.md reads a stream" {
    reader=$(sed -n '/^```python$/,/^```$/p' "$root/docs/stream.md" | grep -v '^```')
    run /usr/bin/python3 -c "$reader" <"$root/tests/data/example.rec"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    [ "${lines[0]}" = "hello []" ]
    [ "${lines[1]}" = "feed [('x', 'float32', [2], 8), ('label', 'string', [2], 30)]" ]
    [ "${lines[2]}" = "end []" ]
}

@test "the reader of docs/stream.md has ten lines" {
    n=$(sed -n '/^```python$/,/^```$/p' "$root/docs/stream.md" | grep -vc -e '^```' -e '^$')
    [ "$n" -le 10 ]
}

@test "the worked example of docs/stream.md is the stream, byte for byte" {
    run /usr/bin/python3 - "$root" <<'EOF'
import re, sys
root = sys.argv[1]
text = open(root + "/docs/stream.md").read().split("## Example")[1].split("## Reading")[0]
got = b""
for line in re.findall(r"^    (.*)$", text, re.M):
    for token in re.findall(r'"[^"]*"|\S+', line):
        if token[0] == '"':
            got += token[1:-1].encode()
        elif re.fullmatch("([0-9a-f]{2})+", token):
            got += bytes.fromhex(token)
        else:
            break
assert got == open(root + "/tests/data/example.rec", "rb").read(), got.hex()
EOF
    echo "$output"
    [ "$status" -eq 0 ]
}
