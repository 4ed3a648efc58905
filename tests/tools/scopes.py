#!/usr/bin/env python3
"""Random scripts of scope, device, control, colocate and container, one in the other, with ops,
variables, branches, loops, gradients and minimize in them: whether each node that tf-graph makes
has the name, the device, the group, the container and the controls that a rule written apart says.
usage: scopes.py SEED COUNT       exit 1 says which node of which seed has something else"""
import random
import re
import subprocess
import sys

DEVICES = ["/job:localhost", "/task:0", "/device:CPU:0", "/cpu:0", "/job:localhost/task:0", "/",
           "/job:localhost/device:CPU:0"]


def parts(text):
    """A device's name as what it says; of one that is merged only what is said counts."""
    found = {}
    for part in text.strip("/").split("/"):
        if part:
            key, value = part.split(":", 1)
            if key in ("cpu", "device"):
                key, value = "device", value if key == "device" else "CPU:" + value
            found[key] = value
    return found


def merged(inner, outer):
    return {**parts(outer), **parts(inner)} if parts(inner) else {}


def canonical(found):
    return "".join(f"/{key}:{found[key]}" for key in ("job", "task", "device") if key in found)


class Env:
    """What is in force."""

    def __init__(self, **what):
        self.scope, self.device, self.container, self.group = "", "", "", None
        self.controls, self.loop, self.values, self.depth = [], 0, [], 0
        self.outer = []     # controls around the loop
        self.__dict__.update(what)

    def but(self, **what):
        return Env(**{**self.__dict__, "values": list(self.values), **what})


class Script:
    def __init__(self, seed):
        self.random, self.lines, self.n, self.checks = random.Random(seed), [], 0, []
        self.where = {}     # by tag: the loop it is in
        self.devices = {}   # by tag or variable: the device it asks for
        self.full = {}      # by variable: its name
        top = Env()
        self.emit('local t0 = Placeholder{dtype = float32, shape = {}, _tag = "t0"}')
        self.where["t0"], self.devices["t0"] = 0, ""
        top.values.append("t0")
        for _ in range(6):
            self.statement(top)

    def emit(self, text):
        self.lines.append(text)

    def new(self, letter):
        self.n += 1
        return f"{letter}{self.n}"

    def made(self, env, tag, **more):
        """An op of that tag."""
        self.where[tag], self.devices[tag] = env.loop, env.device
        self.checks.append(("op", tag, env, more))
        env.values.append(tag)

    def block(self, env, opening, closing, last=None):
        self.emit(opening)
        for _ in range(self.random.randint(1, 3)):
            self.statement(env)
        if last:
            self.emit(last(env))
        self.emit(closing)

    def statement(self, env):
        kinds = [self.op, self.op, self.variable]
        if env.depth < 4:
            kinds += [self.scope, self.device, self.control, self.control, self.colocate,
                      self.container, self.branch, self.loop]
        if env.loop == 0:
            kinds += [self.gradient, self.minimize]
        self.random.choice(kinds)(env)

    def pick(self, env):
        return self.random.choice(env.values)

    def op(self, env):
        tag, x, attrs, inner, more = self.new("t"), self.pick(env), [], env, {}
        if self.random.random() < 0.2:
            name = self.random.choice(DEVICES)
            attrs.append(f'device = "{name}"')
            inner = env.but(device=canonical(merged(name, env.device)))
        if self.random.random() < 0.2:
            control = self.pick(env)
            attrs.append(f"control = {control}")
            inner = inner.but(controls=inner.controls + [control])
        attrs.append(f'_tag = "{tag}"')
        self.emit(f"local {tag} = Sin({x}, {{{', '.join(attrs)}}})")
        self.made(inner, tag, **more)
        if inner is not env:
            env.values.append(tag)

    def variable(self, env):
        v = self.new("v")
        init = self.random.choice(["0.5", "function(_, t) return Const(1, {dtype = t}) * 0.5 end"])
        self.emit(f'local {v} = variable{{name = "{v}", shape = {{}}, init = {init}}}')
        self.full[v] = env.scope + v
        self.devices[v] = env.device
        self.checks.append(("variable", v, env, {}))
        tag = self.new("t")
        self.emit(f'local {tag} = Add({v}, {self.pick(env)}, {{_tag = "{tag}"}})')
        self.made(env, tag, reads=v)
        return v

    def nest(self, env, call, **what):
        self.block(env.but(depth=env.depth + 1, **what), call + ", function()", "end)")

    def scope(self, env):
        name = self.new("s")
        self.nest(env, f'scope("{name}"', scope=f"{env.scope}{name}/")

    def device(self, env):
        name = self.random.choice(DEVICES)
        self.nest(env, f'device("{name}"', device=canonical(merged(name, env.device)))

    def control(self, env):
        some = [self.pick(env) for _ in range(self.random.randint(1, 2))]
        self.nest(env, f"control({{{', '.join(some)}}}", controls=env.controls + some)

    def colocate(self, env):
        t = self.pick(env)
        self.nest(env, f"colocate({t}", group=t, device=self.devices[t])

    def container(self, env):
        name = self.new("c")
        self.nest(env, f'container("{name}"', container=name)

    def branch(self, env):
        tag, name = self.new("t"), self.new("s")
        inner = env.but(depth=env.depth + 1, scope=f"{env.scope}{name}/")
        self.block(inner, f"local {tag} = cond(Greater({self.pick(env)}, 0), function()", "end,",
                   lambda e: f"return {self.pick(e)}")
        inner = env.but(depth=env.depth + 1, scope=f"{env.scope}{name}/")
        self.block(inner, "function()", f'end, {{name = "{name}"}})',
                   lambda e: f"return {self.pick(e)}")
        self.where[tag], self.devices[tag] = env.loop, env.device
        self.checks.append(("within", env.scope + name, env, {}))
        env.values.append(tag)

    def loop(self, env):
        tag, i, s, name = self.new("t"), self.new("i"), self.new("x"), self.new("s")
        inner = env.but(depth=env.depth + 1, scope=f"{env.scope}{name}/", loop=self.n)
        inner.controls, inner.outer = [], env.outer + env.controls
        inner.values.append(s)
        self.where[s], self.devices[s] = inner.loop, env.device
        first = self.random.random() < 0.5
        names, start = (f"{i}, {s}", f"0, {self.pick(env)}") if first else \
            (f"{s}, {i}", f"{self.pick(env)}, 0")
        step = (f"{i} + 1", f"{s} * 0.5")
        self.block(inner, f"local a{tag}, b{tag} = while_loop(function({names}) return "
                   f"Less({i}, 2) end, function({names})",
                   f'end, {{{start}}}, {{name = "{name}"}})',
                   lambda e: "return " + ", ".join(step if first else step[::-1]))
        self.emit(f"local {tag} = {'b' if first else 'a'}{tag}")
        self.where[tag], self.devices[tag] = env.loop, env.device
        self.checks.append(("within", env.scope + name, env, {}))
        env.values.append(tag)

    def forward(self, env, x, scope):
        """A loss of x, in the scope: through a loop, or not."""
        y = self.new("y")
        if self.random.random() < 0.5:
            self.emit(f'local {y} = scope("{scope}", function() return Square(Sin({x}) * {x}) end)')
        else:
            self.emit(f'local _, {y} = while_loop(function(i, s) return Less(i, 2) end, function(i,'
                      f' s) return i + 1, Sin(s) * {x} end, {{0, {x} * 2}}, {{name = "{scope}"}})')
        return y

    def gradient(self, env):
        x, scope, inside = self.new("x"), self.new("g"), env
        self.emit(f"local {x} = Neg({self.pick(env)})")
        y = self.forward(env, x, self.new("s"))
        some = []
        if self.random.random() < 0.6:
            some = [self.pick(env)] + ([y] if self.random.random() < 0.5 else [])
        name = self.random.choice(DEVICES)
        inside = env.but(device=canonical(merged(name, env.device)),
                         controls=env.controls + [c for c in some if c != y],
                         scope=f"{env.scope}{scope}/")
        self.emit(f'scope("{scope}", function() device("{name}", function() '
                  f"control({{{', '.join(some)}}}, function() gradients({y}, {x}) end) end) end)")
        self.checks.append(("gradients", f"{inside.scope}gradients/", inside, {}))

    def minimize(self, env):
        v, scope = self.variable(env), self.new("m")
        y = self.forward(env, v, self.new("s"))
        name, box = self.random.choice(DEVICES), self.new("c")
        inside = env.but(device=canonical(merged(name, env.device)), container=box,
                         scope=f"{env.scope}{scope}/")
        rule = self.random.choice(["momentum", "adam"])
        self.emit(f'scope("{scope}", function() device("{name}", function() container("{box}", '
                  f"function() minimize({y}, optim.{rule}{{}}, {{variables = {{{v}}}}}) end) end) "
                  "end)")
        self.checks.append(("gradients", f"{inside.scope}gradients/", inside, {}))
        self.checks.append(("minimize", v, inside, {"rule": rule}))

    def text(self):
        return "\n".join(self.lines) + "\n"


class Node:
    def __init__(self, line):
        found = re.match(r"(\S+) = ([\w.]+)\((.*?)\)(?: \{(.*?)\})?(?: @\?(\S+))? ", line)
        self.name, self.op, edges, self.attrs, self.device = found.groups()
        self.attrs, self.device = self.attrs or "", self.device or ""
        edges = [e for e in edges.split(", ") if e]
        self.inputs = [e.split(":")[0] for e in edges if e[0] != "^"]
        self.controls = [e[1:] for e in edges if e[0] == "^"]

    def attr(self, name):
        found = re.search(r'\b' + name + r'="([^"]*)"', self.attrs)
        return found and found.group(1)

    def group(self):
        found = re.search(r'_class=\["loc:@([^"]*)"\]', self.attrs)
        return found and found.group(1)


class Wrong(Exception):
    pass


class Graph:
    def __init__(self, text):
        self.nodes = {}
        for line in text.splitlines():
            if " = " in line and not line.startswith(("entry", "alias", "made")):
                node = Node(line)
                self.nodes[node.name] = node
        self.tags = {n.attr("_tag"): n for n in self.nodes.values() if n.attr("_tag")}
        self.known = {}

    def waits(self, name, target):
        """Whether it runs after `target` in any case."""
        if (name, target) in self.known:
            return self.known[name, target]
        node = self.nodes[name]
        self.known[name, target] = False
        inputs = [i for i in node.inputs if self.nodes[i].op != "NextIteration"]
        if node.op == "Merge":
            found = bool(inputs) and all(self.waits(i, target) for i in inputs)
        else:
            found = any(self.waits(i, target) for i in inputs)
        found = found or name == target or any(self.waits(c, target) for c in node.controls)
        self.known[name, target] = found
        return found

    def node(self, name):
        if name not in self.nodes:
            raise Wrong(f"there is no {name}")
        return self.nodes[name]


def want(node, what, found, wanted):
    if found != wanted:
        raise Wrong(f"{node.name}: {what} is {found!r}, not {wanted!r}")


def check_place(graph, node, env):
    want(node, "device", node.device, env.device)
    if env.group is None:
        want(node, "group", node.group(), None)
    elif env.group in graph.tags:
        want(node, "group", node.group(), graph.tags[env.group].name)


def tagged(graph, controls):
    return [graph.tags[c].name for c in controls if c in graph.tags]


def check_op(graph, script, tag, env, more):
    node = graph.tags[tag]
    if not re.fullmatch(re.escape(env.scope) + r"\w+", node.name):
        raise Wrong(f"{node.name}: is not in {env.scope}")
    check_place(graph, node, env)
    here = {c for c in env.controls if script.where[c] == env.loop}
    for name in tagged(graph, here):
        if name not in node.controls:
            raise Wrong(f"{node.name}: lacks ^{name}")
    for name in tagged(graph, env.controls + env.outer):
        if not graph.waits(node.name, name):
            raise Wrong(f"{node.name}: does not wait for {name}")
    free = {n.name for n in graph.tags.values()} - set(tagged(graph, env.controls))
    for name in node.controls:
        if name in free:
            raise Wrong(f"{node.name}: has ^{name}")
    if "reads" in more:
        read = graph.node(node.inputs[0])
        while read.op in ("Enter", "Switch"):
            read = graph.node(read.inputs[0])
        v = more["reads"]
        want(read, "input", read.inputs, [script.full[v]])
        want(read, "device", read.device, script.devices[v])
        want(read, "group", read.group(), script.full[v])
        for name in tagged(graph, env.controls + env.outer):
            if not graph.waits(read.name, name):
                raise Wrong(f"{read.name}: does not wait for {name}")


def check_variable(graph, script, v, env, _):
    name = script.full[v]
    node = graph.node(name)
    check_place(graph, node, env)
    want(node, "container", node.attr("container"), env.container)
    initial = [n for n in graph.nodes.values() if n.name.startswith(name + "/initial")]
    for n in initial + [graph.node(name + "/Assign"), graph.node(name + "/read")]:
        want(n, "device", n.device, env.device)
        want(n, "controls", n.controls, [])
    for n in initial:
        want(n, "group", n.group(), None)
    want(node, "controls", node.controls, [])


def check_within(graph, script, name, env, _):
    for n in graph.nodes.values():
        if n.name.startswith(name + "/") and n.op == "Enter" and "is_constant=false" in n.attrs \
           and "/" not in n.name[len(name) + 1:]:
            for c in tagged(graph, env.controls):
                if not graph.waits(n.name, c):
                    raise Wrong(f"{n.name}: does not wait for {c}")


def is_forward(graph, node):
    """Added to the forward graph, or bound to what was."""
    if re.search(r"_count/\w+$", node.name) or node.op in ("Stack", "StackPush", "StackPop"):
        return True
    from_stack = node.inputs and graph.nodes[node.inputs[0]]
    while from_stack and from_stack.op in ("Enter", "Switch"):
        from_stack = graph.nodes[from_stack.inputs[0]]
    return node.op in ("Enter", "Switch", "Exit") and from_stack and from_stack.op == "Stack"


def check_gradients(graph, script, prefix, env, _):
    found = [n for n in graph.nodes.values() if n.name.startswith(prefix)]
    if not found:
        raise Wrong(f"there is nothing in {prefix}")
    for n in found:
        if is_forward(graph, n):
            beside = graph.nodes.get(n.name[len(prefix):].rpartition("/")[0])
            if beside:
                want(n, "device", n.device, beside.device)
            continue
        if n.op == "Enter" and graph.nodes[n.inputs[0]].op == "Stack":
            continue
        check_place(graph, n, env)
        for c in tagged(graph, env.controls):
            if n.op != "Const" and not graph.waits(n.name, c):
                raise Wrong(f"{n.name}: does not wait for {c}")


def check_minimize(graph, script, v, env, more):
    name, device = script.full[v], script.devices[v]
    for n in graph.nodes.values():
        slot = re.match(re.escape(name) + f"/{more['rule']}(/[mv])?$", n.name)
        if slot:
            want(n, "device", n.device, device)
            want(n, "group", n.group(), name)
            want(n, "container", n.attr("container"), env.container)
            want(n, "controls", n.controls, [])
        if n.name.startswith(f"{name}/{more['rule']}/") and "/initial/" in n.name:
            want(n, "device", n.device, device)
            want(n, "controls", n.controls, [])
        if n.name.startswith(f"{env.scope}update/{name}/"):
            want(n, "device", n.device, device)
            want(n, "group", n.group(), name)
    for n in (graph.node(env.scope + "train"), graph.node(name + "/gradient")):
        check_place(graph, n, env)
        for c in tagged(graph, env.controls):
            if c not in n.controls:
                raise Wrong(f"{n.name}: lacks ^{c}")


CHECKS = {"op": check_op, "variable": check_variable, "within": check_within,
          "gradients": check_gradients, "minimize": check_minimize}


def run(seed):
    script = Script(seed)
    made = subprocess.run(["tf-graph", "-"], input=script.text().encode(), capture_output=True)
    if made.returncode:
        raise Wrong(made.stderr.decode().strip())
    shown = subprocess.run(["tf-show", "--text"], input=made.stdout, capture_output=True)
    if shown.returncode:
        raise Wrong(shown.stderr.decode().strip())
    graph = Graph(shown.stdout.decode())
    for kind, what, env, more in script.checks:
        CHECKS[kind](graph, script, what, env, more)
    return len(graph.nodes), script


def main():
    first, count, nodes = int(sys.argv[1]), int(sys.argv[2]), 0
    for seed in range(first, first + count):
        try:
            nodes += run(seed)[0]
        except Wrong as wrong:
            print(f"seed {seed}: {wrong}")
            print(Script(seed).text())
            sys.exit(1)
    print(f"{count} scripts, {nodes} nodes")


main()
