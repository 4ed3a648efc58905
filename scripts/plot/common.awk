# SPDX-License-Identifier: Apache-2.0
# Functions that all pictures share. Text from the user is quoted where gnuplot reads it.

function quoted(text) {
    gsub(/[[:cntrl:]]/, " ", text)
    gsub(/'/, "''", text)
    return "'" text "'"
}

# Called at the end of the input: reports that there is no picture.
function none(reason) {
    print "none " reason
    exit
}

# Behind what --title says, if it says anything.
function titled(text) {
    return ENVIRON["TITLE"] == "" ? text : ENVIRON["TITLE"] "  " text
}

function begin_picture(rows) {
    if (terminal == "dumb") {
        if (height < 12 * rows) height = 12 * rows
        printf "set terminal dumb size %d,%d noenhanced\nset key above\n", width, height
    } else {
        printf "set terminal %s size %d,%d noenhanced%s\n", terminal, width, height,
            (terminal == "sixelgd" ? "" : " background '#ffffff'")
    }
    print "set tics nomirror"
    print "set border 3"
}

function is_number(text) {
    return text ~ /^-?[0-9]/
}
