# SPDX-License-Identifier: Apache-2.0
"""Candidate samplers. What they draw is computed again from the definition (docs/randomness.md),
probabilities and expected counts from the formulas; and over many draws the frequencies are those
of the law, by a chi-square test with a bound that one seed in a thousand exceeds."""
import numpy as np

from golden import Golden, rng
from random_ops import Stream, const

MANY = 100000
CLASSES = 50
CHI_SQUARE = 85.35  # of 49 degrees of freedom: the quantile of 0.999


# ---- laws: the class that u in [0, 1) or 64 bits stand for, and all probabilities ----

def uniform(n):
    return lambda bits: bits * n >> 64, np.full(n, 1 / n)


def log_uniform(n):
    c = np.arange(n, dtype=np.float64)
    return (lambda bits: (int(np.exp((bits >> 11) / 2**53 * np.log(n + 1))) - 1) % n,
            np.log((c + 2) / (c + 1)) / np.log(n + 1))


def weighted(weights):
    sums = np.cumsum(np.array(weights, np.float64))
    return (lambda bits: int(np.searchsorted(sums, (bits >> 11) / 2**53 * sums[-1], side="right")),
            np.array(weights) / sums[-1])


def counted(counts):
    sums = np.cumsum(np.array(counts))
    return (lambda bits: int(np.searchsorted(sums, bits * int(sums[-1]) >> 64, side="right")),
            np.array(counts) / sums[-1])


def sample(law, stream, true, n, unique):
    """What a sampler returns."""
    draw, p = law
    classes, tries = [], 0
    while len(classes) < n:
        c = draw(stream.bits64(tries))
        tries += 1
        if not unique or c not in classes:
            classes.append(c)
    expected = 1 - (1 - p) ** tries if unique else p * n
    return (np.array(classes, np.int64), expected[true].astype(np.float32).reshape(np.shape(true)),
            expected[classes].astype(np.float32))


# ---- graphs ----

def sampler(op, attrs, counts=False):
    more = ", ".join(f"{k}={v}" for k, v in attrs.items())
    head = "true = Placeholder() {dtype=int64}\n"
    if counts:
        head += f"counts = Variable() {{dtype=int64, shape=[{attrs['range_max']}]}}\n" \
            "start = Placeholder() {dtype=int64}\nset = Assign(counts, start)\n"
    return head + f"y = {op}({'counts, ' if counts else ''}true) {{{more}}}\n"


def named(outputs):
    return {"y" + (f":{i}" if i else ""): v for i, v in enumerate(outputs)}


def attributes(n, k, num_true=1, unique=True, **more):
    return {"num_true": num_true, "num_sampled": k, "unique": str(unique).lower(), "range_max": n,
            **more}


TRUE = [np.array([[0], [1], [0]]), np.array([[0, 2, 2], [1, 0, 3]]), np.zeros((0, 1), int)]
SIZES = [(1, 1), (5, 5), (9, 3), (1000, 64), (3 * 10**9, 20)]
SEEDS = [(0, 0), (7, 12345678901), (-3, 1)]


def by_range(g):
    for op, law in (("UniformCandidateSampler", uniform), ("LogUniformCandidateSampler", log_uniform)):
        for n, k in SIZES[:4]:
            for unique in (True, False):
                for i, true in enumerate(TRUE):
                    true = np.minimum(true, n - 1)
                    seed, seed2 = SEEDS[i]
                    attrs = attributes(n, k, true.shape[1], unique, seed=seed, seed2=seed2)
                    steps = [("", {"true": true}, named(sample(
                        law(n), Stream(seed, seed2, step), true, k, unique))) for step in (1, 2)]
                    g.graph(f"{op.lower()}/{n}", sampler(op, attrs), steps, ops=op)
        # more samples than classes, where they may repeat
        true = TRUE[0]
        g.graph(f"{op.lower()}/many", sampler(op, attributes(3, 40, unique=False)),
                [("", {"true": true}, named(sample(law(3), Stream(0, 0, 1), true, 40, False)))],
                ops=op)
        errors(g, op, attributes(4, 3))
    stream = Stream(0, 0, 1)  # more classes than a table of probabilities has
    for op, f in (("UniformCandidateSampler", lambda bits: bits >> 2),
                  ("LogUniformCandidateSampler",
                   lambda bits: int(np.exp((bits >> 11) / 2**53 * np.log(2.0**62))) - 1)):
        y = np.array([f(stream.bits64(i)) for i in range(4)])
        text = sampler(op, attributes(2**62, 4)) + \
            const("exact", "int64", listed(y.tolist())) + "off = Sub(y, exact)\n" \
            "off64 = Cast(off) {DstT=float64}\nexact64 = Cast(exact) {DstT=float64}\n" \
            "share = Div(off64, exact64)\n"
        g.graph(f"{op.lower()}/large", text,
                [("", {"true": TRUE[0]}, {"share": np.zeros(4)})], ops=op, tol=1e-12)


def errors(g, op, attrs, counts=None):
    """What is wrong with the true classes, at run time and before."""
    text = sampler(op, attrs, counts is not None)
    first = [("set", {"start": np.array(counts)}, {})] if counts is not None else []
    n, name = attrs["range_max"], op.lower()
    for bad in (-1, n, 2**62):
        g.graph(f"{name}/class", text, first + [
            ("y", {"true": np.array([[0], [bad]])}, f"{bad}")], ops=op)
    for bad in (np.zeros((2, 2), int), np.zeros(2, int), np.zeros((1, 1, 1), int)):
        g.graph(f"{name}/classes", text, first + [
            ("y", {"true": bad}, "num_true|rank 2|matrix")], ops=op)
        g.graph(f"{name}/known-classes", text.replace(
            "true = Placeholder() {dtype=int64}", f"true = Placeholder() "
            f"{{dtype=int64, shape={str(list(bad.shape)).replace(' ', '')}}}"), [], ops=op,
            error="num_true|rank 2|matrix")
    g.graph(f"{name}/too-many", sampler(op, {**attrs, "num_sampled": n + 1}, counts is not None),
            [], ops=op, error=f"num_sampled is {n + 1}, but there are only {n} different classes")
    for attr in ("num_sampled", "num_true", "range_max"):
        g.graph(f"{name}/least", sampler(op, {**attrs, attr: 0}, counts is not None), [], ops=op,
                error=attr)


def listed(weights):
    return "[" + ",".join(f"{w!r}" for w in weights) + "]"


def fixed(g):
    op = "FixedUnigramCandidateSampler"
    weights = [3.0, 0.0, 1.5, 7.0, 0.25, 2.0, 0.5, 1.0, 4.0]
    true = np.array([[0, 1], [3, 8]])
    for unique in (True, False):
        for distortion in (1.0, 0.75, 0.0):
            for reserved in (0, 2):
                bent = [0.0] * reserved + [w**distortion for w in weights]
                attrs = attributes(len(bent), 4, 2, unique, seed=5, distortion=distortion,
                                   num_reserved_ids=reserved, unigrams=listed(weights))
                steps = [("", {"true": true}, named(sample(
                    weighted(bent), Stream(5, 0, step), true, 4, unique))) for step in (1, 2)]
                g.graph("fixed/weights", sampler(op, attrs), steps, ops=op)
    for shard in (0, 1, 2):  # ids 0 and 1 are reserved; of 11 ids a shard has every third
        part = ([0.0, 0.0] + weights)[shard::3]
        attrs = attributes(len(part), 2, seed=1, num_reserved_ids=2, num_shards=3, shard=shard,
                           unigrams=listed(weights))
        true = np.array([[0], [2]])
        g.graph("fixed/shard", sampler(op, attrs), [("", {"true": true}, named(sample(
            weighted(part), Stream(1, 0, 1), true, 2, True)))], ops=op)
    ok = attributes(4, 3, unigrams="[1,2,3,4]")
    errors(g, op, ok)
    rare = attributes(4, 4, unigrams="[1,1,1,1e-12]")
    g.graph("fixed/rare", sampler(op, rare),
            [("y", {"true": np.array([[0]])}, "only 3 of 4 different classes came up")], ops=op)
    for more, message in (
            ({"unigrams": "[1,2,3]"}, "make 3 classes, but range_max is 4"),
            ({"num_reserved_ids": 1}, "make 5 classes, but range_max is 4"),
            ({"unigrams": "[1,-2,3,4]"}, "the weight of class 1 cannot be -2"),
            ({"unigrams": "[1,nan,3,4]"}, "the weight of class 1 cannot be nan"),
            ({"unigrams": "[1,inf,3,4]"}, "the weight of class 1 cannot be inf"),
            ({"unigrams": "[1,0,0,4]"}, "only 2 different classes with a weight above 0"),
            ({"unigrams": "[0,0,0,0]"}, "no class has a weight above 0"),
            ({"num_shards": 2, "shard": 2}, "there is no shard 2 of 2"),
            ({"num_reserved_ids": -1}, "num_reserved_ids"), ({"shard": -1}, "shard"),
            ({"num_shards": 0}, "num_shards"),
            ({"num_reserved_ids": 2**62}, f"make {2**62 + 4} classes, but range_max is 4"),
            ({"num_reserved_ids": 2**63 - 1}, f"{2**63 - 1} reserved ids are too many")):
        g.graph("fixed/argument", sampler(op, {**ok, **more}), [], ops=op, error=message)


def learned(g):
    op = "LearnedUnigramCandidateSampler"
    batches = [np.array([[0, 1], [1, 5]]), np.array([[5, 5], [2, 5]]), np.array([[6, 0], [6, 6]])]
    for unique in (True, False):
        text = sampler(op, attributes(7, 4, 2, unique, seed=2, seed2=9), counts=True)
        counts = np.ones(7, np.int64)
        steps = [("set", {"start": counts}, {})]
        for k, true in enumerate(batches):
            steps.append(("", {"true": true}, named(sample(
                counted(counts), Stream(2, 9, k + 2), true, 4, unique))))
            counts = counts + np.bincount(true.ravel(), minlength=7)
            steps[-1][2]["counts"] = None  # read before or after: there is no order
        g.graph("learned/steps", text, steps + [("", {}, {"counts": counts})], ops=op)
        zeros = np.array([0, 4, 0, 1, 0, 2, 9])
        true = np.array([[0, 6]])
        g.graph("learned/zeros", text, [
            ("set", {"start": zeros}, {}), ("", {"true": true}, named(sample(
                counted(zeros), Stream(2, 9, 2), true, 4, unique))),
            ("", {}, {"counts": zeros + [1, 0, 0, 0, 0, 0, 1]})], ops=op)
    # an error leaves the counts as they are
    text = sampler(op, attributes(4, 3), counts=True)
    ones, true = np.ones(4, np.int64), np.array([[1], [4]])
    g.graph("learned/unchanged", text, [("set", {"start": ones}, {}), ("y", {"true": true}, "4"),
                                        ("", {}, {"counts": ones})], ops=op)
    errors(g, op, attributes(4, 3), counts=ones)
    for counts, message in (([1, -1, 1, 1], "the count of class 1 cannot be -1"),
                            ([0, 0, 0, 0], "no class has a count above 0"),
                            ([3, 0, 0, 2], "only 2 different classes with a count above 0"),
                            ([2**62, 2**62, 1, 1], f"the count of class 1 cannot be {2**62}")):
        g.graph("learned/counts", text, [("set", {"start": np.array(counts)}, {}),
                                         ("y", {"true": true[:1]}, message)], ops=op)
    g.graph("learned/uninitialized", text, [("y", {"true": true}, "is not initialized")], ops=op)
    for shape in ("[5]", "[4,1]", "[]"):
        g.graph("learned/shape", text.replace("shape=[4]", f"shape={shape}"), [], ops=op,
                error="counts must be [4], as range_max says")
    g.graph("learned/open-shape", text.replace("shape=[4]", "shape=[?]"),
            [("set", {"start": np.ones(5, np.int64)}, {}),
             ("y", {"true": true}, "counts must be a vector of range_max = 4 elements, not [5]")],
            ops=op)


def by_counts(g):
    """As learned, but that the counts are fed, and stay."""
    op = "CountedCandidateSampler"
    true = np.array([[0, 6], [6, 3]])
    for counts in ([1] * 7, [3, 0, 4, 1, 0, 50, 9]):
        for unique in (True, False):
            text = "counts = Placeholder() {dtype=int64}\n" + sampler(
                op, attributes(7, 4, 2, unique, seed=2)).replace("(true)", "(counts, true)")
            g.graph("counted/values", text, [
                ("", {"true": true, "counts": np.array(counts)}, named(sample(
                    counted(counts), Stream(2, 0, step), true, 4, unique))) for step in (1, 2)],
                    ops=op)
    for counts, classes, message in (
            ([1] * 6, true, "counts must be a vector|counts must be [7]"),
            ([[1] * 7], true, "counts must be"), ([0] * 7, true, "no class has a count above 0"),
            ([1, 1, -3, 1, 1, 1, 1], true, "the count of class 2 cannot be -3"),
            ([1] * 7, true + 1, "7")):
        text = "counts = Placeholder() {dtype=int64}\n" + sampler(
            op, attributes(7, 4, 2)).replace("(true)", "(counts, true)")
        g.graph("counted/error", text, [
            ("y", {"true": classes, "counts": np.array(counts)}, message)], ops=op)


def everything(g):
    op = "AllCandidateSampler"
    for k, true in ((1, [[0]]), (6, [[5, 0], [1, 1], [2, 3]])):
        true = np.array(true)
        for unique in ("true", "false"):
            g.op(f"all/{k}", op, [true], [np.arange(k), np.ones(true.shape, np.float32),
                                          np.ones(k, np.float32)],
                 {"num_true": true.shape[1], "num_sampled": k, "unique": unique})
    attrs = {"num_true": 1, "num_sampled": 3, "unique": "true"}
    g.error("all/class", op, [np.array([[3]])], "3", attrs)
    g.error("all/columns", op, [np.array([[1, 2]])], "num_true = 1 columns", attrs)
    g.error("all/vector", op, [np.array([1])], "rank 2|matrix", attrs)


def hits(g):
    op = "ComputeAccidentalHits"
    cases = [([[1], [2], [1]], [1, 2, 3]), ([[4, 2], [2, 7], [9, 9]], [2, 9, 4, 2]),
             ([[1]], [2, 3]), ([[1, 1, 1]], [1, 1]), (np.zeros((0, 1), int), [1]),
             ([[1, 2]], np.zeros(0, int))]
    cases.append((rng.integers(0, 40, (30, 3)), rng.integers(0, 40, 50)))
    for true, sampled in cases:
        true, sampled = np.asarray(true), np.asarray(sampled)
        found = [(row, place) for row in range(len(true))
                 for c in dict.fromkeys(true[row].tolist())
                 for place in np.flatnonzero(sampled == c)]
        rows = np.array([f[0] for f in found], np.int32)
        g.op("hits", op, [true, sampled],
             [rows, np.array([f[1] for f in found], np.int64),
              np.full(len(found), -np.finfo(np.float32).max)], {"num_true": true.shape[1]})
    for true, sampled, message in (([[1, 2]], [1], "num_true = 1 columns"),
                                   ([1], [1], "rank 2|matrix"), ([[1]], [[1]], "vector")):
        g.error("hits/shape", op, [np.array(true), np.array(sampled)], message, {"num_true": 1})


# ---- frequencies ----

def chi_square(p):
    """Whether the frequencies of y, MANY classes, are as probable as they should be."""
    expected = ",".join(repr(float(x)) for x in p * MANY)
    return const("n", "int32", CLASSES) + const("axis", "int32", "[0]") + \
        const("bound", "float64", CHI_SQUARE) + \
        f"expected = Const() {{dtype=float64, value=[{expected}]}}\n" \
        "one = OnesLike(y)\nhits = UnsortedSegmentSum(one, y, n)\n" \
        "counts64 = Cast(hits) {DstT=float64}\noff = Sub(counts64, expected)\n" \
        "square = Mul(off, off)\nterms = Div(square, expected)\nchi = Sum(terms, axis)\n" \
        "is_likely = Less(chi, bound)\n"


def frequencies(g):
    weights = [1.0 + k % 7 for k in range(CLASSES)]
    true = np.array([[0]])
    for op, p, more in (
            ("UniformCandidateSampler", uniform(CLASSES)[1], {}),
            ("LogUniformCandidateSampler", log_uniform(CLASSES)[1], {}),
            ("FixedUnigramCandidateSampler", weighted(weights)[1], {"unigrams": listed(weights)})):
        text = sampler(op, attributes(CLASSES, MANY, unique=False, seed=11, **more)) + chi_square(p)
        g.graph(f"frequencies/{op.lower()}", text,
                [("", {"true": true}, {"is_likely": np.bool_(True)})] * 3, ops=op)
    op, counts = "LearnedUnigramCandidateSampler", np.array(weights, np.int64)
    text = sampler(op, attributes(CLASSES, MANY, unique=False, seed=11), counts=True) + \
        chi_square(counted(weights)[1])
    g.graph(f"frequencies/{op.lower()}", text,
            [("set", {"start": counts}, {}),
             ("", {"true": np.zeros((0, 1), int)}, {"is_likely": np.bool_(True)})], ops=op)
    # The test finds that frequencies are wrong.
    text = sampler("UniformCandidateSampler", attributes(CLASSES, MANY, unique=False)) + \
        chi_square(weighted(weights)[1])
    g.graph("frequencies/others", text, [("", {"true": true}, {"is_likely": np.bool_(False)})],
            ops="UniformCandidateSampler")


with Golden("samplers") as g, np.errstate(all="ignore"):
    by_range(g)
    fixed(g)
    learned(g)
    by_counts(g)
    everything(g)
    hits(g)
    frequencies(g)
