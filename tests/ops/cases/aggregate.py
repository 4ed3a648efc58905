# SPDX-License-Identifier: Apache-2.0
"""Aggregators and clocks, with one worker that drives its own rounds in the same step: worker 0 of
incarnation 0. What needs several is in tests/unit/resource/clock.c and tests/unit/pass/replicas.c."""
import numpy as np

from golden import Golden, typed

WORKER = """
    join = ClockJoin() {{clock="c", policy="{policy}"}}
    version = Placeholder() {{dtype=int64, shape=[]}}
    x = Placeholder() {{dtype={t}, shape=[2]}}
    token = AggregatorPush(x) {{aggregator="a"}}
    push = ClockPush(version, token) {{clock="c", policy="{policy}"}}
    leave = ClockLeave() {{clock="c", policy="{policy}"}}
    """
ROUND = """
    round = ClockRound() {{clock="c", policy="{policy}"}}
    take = AggregatorTake(round:1, round:2) {{T=[{t}], aggregator="a", reductions=["{r}"], shapes=[[2]]}}
    advance = ClockAdvance(round, ^take) {{clock="c", policy="{policy}"}}
    """
OPS = "ClockJoin ClockPush ClockRound ClockAdvance ClockLeave AggregatorPush AggregatorTake"


def i64(x):
    return np.array(x, np.int64)


def aggregate(g):
    for policy in ["sync", "sync,backup=1", "async", "ssp,bound=0", "ssp,bound=2"]:
        for t, r in [("float32", "mean"), ("int32", "sum"), ("float64", "first"), ("int64", "rows")]:
            x = np.array([3, -5]).astype(t)
            g.graph(f"aggregate/{policy}/{r}", (WORKER + ROUND).format(policy=policy, t=t, r=r), [
                ("", {}, {"join": i64(0), "join:1": i64(0)}),
                ("advance", {"x": x, "version": i64(0)},
                 {"push": i64(1), "push:1": np.array(True), "push:2": np.array(False), "take": x, "round": i64(1),
                  "round:1": i64([[0, 0, 2]]), "round:2": np.zeros((0, 3), np.int64), "token": i64(2)}),
                ("advance", {"x": -x, "version": i64(1)}, {"push": i64(2), "take": -x}),
                ("", {}, {"join": i64(2), "join:1": i64(3)}),
                ("leave", {}, {})], ops=OPS)
    g.graph("aggregate/not_joined", WORKER.format(policy="async", t="float32"),
            [("push", {"x": np.zeros(2, np.float32), "version": i64(0)}, "did not join")],
            ops="ClockPush")
    g.graph("aggregate/future", WORKER.format(policy="async", t="float32"),
            [("", {}, {"join": i64(0)}),
             ("push", {"x": np.zeros(2, np.float32), "version": i64(7)}, "the newest is 0")],
            ops="ClockPush")
    two = 'a = ClockJoin() {clock="c", policy="sync"}\n' \
          'b = ClockRound() {clock="c", policy="async"}\n'
    g.graph("aggregate/two_policies", two, [("a b", {}, "goes by sync, not async")],
            ops="ClockJoin ClockRound")
    g.graph("aggregate/no_policy", 'a = ClockJoin() {clock="c", policy="sometimes"}\n',
            [("a", {}, "is none of sync")], ops="ClockJoin ClockLeave")
    g.graph("aggregate/other_bound", 'a = ClockJoin() {clock="c", policy="ssp,bound=1"}\n'
            'b = ClockLeave() {clock="c", policy="ssp,bound=2"}\n',
            [("a b", {}, "goes by ssp,bound=")], ops="ClockLeave")
    g.graph("aggregate/not_under_way", 'r = Const() {dtype=int64, value=3}\n'
            'a = ClockAdvance(r) {clock="c"}\n',
            [("a", {}, "not under way")], ops="ClockAdvance")
    none = np.zeros((0, 3), np.int64)
    ids = """
        m = Placeholder() {dtype=int64, shape=[?,3]}
        d = Placeholder() {dtype=int64, shape=[?,3]}
        """
    take = 'take = AggregatorTake(m, d) {{T=[{t}], aggregator="a", reductions=["{r}"], shapes=[[2]]}}\n'
    g.graph("aggregate/not_staged", ids + take.format(t="float32", r="mean"),
            [("take", {"m": i64([[4, 9, 2]]), "d": none}, "step 2 of worker:4, incarnation 9, is not staged")],
            ops="AggregatorTake")
    g.graph("aggregate/no_members", ids + take.format(t="float32", r="mean"),
            [("take", {"m": none, "d": none}, "without members")], ops="AggregatorTake")
    g.graph("aggregate/no_mean", ids + take.format(t="int32", r="mean"),
            [("take", {"m": i64([[0, 0, 1]]), "d": none}, "no mean of int32")], ops="AggregatorTake")
    for t in ("complex64", "bool"):
        g.graph(f"aggregate/no_sum/{t}", ids + take.format(t=t, r="sum"),
                [("take", {"m": i64([[0, 0, 1]]), "d": none}, f"no sum of {t}")],
                ops="AggregatorTake")
    # two members: what the same worker staged in two steps
    push = 'x = Placeholder() {{dtype={t}, shape=[2]}}\npush = AggregatorPush(x) ' \
        '{{aggregator="a"}}\n'
    members = i64([[0, 0, 1], [0, 0, 2]])
    for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        ends = np.iinfo(t)
        x, y = np.array([ends.max, 3], t), np.array([ends.max, 4], t)
        g.graph(f"aggregate/sum/{t}", ids + (push + take).format(t=t, r="sum"),
                [("push", {"x": x}, {}), ("push", {"x": y}, {}),
                 ("", {"m": members, "d": none}, {"take": x + y})],
                ops="AggregatorPush AggregatorTake")
    for t in ("float16", "bfloat16", "float32", "float64"):
        x, y = np.array([1, 256.0]), np.array([2.5, 1])
        for r, out in (("sum", x + y), ("mean", (x + y) / 2)):
            g.graph(f"aggregate/{r}/{t}", ids + (push + take).format(t=t, r=r),
                    [("push", {"x": typed(t, x)}, {}), ("push", {"x": typed(t, y)}, {}),
                     ("", {"m": members, "d": none}, {"take": typed(t, out)})],
                    ops="AggregatorPush AggregatorTake", tol=0)
    g.graph("aggregate/no_reduction", ids + take.format(t="int32", r="median"), [],
            ops="AggregatorTake", error="none of mean")
    g.graph("aggregate/push_nothing", 'a = AggregatorPush() {T=[], aggregator="a"}\n', [],
            ops="AggregatorPush", error="at least 1")


def worker_values(g):
    """What a worker has given is what it gets; who rests does not wait where nobody asks."""
    give = """
        join = ClockJoin() {{clock="c", keeps=true}}
        x = Placeholder() {{dtype={t}, shape=[2,3]}}
        give = WorkerValueGive(x) {{of="r"}}
        take = WorkerValueTake() {{dtype={t}, shape=[2,3], of="r", workers=3}}
        rest = ClockRest(give) {{clock="c", keeps=true}}
        leave = ClockLeave() {{clock="c", keeps=true}}
        """
    for t in ("float16", "bfloat16", "float32", "float64"):
        x = typed(t, np.arange(6).reshape(2, 3) - 2.5)
        g.graph(f"worker_value/{t}", give.format(t=t), [
            ("", {}, {"take": typed(t, np.zeros((2, 3)))}),
            ("", {}, {"join": i64(0), "join:1": i64(0)}),
            ("rest", {"x": x}, {"give": i64(3), "rest": i64(0)}),
            ("", {}, {"take": x}),
            ("leave", {}, {})],
            ops="WorkerValueGive WorkerValueTake ClockRest ClockLeave", tol=0)
    g.graph("worker_value/not_joined", give.format(t="float32"),
            [("rest", {"x": np.zeros((2, 3), np.float32)}, "is none of the clock 'c'")],
            ops="ClockRest")
    g.graph("worker_value/other_shape", """
        x = Placeholder() {dtype=float32, shape=[2]}
        give = WorkerValueGive(x) {of="r"}
        take = WorkerValueTake() {dtype=float32, shape=[3], of="r"}
        """, [("give", {"x": np.zeros(2, np.float32)}, {}),
              ("take", {}, "worker:0 had float32[2], not float32[3]")],
            ops="WorkerValueTake")
    g.graph("worker_value/no_shape",
            'a = WorkerValueTake() {dtype=float32, shape=[?], of="r"}\n', [],
            ops="WorkerValueTake", error="the shape must be known")
    g.graph("worker_value/no_sums", "x = Const() {dtype=int32, value=1}\n"
            'a = WorkerValueGive(x) {of="r"}\n', [], ops="WorkerValueGive", error="int32")


def journal(g):
    """A worker without a job directory has no journal: nothing is kept, and nothing is read."""
    write = """
        x = Placeholder() {{dtype={t}, shape=[3]}}
        heads = JournalHeads()
        join = ClockJoin(heads) {{clock="c", keeps=true}}
        begin = JournalBegin(join:2, join:1, join:4)
        write = JournalWrite(x) {{of="r"}}
        commit = JournalCommit(^write)
        read = JournalRead() {{dtype={t}, shape=[3], of="r"}}
        """
    for t in ("float16", "bfloat16", "float32", "float64"):
        x = typed(t, np.arange(3))
        g.graph(f"journal/{t}", write.format(t=t), [
            ("", {}, {"heads": np.zeros((0, 2), np.int64)}),
            ("begin", {}, {"join:1": i64(0), "join:3": np.array(True), "join:4": np.array(False),
                           "join:5": np.array(False)}),
            ("commit", {"x": x}, {}),
            ("read", {}, f"the worker's journal lacks 'r', {t}[3]")],
            ops="JournalHeads JournalBegin JournalWrite JournalCommit JournalRead ClockJoin", tol=0)
    g.graph("journal/add", """
        x = Placeholder() {dtype=float32, shape=[3]}
        write = JournalWrite(x) {of="r"}
        add = JournalAdd(x, ^write) {of="r"}
        """, [("add", {"x": np.zeros(3, np.float32)}, {})], ops="JournalAdd")
    g.graph("journal/no_sums", "x = Const() {dtype=int32, value=1}\n"
            'a = JournalAdd(x) {of="r"}\n', [], ops="JournalAdd", error="int32")
    g.graph("journal/no_shape", 'a = JournalRead() {dtype=float32, shape=[?], of="r"}\n', [],
            ops="JournalRead", error="the shape must be known")
    g.graph("journal/two", "h = JournalHeads()\n"
            'a = ClockJoin(h, h) {clock="c"}\n', [], ops="ClockJoin",
            error="a worker has one journal")
    g.graph("journal/other_rows", "x = Placeholder() {dtype=int64, shape=[2,3]}\n"
            'a = ClockJoin(x) {clock="c"}\n', [], ops="ClockJoin",
            error="the journal's heads are rows of two")
    rows = "x = Placeholder() {dtype=int64, shape=[?,2]}\n" 'a = ClockJoin(x) {clock="c"}\n'
    g.graph("journal/three_copies", rows,
            [("a", {"x": np.zeros((3, 2), np.int64)}, "int64[3,2] are no heads of a journal")],
            ops="ClockJoin")


def all_reduce(g):
    """A step without a collective is that of one worker alone."""
    x, y = np.array([3, -5], np.float32), np.array([[1], [2]], np.int64)
    g.graph("all_reduce/alone", """
        x = Placeholder() {dtype=float32, shape=[2]}
        y = Placeholder() {dtype=int64, shape=[?,1]}
        a = AllReduce(x, x, y, y, x) {reductions=["mean", "sum", "rows", "first", "mean_rows"]}
        b = AllReduce(x, x, y) {reductions=["mean_part", "sum_part", "part"]}
        """, [("", {"x": x, "y": y}, {"a": x, "a:1": x, "a:2": y, "a:3": y, "a:4": x, "b": x,
                                      "b:1": x, "b:2": y})] * 2)
    g.graph("all_reduce/no_mean", "x = Placeholder() {dtype=int64, shape=[]}\n"
            'a = AllReduce(x) {reductions=["mean"]}\n',
            [("a", {"x": np.int64(1)}, "no mean of int64")], ops="AllReduce")
    g.graph("all_reduce/no_reduction", "x = Const() {dtype=int64, value=1}\n"
            'a = AllReduce(x) {reductions=["median"]}\n', [], ops="AllReduce",
            error="none of mean")
    g.graph("all_reduce/too_few", "x = Const() {dtype=int64, value=1}\n"
            'a = AllReduce(x, x) {reductions=["sum"]}\n', [], ops="AllReduce",
            error="2 values and 1 reductions")


COLLECTIVES = {"CollectiveBroadcast": {}, "CollectiveGather": {}, "CollectiveScatter": {"root": 2},
               "CollectiveReduceScatter": {"reduction": '"sum"'}, "CollectiveAllGather": {},
               "CollectiveAllToAll": {}}
MOVED = ["float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
         "uint16", "uint32", "uint64"]


def collectives(g):
    """One worker alone is the root, has all parts, and gets its gradient back."""
    x = np.array([[3, -5], [2, 0.5], [7, 1]])
    for op, attrs in COLLECTIVES.items():
        adds = op == "CollectiveReduceScatter"
        for t in MOVED + ([] if adds else ["bool", "complex64"]):
            value, none = (typed(t, np.abs(v)) for v in (x, x[:0]))
            g.op(f"collective/{op}/{t}", op, [value], [value], attrs, grad2=t == "float64")
            g.op(f"collective/{op}/none/{t}", op, [none], [none], attrs)
        g.error(f"collective/{op}/type", op, [np.array(["a"])], "type|string", attrs)
    mean = {"reduction": '"mean"'}
    g.op("collective/mean", "CollectiveReduceScatter", [x], [x], mean, grad2=True)
    g.error("collective/no_mean", "CollectiveReduceScatter", [np.zeros(2, np.int32)],
            "no mean of int32", mean)
    g.error("collective/scalar", "CollectiveAllGather", [np.int32(1)], "rank")
    g.error("collective/root", "CollectiveGather", [np.zeros(2)], "root", {"root": -1})


def back(g):
    x, shape = np.array([[3, -5], [2, 0.5], [7, 1]]), np.array([3, 2], np.int64)
    for r in ("sum", "mean", "part", "rows", "mean_rows", "sum_part", "mean_part"):
        attrs = {"reduction": f'"{r}"'}
        for t in MOVED[:4] if "mean" in r else MOVED:
            value = typed(t, np.abs(x))
            g.op(f"collective/back/{r}/{t}", "CollectiveGrad", [value, shape], [value], attrs)
        for k in (0, 1) if r in ("sum", "part", "rows") else []:
            g.op(f"collective/back/{r}/{k}", "CollectiveGrad", [x, shape], [x], {**attrs, "root": k})
    g.op("collective/back/complex64", "CollectiveGrad", [x.astype("complex64"), shape],
         [x.astype("complex64")], {"reduction": '"rows"'})
    g.error("collective/back/no_mean", "CollectiveGrad", [np.zeros(2, np.int32), shape[:1]],
            "no mean of int32", {"reduction": '"mean"'})
    reductions = ["sum", "mean", "rows", "mean_rows", "part", "sum_part", "mean_part"]
    g.op("all_reduce/back", "AllReduce", [x + i for i in range(7)], [x + i for i in range(7)],
         {"reductions": str(reductions).replace("'", '"')}, grad2=True)


with Golden("aggregate") as g:
    all_reduce(g)
    collectives(g)
    back(g)
    aggregate(g)
    worker_values(g)
    journal(g)
