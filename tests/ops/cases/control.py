# SPDX-License-Identifier: Apache-2.0
"""Constants, placeholders, control flow, stacks, printing and asserting, as small graphs."""
import numpy as np

from golden import Golden

FIXED = ["float32", "float64", "float16", "bfloat16", "complex64", "int8", "int16", "int32",
         "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def of_type(name, values):
    values = np.asarray(values)
    if name == "bfloat16":
        return (name, values.astype(np.float32))
    return values % 2 == 1 if name == "bool" else values.astype(name)


def scalar(x):
    return np.float32(x)


def sources(g):
    for t in FIXED:
        text = {"bool": "[true,false,true]", "complex64": "[1+0j,2+0j,3+0j]"}.get(t, "[1,2,3]")
        x = of_type(t, [1, 2, 3])
        g.graph(f"const/{t}", f"c = Const() {{dtype={t}, value={text}}}\n", [("", {}, {"c": x})],
                ops="Const")
        g.graph(f"placeholder/{t}", f"p = Placeholder() {{dtype={t}}}\n",
                [("", {"p": x}, {"p": x})], ops="Placeholder")
    s = np.array(["one", ""])
    g.graph("const/string", 'c = Const() {dtype=string, value=["one",""]}\n', [("", {}, {"c": s})],
            ops="Const")
    g.graph("placeholder/string", "p = Placeholder() {dtype=string}\n", [("", {"p": s}, {"p": s})],
            ops="Placeholder")
    g.graph("const/type", "c = Const() {dtype=float32, value=int32[2] [1,2]}\n", [], ops="Const",
            error="value|expected|dtype")
    p = "p = Placeholder() {dtype=float32, shape=[?,2]}\ny = Identity(p)\n"
    g.graph("placeholder/unfed", p, [("y", {}, "feed|fed")], ops="Placeholder")
    g.graph("placeholder/shape", p, [("", {"p": np.zeros((1, 2), np.float32)},
                                      {"y": np.zeros((1, 2), np.float32)}),
                                     ("y", {"p": np.zeros(2, np.float32)}, "[?,2]")],
            ops="Placeholder")
    g.graph("placeholder-with-default/fed",
            "c = Const() {dtype=float32, value=1}\np = PlaceholderWithDefault(c) {shape=[]}\n"
            "y = Identity(p)\n",
            [("", {}, {"y": scalar(1)}), ("", {"p": scalar(5)}, {"y": scalar(5)})],
            ops="PlaceholderWithDefault")


BRANCHES = """
x = Placeholder() {dtype=%s}
p = Placeholder() {dtype=bool}
s = Switch(x, p)
f = Identity(s:0)
t = Identity(s:1)
m = Merge(f, t)
"""


def branches(g):
    for t in FIXED + ["string"]:
        x = np.array(["a", "bc"]) if t == "string" else of_type(t, [1, 2])
        steps = []
        for p, index in ((False, 0), (True, 1)):
            steps.append(("", {"x": x, "p": np.array(p)},
                          {"m": x, "m:1": np.int32(index), "t" if p else "f": x}))
        g.graph(f"switch/{t}", BRANCHES % t, steps, ops="Switch Merge")
    g.graph("switch/dead", BRANCHES % "float32",
            [("", {"x": scalar(1), "p": np.array(True)}, {"t": scalar(1)}),
             ("f", {"x": scalar(1), "p": np.array(True)}, {"t": scalar(1)})], ops="Switch")
    g.graph("switch/taken", BRANCHES % "float32" + "g = Neg(f)\n",
            [("", {"x": scalar(1), "p": np.array(False)}, {"g": scalar(-1)})], ops="Switch Merge")
    g.graph("switch/predicate", BRANCHES.replace("dtype=bool", "dtype=bool, shape=[2]") % "float32",
            [], ops="Switch", error="must be a scalar")
    g.graph("merge/none", "m = Merge()\n", [], ops="Merge", error="missing|at least")
    g.graph("merge/alone", "x = Placeholder() {dtype=float32}\nm = Merge(x)\n",
            [("", {"x": scalar(3)}, {"m": scalar(3), "m:1": np.int32(0)})], ops="Merge")
    g.graph("controltrigger", BRANCHES % "float32" + """
        dead = NoOp(^f)
        c = ControlTrigger(^f, ^t)
        y = Neg(x, ^c)
        """, [("", {"x": scalar(1), "p": np.array(b)}, {"y": scalar(-1)}) for b in (False, True)],
            ops="ControlTrigger NoOp")


LOOP = """
zero = Const() {dtype=%(t)s, value=%(start)s}
limit = Placeholder() {dtype=int32}
i0 = Const() {dtype=int32, value=0}
i = Enter(i0) {frame_name="loop", parallel_iterations=%(n)s}
v = Enter(zero) {frame_name="loop", parallel_iterations=%(n)s}
end = Enter(limit) {frame_name="loop", is_constant=true, parallel_iterations=%(n)s}
im = Merge(i, inext)
vm = Merge(v, vnext)
less = Less(im, end)
go = LoopCond(less)
is = Switch(im, go)
vs = Switch(vm, go)
ibody = Identity(is:1)
vbody = Identity(vs:1)
one = Const(^ibody) {dtype=int32, value=1}
iplus = Add(ibody, one)
%(body)s
inext = NextIteration(iplus)
vnext = NextIteration(vplus)
iexit = Exit(is:0)
vexit = Exit(vs:0)
"""


def loops(g):
    for t in FIXED:
        text = LOOP % {"t": t, "n": 4, "body": "vplus = Identity(vbody)",
                       "start": {"bool": "true", "complex64": "2+0j"}.get(t, "3")}
        v = of_type(t, 2 if t == "complex64" else 3)
        g.graph(f"loop/{t}", text, [("", {"limit": np.int32(3)}, {"vexit": v})],
                ops="Enter Exit NextIteration LoopCond Merge Switch")
    for n in (1, 2, 32):
        text = LOOP % {"t": "int32", "n": n, "start": 0, "body": "vplus = Add(vbody, ibody)"}
        g.graph(f"loop/parallel-{n}", text,
                [("", {"limit": np.int32(k)},
                  {"vexit": np.int32(sum(range(k))), "iexit": np.int32(max(k, 0))})
                 for k in (0, 1, 7, 100, -1)],
                ops="Enter Exit NextIteration LoopCond")
    text = "x = Placeholder() {dtype=float32}\ne = Enter(x) {frame_name=\"\"}\n" \
        "y = Exit(e)\n"
    g.graph("enter/no-name", text, [], ops="Enter", error="name")
    g.graph("enter/parallel", "x = Placeholder() {dtype=float32}\n"
            "e = Enter(x) {frame_name=\"f\", parallel_iterations=0}\n", [], ops="Enter",
            error="at least 1")
    g.graph("loopcond/vector", "x = Const() {dtype=bool, value=[true]}\ny = LoopCond(x)\n", [],
            ops="LoopCond", error="scalar")


def stacks(g):
    for t in FIXED:
        a, b = of_type(t, [1, 2, 3]), of_type(t, [[5, 3]])
        g.graph(f"stack/{t}", f"""
            a = Placeholder() {{dtype={t}}}
            b = Placeholder() {{dtype={t}}}
            s = Stack() {{elem_type={t}}}
            one = StackPush(s, a)
            two = StackPush(s, b, ^one)
            last = StackPop(s, ^two) {{elem_type={t}}}
            first = StackPop(s, ^last) {{elem_type={t}}}
            """, [("", {"a": a, "b": b}, {"last": b, "first": a, "two": b})] * 2,
                ops="Stack StackPush StackPop")
    g.graph("stack/empty", """
        s = Stack() {elem_type=float32}
        x = StackPop(s) {elem_type=float32}
        """, [("x", {}, "the stack is empty")], ops="StackPop Stack")
    g.graph("stack/type", """
        a = Placeholder() {dtype=float32}
        s = Stack() {elem_type=float32}
        one = StackPush(s, a)
        x = StackPop(s, ^one) {elem_type=int32}
        """, [("x", {"a": scalar(1)}, "the element is float32, not int32")],
            ops="StackPop StackPush")
    g.graph("stack/two", """
        a = Const() {dtype=int32, value=1}
        b = Const() {dtype=int32, value=2}
        s = Stack() {elem_type=int32}
        r = Stack() {elem_type=int32}
        one = StackPush(s, a)
        two = StackPush(r, b)
        x = StackPop(s, ^one, ^two) {elem_type=int32, shape=[]}
        y = StackPop(r, ^one, ^two) {elem_type=int32, shape=[]}
        """, [("", {}, {"x": np.int32(1), "y": np.int32(2)})], ops="Stack StackPush StackPop")
    push = LOOP % {"t": "int32", "n": 1, "start": 0, "body": """
        se = Enter(s) {frame_name="loop", is_constant=true, parallel_iterations=1}
        pushed = StackPush(se, ibody)
        vplus = Identity(pushed)"""}
    g.graph("stack/loop", "s = Stack() {elem_type=int32}\n" + push + """
        last = StackPop(s, ^vexit) {elem_type=int32}
        before = StackPop(s, ^last) {elem_type=int32}
        """, [("", {"limit": np.int32(5)}, {"last": np.int32(4), "before": np.int32(3)})],
            ops="Stack StackPush StackPop")


def talk(g):
    for t in FIXED + ["string"]:
        x = np.array(["a", "b"]) if t == "string" else of_type(t, [1, 2])
        g.graph(f"print/{t}", f"x = Placeholder() {{dtype={t}}}\n"
                'y = Print(x, x, x) {message="x: ", first_n=1, summarize=1}\n',
                [("", {"x": x}, {"y": x})] * 2, ops="Print")
    x = np.array([1.5, -2])
    g.op("print/gradient", "Print", [x, np.int32(7)], [x], attrs={"message": '"m"'})
    g.graph("print/nothing", "y = Print()\n", [], ops="Print", error="inputs|missing")
    a = "c = Placeholder() {dtype=bool}\nx = Const() {dtype=float32, value=[1,2.5,3,4]}\n" \
        's = Const() {dtype=string, value="why"}\n' \
        "a = Assert(c, s, x) {summarize=%d}\ny = Neg(x, ^a)\n"
    yes, no = {"c": np.array(True)}, {"c": np.array(False)}
    y = -np.array([1, 2.5, 3, 4], np.float32)
    for n, message in ((2, "assertion failed: [why] [1 2.5...]"),
                       (-1, "assertion failed: [why] [1 2.5 3 4]"),
                       (0, "assertion failed: [...] [...]")):
        g.graph(f"assert/{n}", a % n, [("", yes, {"y": y}), ("y", no, message)], ops="Assert")
    g.graph("assert/vector", "c = Const() {dtype=bool, value=[true]}\na = Assert(c, c)\n", [],
            ops="Assert", error="scalar")
    g.graph("noop", "x = Const() {dtype=float32, value=2}\nn = NoOp(^x)\ny = Neg(x, ^n)\n",
            [("n", {}, {}), ("", {}, {"y": scalar(-2)})], ops="NoOp")


with Golden("control") as g:
    sources(g)
    branches(g)
    loops(g)
    stacks(g)
    talk(g)
