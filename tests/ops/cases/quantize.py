# SPDX-License-Identifier: Apache-2.0
"""Gradients in a few bits, with their residuals, over some steps: the formulas of
ops/aggregate/gradient_code.h, in NumPy. Gradients are multiples of 1/64, so that sums are exact in
whatever order. What several workers exchange is in tests/e2e/codes.bats."""
import numpy as np

from golden import Golden, rng

F = np.float32


def pack(fields, bits):
    """Fields of some bits, the lowest first, as rows of bytes."""
    each = (fields[..., None] >> np.arange(bits)) & 1
    return np.packbits(each.reshape(len(fields), -1).astype(np.uint8), axis=1, bitorder="little")


def head(a, b):
    return np.stack([a, b], 1).astype("<f4").view(np.uint8)


def one_bit(v, a):
    high = v >= 0
    wide = v.astype(np.float64)
    count = np.maximum(high.sum(1), 1), np.maximum((~high).sum(1), 1)
    low, up = ((wide * ~high).sum(1) / count[1]).astype(F), ((wide * high).sum(1) / count[0]).astype(F)
    return (np.hstack([head(low, up), pack(high.astype(np.int64), 1)]),
            np.where(high, up[:, None], low[:, None]))


def uniform(v, a):
    n = 1 << a["bits"]
    mean, sigma = v.astype(np.float64).mean(1), v.astype(np.float64).std(1)
    low, width = (mean - 4 * sigma).astype(F), (8 * sigma / n).astype(F)
    with np.errstate(all="ignore"):
        part = np.floor((v - low[:, None]) / width[:, None])
    part = np.clip(np.nan_to_num(part), 0, n - 1).astype(np.int64)
    return (np.hstack([head(low, width), pack(part, a["bits"])]),
            low[:, None] + (part.astype(F) + F(.5)) * width[:, None])


def threshold(v, a):
    t = F(a["threshold"])
    if a["bits"] == 1:
        return pack((v > t).astype(np.int64), 1), np.where(v > t, F(1), F(-1))
    return (pack(np.where(v >= t, 1, np.where(v <= -t, 2, 0)), 2),
            np.where(v >= t, t, np.where(v <= -t, -t, F(0))))


def top(v, a):
    rows, values = [], np.zeros_like(v)
    for i, row in enumerate(v):
        kept = np.sort(np.argsort(-np.abs(row), kind="stable")[:a["keep"]])
        pairs = np.stack([kept.astype("<u4"), row[kept].astype("<f4").view("<u4")], 1)
        rows.append(np.ascontiguousarray(pairs).view(np.uint8).reshape(-1))
        values[i, kept] = row[kept]
    return np.array(rows), values


CODES = [
    (one_bit, {}), (uniform, {"bits": 2}), (uniform, {"bits": 3}), (uniform, {"bits": 8}),
    (threshold, {"bits": 2, "threshold": 0.5}), (threshold, {"bits": 1, "threshold": 0.25}),
    (threshold, {"bits": 1, "threshold": 0.0}), (top, {"keep": 1}), (top, {"keep": 5}),
]

GRAPH = """
    r = Variable() {{dtype=float32, shape={shape}}}
    zeros = Placeholder() {{dtype=float32, shape={shape}}}
    init = Assign(r, zeros)
    g = Placeholder() {{dtype=float32, shape={part}}}
    first = Placeholder() {{dtype=int64, shape=[]}}
    ranks = Const() {{dtype=int64, value=[0]}}
    code = QuantizeGradient(g, r, first) {{{attrs}}}
    value = DequantizeGradient(code, ranks) {{{attrs}, shape={part}}}
    lost = ApplyResidual(r, g, code, first) {{{attrs}}}
    """
MEAN = """
    codes = Placeholder() {{dtype=uint8, shape=[?,?]}}
    ranks = Placeholder() {{dtype=int64, shape=[?]}}
    mean = DequantizeGradient(codes, ranks) {{{attrs}, shape={part}}}
    """
OPS = "QuantizeGradient DequantizeGradient ApplyResidual"


def attrs_of(code, attrs, group):
    texts = [f'code="{code.__name__}"', f"group={group}"]
    texts += [f"{key}={value!r}" for key, value in attrs.items()]
    return ", ".join(texts)


def steps_of(code, attrs, shape, group, part=None, first=0):
    """Three steps of random gradients with ties, of which the second is all equal."""
    residual = np.zeros(shape, F)
    steps = [("init", {"zeros": residual.copy()}, {})]
    rows = residual.reshape(-1, group)
    n = int(np.prod(part or shape)) // group
    for k in range(3):
        g = (rng.integers(-96, 96, part or shape) / 64).astype(F)
        if k == 1:
            g = np.full_like(g, 0.375)
        v = g.reshape(-1, group) + rows[first:first + n]
        bits, value = code(v, attrs)
        rows[first:first + n] = v - value
        steps.append(("lost", {"g": g, "first": np.int64(first)},
                      {"code": bits, "value": value.reshape(g.shape), "lost": residual.copy()}))
    return steps


def quantize(g):
    for code, attrs in CODES:
        name = "/".join([code.__name__] + [str(x) for x in attrs.values()])
        for shape, group in (([4, 20], 20), ([6, 11], 33), ([600], 600)):
            text = GRAPH.format(shape=shape, part=shape, attrs=attrs_of(code, attrs, group))
            g.graph(f"quantize/{name}/{'x'.join(map(str, shape))}", text,
                    steps_of(code, attrs, shape, group), ops=OPS, tol=1e-6)
        text = GRAPH.format(shape=[5, 20], part="[?,20]", attrs=attrs_of(code, attrs, 20))
        g.graph(f"quantize/{name}/part", text, steps_of(code, attrs, [5, 20], 20, [2, 20], 3),
                ops=OPS, tol=1e-6)
        members = (rng.integers(-96, 96, (3, 2, 20)) / 64).astype(F)
        coded = [code(v, attrs) for v in members]
        mean = (coded[0][1] + coded[1][1] + coded[2][1]) / F(3)
        text = MEAN.format(part=[8, 5], attrs=attrs_of(code, attrs, 20))
        g.graph(f"quantize/{name}/mean", text,
                [("", {"codes": np.vstack([c[0] for c in coded]), "ranks": np.array([0, 2, 5])},
                  {"mean": mean.reshape(8, 5)})], ops="DequantizeGradient", tol=1e-6)


def errors(g):
    text = GRAPH.format(shape=[4, 5], part=[4, 5], attrs=attrs_of(one_bit, {}, 7))
    g.graph("quantize/no_groups", text, [], ops=OPS, error="no groups of 7 elements")
    for why, attrs in (("2 to 8 bits", 'code="uniform", bits=9'),
                       ("1 or 2 bits", 'code="threshold", bits=3, threshold=1.0'),
                       ("more than 0", 'code="threshold", bits=2'),
                       ("at most a group", 'code="top", keep=6')):
        text = GRAPH.format(shape=[4, 5], part=[4, 5], attrs=attrs + ", group=5")
        g.graph(f"quantize/{why.replace(' ', '_')}", text, [], ops=OPS, error=why)
    text = GRAPH.format(shape=[4, 5], part="[?,5]", attrs=attrs_of(one_bit, {}, 5))
    zeros, one = np.zeros((4, 5), F), np.ones((1, 5), F)
    for first in (-1, 4):
        g.graph(f"quantize/outside/{first}", text,
                [("init", {"zeros": zeros}, {}),
                 ("lost", {"g": one, "first": np.int64(first)}, f"have 1 from group {first} on")],
                ops="QuantizeGradient ApplyResidual")
    text = GRAPH.format(shape=[4, 5], part="?", attrs=attrs_of(one_bit, {}, 5))
    g.graph("quantize/ragged", text,
            [("init", {"zeros": zeros}, {}),
             ("lost", {"g": np.ones(7, F), "first": np.int64(0)}, "no groups of 5 elements")],
            ops="QuantizeGradient")
    mean = MEAN.format(part=[2, 5], attrs=attrs_of(top, {"keep": 1}, 5))
    codes = np.array([[0, 0, 0, 0, 0, 0, 128, 63], [5, 0, 0, 0, 0, 0, 128, 63]], np.uint8)
    g.graph("quantize/index", mean, [("mean", {"codes": codes, "ranks": np.array([0])},
                                      "elements that its group does not have")],
            ops="DequantizeGradient")
    for name, bad, ranks in (("members", codes, [0, 1]), ("none", codes[:0], []),
                             ("bytes", codes[:, :7], [0])):
        g.graph(f"quantize/{name}", mean, [("mean", {"codes": bad, "ranks": np.array(ranks, np.int64)},
                                            "are not those of|8 bytes are needed")], ops="DequantizeGradient")


def parts(g):
    text = """
        ranks = Placeholder() {{dtype=int64, shape=[?]}}
        rank = Placeholder() {{dtype=int64, shape=[1]}}
        first = CollectivePart(ranks, rank) {{rows={rows}}}
        own = CollectiveRank()
        """
    for rows in (0, 1, 7, 9):
        steps = [("", {"ranks": np.array([1, 4, 6]), "rank": np.array([rank])},
                  {"first": np.int64(sum(len(x) for x in np.array_split(np.arange(rows), 3)[:k])),
                   "own": np.array([0])}) for k, rank in enumerate((1, 4, 6))]
        g.graph(f"parts/{rows}", text.format(rows=rows), steps)
    g.graph("parts/no_member", text.format(rows=4),
            [("first", {"ranks": np.array([0, 2]), "rank": np.array([1])}, "1 is no member")],
            ops="CollectivePart")
    g.error("parts/no_stride", "CollectiveRank", [], "group_stride", {"group_stride": 0})

    for axis, rank in ((0, 1), (1, 3)):
        share = (f"begin = CollectiveSlice() {{dim=7, axis={axis}, rank={rank}}}\n"
                 "size = Identity(begin:1)\npaddings = Identity(begin:2)\n"
                 "workers = Identity(begin:3)\n")
        sizes = [7 if i == axis else -1 for i in range(rank)]
        g.graph(f"parts/slice/{axis}", share,
                [("", {}, {"begin": np.zeros(rank, np.int64), "size": np.array(sizes),
                           "paddings": np.zeros((rank, 2), np.int64), "workers": np.int64(1)})])
    g.error("parts/slice/no_axis", "CollectiveSlice", [], "a tensor of rank 1 has no axis 1",
            {"dim": 7, "axis": 1, "rank": 1})


with Golden("quantize") as g:
    quantize(g)
    errors(g)
    parts(g)
