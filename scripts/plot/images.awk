# SPDX-License-Identifier: Apache-2.0
# Draws rows of a tensor as images in a grid, grey or in colour, from the last record that has it.
function whole(x) {
    return x == int(x)
}

# Finds height, width and channels of a row's image, from --shape or the tensor's own extents.
function find_shape(n,    of) {
    n_of = split(shape, of, "x")
    if (n_of) {
        rows = of[1]; columns = of[2]; channels = n_of > 2 ? of[3] : 1
    } else if (rank >= 3) {
        rows = dims[2]; columns = dims[3]; channels = rank > 3 ? dims[4] : 1
    } else {
        rows = columns = int(sqrt(rank ? dims[rank] : 1) + 0.5)
        channels = 1
    }
    images = n / (rows * columns * channels)
    if (rank < 1 || rank > 4 || !whole(images) || images < 1 || (channels != 1 && channels != 3) ||
        (!n_of && rank > 1 && images != dims[1]))
        none(sprintf("'%s': its rows are no images of %d x %d x %d: give --shape HxW, or HxWx3",
            ENVIRON["NAME"], rows, columns, channels))
}

function pixel(image, y, x, channel,    value) {
    value = element[((image * rows + y) * columns + x) * channels + channel + 1]
    return is_number(value) ? (value - least) / range : 0
}

function draw_text(    across, ramp, image, y, x, k, line) {
    ramp = " .:-=+*#%@"
    across = int((width + 1) / (2 * columns + 1))
    if (across < 1) across = 1
    print "text"
    for (image = 0; image < images; image += across) {
        for (y = 0; y < rows; y++) {
            line = ""
            for (k = 0; k < across && image + k < images; k++) {
                if (k) line = line "|"
                for (x = 0; x < columns; x++) {
                    level = 0
                    for (channel = 0; channel < channels; channel++)
                        level += pixel(image + k, y, x, channel) / channels
                    mark = substr(ramp, 1 + int(level * 9.999), 1)
                    line = line mark mark
                }
            }
            print line
        }
        print ""
    }
}

END {
    n = read_tensor()
    find_shape(n)
    if (!count) none("'" ENVIRON["NAME"] "' has no number")
    range = most > least ? most - least : 1
    if (images > 400) images = 400
    if (terminal == "dumb") {
        draw_text()
        exit
    }
    begin_picture(1)
    across = 1
    while (across * across * columns * height < images * rows * width) across++
    down = int((images + across - 1) / across)
    print "unset border\nunset tics\nunset key\nunset colorbox"
    print "set size ratio -1\nset margins 1,1,1,1"
    print "set palette gray\nset cbrange [0:1]"
    if (ENVIRON["TITLE"] != "") print "set title " quoted(ENVIRON["TITLE"]) "\nset tmargin 3"
    print "$i << EOD"
    for (image = 0; image < across * down; image++)
        for (y = 0; y < rows; y++)
            for (x = 0; x < columns; x++) {
                if (image >= images) continue
                printf "%d %d", (image % across) * (columns + 1) + x,
                    -int(image / across) * (rows + 1) - y
                if (channels == 1) printf " %.4f\n", pixel(image, y, x, 0)
                else printf " %d %d %d\n", 255 * pixel(image, y, x, 0),
                    255 * pixel(image, y, x, 1), 255 * pixel(image, y, x, 2)
            }
    print "EOD"
    printf "set xrange [-1:%d]\nset yrange [%d:1]\n", across * (columns + 1), -down * (rows + 1)
    if (channels == 1)
        print "plot $i using 1:2:(0.52):(0.52):3 with boxxyerror fs solid noborder " \
            "lc palette notitle"
    else
        print "rgb(r, g, b) = 65536 * int(r) + 256 * int(g) + int(b)\n" \
            "plot $i using 1:2:(0.52):(0.52):(rgb($3, $4, $5)) with boxxyerror fs solid noborder " \
            "lc rgbcolor variable notitle"
}
