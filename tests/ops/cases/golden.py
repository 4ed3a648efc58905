# SPDX-License-Identifier: Apache-2.0
"""Writes cases of op tests (tests/ops/README.md) from NumPy arrays.

usage: golden.py SCRIPT..., scripts of families, each of which does:

    from golden import Golden, rng
    with Golden("math_binary") as g:
        x = rng.uniform(-1, 1, 5)
        g.op("add/scalar", "Add", [x, np.float64(2)], [x + 2])
        g.error("add/shapes", "Add", [np.zeros(2), np.zeros(3)], "cannot be broadcast")
"""
import os
import runpy
import sys
import zlib

# Functions of the C library, the same on all machines, in place of vector code by what each has.
os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V3 X86_V4 AVX512_ICL AVX512_SPR "
                      "FMA3 AVX2 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL")
import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "golden")
FLOATS = ["float32", "float64"]
INTS = ["int32", "int64"]
NUMBERS = FLOATS + INTS


class Draws:
    """A generator that has, for what is drawn for a case, a seed of the case's name: a new case
    changes no other one. The name comes after the draws, so a script is run twice: the first run
    finds the names."""

    def run(self, script):
        expected = []
        for _ in range(2):
            self.expected, self.names = expected, []
            self.seed()
            runpy.run_path(script + ".py", run_name="__main__")
            expected = self.names
        assert self.names == self.expected, script

    def seed(self):
        name = "".join(self.expected[len(self.names):][:1])
        self.generator = np.random.default_rng(zlib.crc32(name.encode()))

    def next(self, name):
        self.names.append(name)
        self.seed()

    def __getattr__(self, method):
        return getattr(self.generator, method)


rng = Draws()


def element(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (bytes, str)):
        text = x.decode() if isinstance(x, bytes) else x
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if isinstance(x, (complex, np.complexfloating)):
        sign = "" if np.signbit(x.imag) else "+"
        return f"{element(np.float32(x.real))}{sign}{element(np.float32(x.imag))}j"
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "inf" if x > 0 else "-inf"
    text = np.format_float_positional(x, trim="-") if 1e-3 <= abs(x) < 1e6 else repr(x.item())
    if isinstance(x, np.float32) and not 1e-3 <= abs(x) < 1e6:
        text = np.format_float_scientific(x, trim="-")
    return text


def bfloat16(values):
    """Rounded to nearest even, as float32: NumPy lacks the type."""
    bits, half = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64), np.uint64(16)
    bits = (bits + np.uint64(0x7FFF) + (bits >> half & np.uint64(1))) >> half << half
    return bits.astype(np.uint32).view(np.float32)


def typed(dtype, values):
    """For Golden: values in a type, by its name."""
    if dtype == "bfloat16":
        return dtype, bfloat16(values)
    return np.asarray(values).astype(dtype)


def literal(a):
    if a.ndim == 0:
        return element(a.item() if a.dtype.kind in "OSU" else a[()])
    return "[" + ",".join(literal(np.asarray(x)) for x in a) + "]"


class Like:
    """A large input, by formula: element i is (i * 7919 % modulus) * scale + offset."""

    def __init__(self, dtype, shape, modulus, scale, offset):
        count = int(np.prod(shape))
        values = (np.arange(count, dtype=np.int64) * 7919 % modulus) * float(scale) + float(offset)
        self.array = values.astype(dtype).reshape(shape)
        self.text = f"@mod {modulus} {scale} {offset}"


def type_name(dtype):
    return "string" if dtype.kind in "OSU" else dtype.name


def tensor(value):
    """'float32[2] [1,2]'; for types that NumPy lacks a pair ("bfloat16", values)."""
    if isinstance(value, Like):
        a = value.array
        return f"{a.dtype.name}[{','.join(map(str, a.shape))}] {value.text}"
    name = None
    if isinstance(value, tuple):
        name, value = value
    a = np.asarray(value)
    head = f"{name or type_name(a.dtype)}[{','.join(map(str, a.shape))}]"
    return f"{head} {literal(a)}" if a.size else head


def array(value):
    return value.array if isinstance(value, Like) else np.asarray(value)


class Golden:
    def __init__(self, name):
        self.path = os.path.normpath(os.path.join(FOLDER, name + ".txt"))
        self.lines = ["# SPDX-License-Identifier: Apache-2.0", "# Written by tests/ops/cases."]
        self.names = set()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            os.makedirs(FOLDER, exist_ok=True)
            with open(self.path, "w", encoding="utf-8") as f:
                f.write("\n".join(self.lines) + "\n")

    def start(self, name):
        unique, n = name, 2
        while unique in self.names:
            unique, n = f"{name}-{n}", n + 1
        self.names.add(unique)
        self.lines += ["", f"case {unique}"]
        rng.next(f"{os.path.basename(self.path)}: {unique}")

    def head(self, name, op, inputs, attrs):
        self.start(name)
        self.lines.append(f"op {op}")
        self.lines += [f"attr {key}={value}" for key, value in (attrs or {}).items()]
        self.lines += [f"in {tensor(x)}" for x in inputs]

    def op(self, name, op, inputs, outputs, attrs=None, tol=None, grad=None, grad2=False,
           nograd=None, symmetric=False):
        """outputs: arrays, or None for one that is not checked. grad: input numbers that are
        checked (default: all of float64); nograd: why none is; grad2: second order as well."""
        self.head(name, op, inputs, attrs)
        self.lines += ["out any" if y is None else f"out {tensor(y)}" for y in outputs]
        if tol is not None:
            self.lines.append(f"tol {tol:g}")
        if grad is not None:
            self.lines.append("grad " + " ".join(map(str, grad)))
        if grad2:
            self.lines.append("grad2")
        if symmetric:  # matrices: an element is varied together with its mirror image
            self.lines.append("symmetric")
        if nograd:
            self.lines.append(f"nograd {nograd}")
        self.lines.append("end")

    def error(self, name, op, inputs, message, attrs=None):
        """message: part of the error's text; alternatives separated by |."""
        self.head(name, op, inputs, attrs)
        self.lines += [f"error {message}", "end"]

    def graph(self, name, text, steps, ops=None, error=None, tol=None):
        """steps: [(targets, {edge: fed}, {edge: expected}) or (targets, {edge: fed}, "error")].
        error: of the graph itself. ops: what the case is about (default: all ops in it)."""
        self.start(name)
        if ops:
            self.lines.append(f"op {ops}")
        if tol is not None:
            self.lines.append(f"tol {tol:g}")
        if error:
            self.lines.append(f"error {error}")
        self.lines += ["graph"] + [x.strip() for x in text.strip().splitlines()] + ["end graph"]
        for targets, feeds, expected in steps:
            self.lines.append(f"step {targets}".rstrip())
            self.lines += [f"feed {edge} {tensor(x)}" for edge, x in feeds.items()]
            if isinstance(expected, str):
                self.lines.append(f"error {expected}")
            else:
                self.lines += [f"fetch {edge} " + ("any" if x is None else tensor(x))
                               for edge, x in expected.items()]
        self.lines.append("end")


if __name__ == "__main__":
    import golden
    for name in sys.argv[1:]:
        golden.rng.run(name)
