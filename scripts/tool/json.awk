# SPDX-License-Identifier: Apache-2.0

# Returns the value of a key in the text of a flat object, without quotes; "" if it has none.
function field(text, key) {
    if (!match(text, "\"" key "\":(\"([^\"\\\\]|\\\\.)*\"|[-+.0-9eE]+|true|false)")) return ""
    key = substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
    gsub(/^"|"$/, "", key)
    return key
}
