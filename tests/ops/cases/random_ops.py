# SPDX-License-Identifier: Apache-2.0
"""Random ops. The reference is the definition (ops/random/philox.h, distribution.h), written again
here with Python's whole numbers and NumPy's logarithm, sine and cosine in float64."""
import numpy as np

from golden import Golden, typed

M32 = 0xFFFFFFFF


def philox(key, counter):
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & M32, p0 >> 32 ^ c3 ^ k1, p0 & M32
        k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
    return [c0, c1, c2, c3]


def halves(x):
    x &= (1 << 64) - 1
    return [x & M32, x >> 32]


class Stream:
    def __init__(self, op_seed, op_seed2, step, seed=0, replica=0, iteration=0):
        a = philox(halves(seed), halves(op_seed) + halves(op_seed2))
        step = halves(step)
        self.b = philox([a[0] ^ replica, a[1]],
                        [step[0] ^ a[2], step[1] ^ a[3]] + halves(iteration))

    def block(self, j):
        return philox(self.b[:2], halves(j) + self.b[2:])

    def word(self, i):
        return self.block(i // 4)[i % 4]

    def bits64(self, i):
        return self.word(2 * i) | self.word(2 * i + 1) << 32


def box_muller(u1, u2):
    r = np.sqrt(-2 * np.log(u1))
    return [r * np.cos(2 * np.pi * u2), r * np.sin(2 * np.pi * u2)]


def normals(words, t):
    if t != "float64":
        pairs = [box_muller((words[k] + 1) / 2**32, words[k + 1] / 2**32) for k in (0, 2)]
        return pairs[0] + pairs[1]
    u = [(words[k] | words[k + 1] << 32) >> 11 for k in (0, 2)]
    return box_muller(1 - u[0] / 2**53, u[1] / 2**53)


def uniform(s, n, t):
    if t != "float64":
        bits = {"float32": 24, "float16": 11, "bfloat16": 8}[t]
        return [(s.word(i) >> (32 - bits)) / 2**bits for i in range(n)]
    return [(s.bits64(i) >> 11) / 2**53 for i in range(n)]


def normal(s, n, t):
    per = 2 if t == "float64" else 4
    return [normals(s.block(i // per), t)[i % per] for i in range(n)]


def truncated(s, n, t):
    def at(i):
        j = i
        while True:
            for z in normals(s.block(j), t):
                if abs(z) < 2:
                    return z
            j += 1 << 48
    return [at(i) for i in range(n)]


def integers(s, n, low, high):
    return [low + (s.bits64(i) * (high - low) >> 64) for i in range(n)]


def shuffled(s, n):
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        k = s.bits64(i) * (i + 1) >> 64
        order[i], order[k] = order[k], order[i]
    return order


def multinomial(s, logits, samples):
    out = []
    for r, row in enumerate(np.asarray(logits, np.float64)):
        sums = np.cumsum(np.exp(row - row.max()))
        u = [(s.bits64(r * samples + k) >> 11) / 2**53 for k in range(samples)]
        out.append([int(np.searchsorted(sums, x * sums[-1], side="right")) for x in u])
    return np.array(out, np.int64).reshape(len(logits), samples)


SEEDS = [(0, 0), (7, 12345678901), (-3, 1)]


def const(name, t, value):
    return f"{name} = Const() {{dtype={t}, value={value}}}\n"


def text_of(shape):
    return str(list(shape)).replace(" ", "")


def tensors(g):
    for op, f in (("RandomUniform", uniform), ("RandomStandardNormal", normal),
                  ("TruncatedNormal", truncated)):
        for t in ("float16", "bfloat16"):  # computed in float32 but for uniform numbers
            text = const("shape", "int32", "[3,50]") + f"y = {op}(shape) {{dtype={t}, seed=7}}\n"
            y = np.reshape(f(Stream(7, 0, 1), 150, t), (3, 50))
            g.graph(f"{op.lower()}/{t}", text, [("", {}, {"y": typed(t, y)})], ops=op)
            text = const("shape", "int32", "[9]") + \
                f"y = {op}(shape) {{dtype={t}, seed=7, offset=66}}\n"
            y = np.array(f(Stream(7, 0, 1), 75, t)[66:])
            g.graph(f"{op.lower()}/{t}/offset", text, [("", {}, {"y": typed(t, y)})], ops=op)
        for t in ("float32", "float64"):
            for shape, (seed, seed2) in zip(((), (0,), (3, 50), (1,) * 7 + (3,), (101,)),
                                            SEEDS + SEEDS):
                for it in ("int32", "int64"):
                    n = int(np.prod(shape))
                    text = const("shape", it, text_of(shape)) + \
                        f"y = {op}(shape) {{dtype={t}, seed={seed}, seed2={seed2}}}\n"
                    y = [np.array(f(Stream(seed, seed2, step), n, t)).astype(t).reshape(shape)
                         for step in (1, 2)]
                    g.graph(f"{op.lower()}/{t}", text, [("", {}, {"y": v}) for v in y], ops=op,
                            tol=1e-6 if t == "float32" else 1e-13)
            for offset in (1, 63, 130):
                text = const("shape", "int32", "[101]") + \
                    f"y = {op}(shape) {{dtype={t}, seed=7, seed2=9, offset={offset}}}\n"
                y = np.array(f(Stream(7, 9, 1), offset + 101, t)[offset:]).astype(t)
                g.graph(f"{op.lower()}/offset", text, [("", {}, {"y": y})], ops=op,
                        tol=1e-6 if t == "float32" else 1e-13)
        for value, message in (("[2,-3]", "negative|impossible"), ("[2,-1]", "negative|impossible"),
                               ("2", "must be a vector")):
            g.graph(f"{op.lower()}/bad-shape", const("shape", "int32", value) +
                    f"y = {op}(shape) {{dtype=float32}}\n", [], ops=op, error=message)
        g.graph(f"{op.lower()}/fed-shape", "shape = Placeholder() {dtype=int32}\n"
                f"y = {op}(shape) {{dtype=float32}}\n",
                [("y", {"shape": np.array([-1], np.int32)}, "impossible")], ops=op)


def choices(g):
    for t, low, high in (("int32", -5, 6), ("int32", -2**31, 2**31 - 1), ("int64", 0, 1),
                         ("int64", -2**63, 2**63 - 1), ("int64", 10**12, 10**12 + 1000)):
        for shape in ((), (0,), (37,), (2, 3)):
            text = const("shape", "int32", text_of(shape)) + const("low", t, low) + \
                const("high", t, high) + "y = RandomUniformInt(shape, low, high) {seed=3}\n"
            y = np.array(integers(Stream(3, 0, 1), int(np.prod(shape)), low, high), t)
            g.graph(f"randomuniformint/{t}", text, [("", {}, {"y": y.reshape(shape)})],
                    ops="RandomUniformInt")
    g.graph("randomuniformint/empty-range", const("shape", "int64", "[2]") +
            const("low", "int32", 3) + const("high", "int32", 3) +
            "y = RandomUniformInt(shape, low, high)\n", [], ops="RandomUniformInt",
            error="minval 3 is not below maxval 3")
    fixed = ["float32", "float64", "float16", "bfloat16", "complex64", "int8", "int16", "int32",
             "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
    for t in fixed:
        x = np.arange(12).reshape(6, 2)
        y = x[shuffled(Stream(0, 9, 1), 6)]
        to = (lambda v: (t, v.astype(np.float32))) if t == "bfloat16" else \
            (lambda v: v % 2 == 1) if t == "bool" else (lambda v: v.astype(t))
        g.graph(f"randomshuffle/{t}", f"x = Placeholder() {{dtype={t}}}\n"
                "y = RandomShuffle(x) {seed2=9}\n", [("", {"x": to(x)}, {"y": to(y)})],
                ops="RandomShuffle")
    for shape in ((), (0, 2), (1,), (50,), (3, 0), (5,) + (1,) * 7):
        x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        y = x[shuffled(Stream(1, 2, 1), shape[0])] if shape else x
        g.graph("randomshuffle/shape", "x = Placeholder() {dtype=float32}\n"
                "y = RandomShuffle(x) {seed=1, seed2=2}\n", [("", {"x": x}, {"y": y})],
                ops="RandomShuffle")
    text = "x = Placeholder() {dtype=%s}\nn = Placeholder() {dtype=int32}\n" \
        "y = Multinomial(x, n) {seed=4}\n"
    for t in ("float16", "bfloat16", "int8", "int16", "uint8", "uint16", "uint32", "uint64"):
        x = np.array([[0, 1, 2], [3, 0, 0]])
        y = multinomial(Stream(4, 0, 1), x, 20)
        g.graph(f"multinomial/{t}", text % t, [("", {"x": typed(t, x), "n": np.int32(20)}, {"y": y})],
                ops="Multinomial")
    for t in ("float32", "float64", "int32", "int64"):
        for logits, n in (([[0, 1, 2], [3, 0, 0]], 20), ([[5]], 3), (np.zeros((0, 4)), 2),
                          ([[1, 1]], 0), ([[-30, 0, -30]], 9)):
            x = np.array(logits, t)
            g.graph(f"multinomial/{t}", text % t,
                    [("", {"x": x, "n": np.int32(n)}, {"y": multinomial(Stream(4, 0, 1), x, n)})],
                    ops="Multinomial")
    x = np.array([[-np.inf, 0, -np.inf, 0]], np.float32)
    g.graph("multinomial/impossible-classes", text % "float32",
            [("", {"x": x, "n": np.int32(40)}, {"y": multinomial(Stream(4, 0, 1), x, 40)})],
            ops="Multinomial")
    one = np.int32(1)
    for x, n, message in ((np.zeros(3), one, "matrix"), (np.zeros((1, 0)), one, "no classes"),
                          (np.zeros((1, 2)), np.int32(-1), "negative"),
                          (np.array([[0, np.nan]]), one, "no class of row 0"),
                          (np.array([[0.0, 0], [-np.inf, -np.inf]]), one, "no class of row 1"),
                          (np.array([[np.inf, 0]]), one, "no class of row 0")):
        g.graph("multinomial/error", text % "float32",
                [("y", {"x": x.astype(np.float32), "n": n}, message)], ops="Multinomial")


def loops(g):
    """Each iteration draws its own numbers: what it drew differs from what the last one drew."""
    g.graph("random/loop", """
        n = Const() {dtype=int32, value=0}
        shape = Const() {dtype=int32, value=[50]}
        start = RandomUniform(shape) {dtype=float32, seed=5}
        none = Const() {dtype=int32, value=0}
        i = Enter(n) {frame_name="loop"}
        v = Enter(start) {frame_name="loop"}
        c = Enter(none) {frame_name="loop"}
        s = Enter(shape) {frame_name="loop", is_constant=true}
        im = Merge(i, inext)
        vm = Merge(v, vnext)
        cm = Merge(c, cnext)
        five = Const(^im) {dtype=int32, value=5}
        go = Less(im, five)
        cond = LoopCond(go)
        is = Switch(im, cond)
        vs = Switch(vm, cond)
        cs = Switch(cm, cond)
        body = Identity(is:1)
        one = Const(^body) {dtype=int32, value=1}
        iplus = Add(body, one)
        drawn = RandomUniform(s, ^body) {dtype=float32, seed=5}
        same = Equal(drawn, vs:1)
        number = Cast(same) {DstT=int32}
        axis = Const(^body) {dtype=int32, value=[0]}
        sum = Sum(number, axis)
        cplus = Add(cs:1, sum)
        inext = NextIteration(iplus)
        vnext = NextIteration(drawn)
        cnext = NextIteration(cplus)
        iend = Exit(is:0)
        cend = Exit(cs:0)
        """, [("", {}, {"cend": np.int32(0), "iend": np.int32(5)})], ops="RandomUniform")


if __name__ == "__main__":
    with Golden("random_ops") as g, np.errstate(all="ignore"):
        tensors(g)
        choices(g)
        loops(g)
