# SPDX-License-Identifier: Apache-2.0
"""What devices send each other in a step of grid.lua cut into tiles: by the formula of the halo,
from the shapes of layers alone, and by the Sends of the parts. usage: grid.py ROWS COLUMNS <text of
parts; tensors of the step, a line each: bytes by the formula, by the Sends, and on the links, where
values of one group are one, each aligned, behind a name."""
import re
import sys

ROWS, COLUMNS = int(sys.argv[1]), int(sys.argv[2])
CELLS = ROWS * COLUMNS
BATCH, FLOAT = 4, 4


def tiles(size, parts):
    return [(i * size // parts, (i + 1) * size // parts) for i in range(parts)]


class Layer:
    """Windows of `size`, `stride` apart, over [height, width, channels]."""

    def __init__(self, shape, size, stride, same):
        self.shape, self.size, self.stride = shape, size, stride
        self.out, self.before = [], []
        for n in shape[:2]:
            out = -(-n // stride) if same else (n - size) // stride + 1
            self.out.append(out)
            self.before.append(max((out - 1) * stride + size - n, 0) // 2 if same else 0)

    def seen(self, axis, tile):
        first = tile[0] * self.stride - self.before[axis]
        last = (tile[1] - 1) * self.stride - self.before[axis] + self.size
        return max(first, 0), min(last, self.shape[axis])

    def regions(self):
        return [(self.seen(0, y), self.seen(1, x))
                for y in tiles(self.out[0], ROWS) for x in tiles(self.out[1], COLUMNS)]

    def halo(self):
        """Cells that are seen, and are not one's own."""
        own = [(y, x) for y in tiles(self.shape[0], ROWS) for x in tiles(self.shape[1], COLUMNS)]
        n = 0
        for (ry, rx), (ty, tx) in zip(self.regions(), own):
            meet = [max(min(r[1], t[1]) - max(r[0], t[0]), 0) for r, t in ((ry, ty), (rx, tx))]
            n += (ry[1] - ry[0]) * (rx[1] - rx[0]) - meet[0] * meet[1]
        return n * self.shape[2] * BATCH * FLOAT


def area(box):
    return (box[0][1] - box[0][0]) * (box[1][1] - box[1][0])


conv1 = Layer((18, 15, 3), 3, 1, True)
pool1 = Layer((*conv1.out, 4), 3, 2, True)
conv2 = Layer((*pool1.out, 4), 5, 1, True)
pool2 = Layer((*conv2.out, 6), 2, 1, False)
local = Layer((*pool2.out, 6), 3, 1, True)
# the image goes to the others with its halo; back come only gradients of filters
image = sum(area(r) for r in conv1.regions()[1:]) * 3 * BATCH * FLOAT
halo = sum(layer.halo() for layer in (pool1, conv2, pool2, local))
shared = (CELLS - 1) * FLOAT * (3 * 3 * 3 * 4 + 4 + 5 * 5 * 4 * 6 + 6)
ends = [(y, x) for y in tiles(local.out[0], ROWS) for x in tiles(local.out[1], COLUMNS)]
end = sum(area(tile) for tile in ends[1:]) * 4 * BATCH * FLOAT
formula = image + 2 * (halo + shared + end)

ALIGNED = 64
sent = linked = 0
part, groups = {}, {}
for line in sys.stdin:
    if line.startswith("graph "):
        part = {}
    node = re.match(r"(\S+) = (\w+)\((.*?)\) \{.* : (float32)\[([\d,]*)\]", line)
    if node and node.group(2) != "Const":  # a constant that is sent says only that it is time
        dims = [int(d) for d in node.group(5).split(",") if d]
        n = FLOAT
        for d in dims:
            n *= d
        part[node.group(1)] = n
    send = re.match(r"(\S+) = Send\(([^,)]*)", line)
    if send and send.group(2) in part and "/initial/" not in send.group(2):
        n = part[send.group(2)]
        sent += n
        group = re.search(r'_group="(.*?)"', line)
        if group:
            groups.setdefault(group.group(1), []).append(n)
        else:
            linked += n
        if "l1/W" in send.group(2) or "LocallyConnected2DBackpropFilter" in send.group(2):
            sys.exit(f"a filter of one position is sent: {line}")
for values in groups.values():
    linked += values[0] if len(values) == 1 else sum(-(-n // ALIGNED) * ALIGNED
                                                     for n in [ALIGNED, *values])
print(formula, sent, linked)
