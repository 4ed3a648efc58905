# SPDX-License-Identifier: Apache-2.0
"""Saving and restoring, to what tests/ops/files.c keeps instead of a disk."""
import numpy as np

from golden import Golden, typed

TYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "int8", "int16", "int32",
         "int64", "uint8", "uint16", "uint32", "uint64", "bool", "string"]

GRAPH = """
x = Placeholder() {dtype=%s}
path = Const() {dtype=string, value="store"}
names = Const() {dtype=string, value=["first","x"]}
s = Save(path, names, path, x)
name = Const() {dtype=string, value="x"}
r = Restore(path, name, ^s) {dt=%s}
"""


def value_of(name):
    if name == "string":
        return np.array(["a", "bc"])
    return typed(name, np.array([[1, 0, 1]]))


with Golden("io") as g:
    for t in TYPES:
        x = value_of(t)
        g.graph(f"save/{t}", GRAPH % (t, t), [("", {"x": x}, {"r": x})], ops="Save Restore")
    x = np.array([1.5], np.float32)
    g.graph("restore/other_type", GRAPH % ("float32", "int32"),
            [("r", {"x": x}, "store: 'x' is float32, not int32")], ops="Restore")
    g.graph("restore/missing", GRAPH.replace('value="x"', 'value="y"') % ("float32", "float32"),
            [("r", {"x": x}, "there is no tensor 'y' in it")], ops="Restore")
    g.graph("save/names", GRAPH.replace('"first",', "") % ("float32", "float32"),
            [("s", {"x": x}, "1 names for 2 tensors")], ops="Save")
    g.graph("save/shape", "p = Const() {dtype=string, value=[\"a\"]}\ns = Save(p, p, p)\n", [],
            ops="Save", error="scalar")
    g.graph("restore/shape", "p = Const() {dtype=string, value=[\"a\"]}\n"
            "r = Restore(p, p) {dt=float32}\n", [], ops="Restore", error="scalar")
