#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits a straight line with the library of tf-tools, as examples/c/line.c does: by ctypes alone.

    tf-graph ../c/line.lua | tf-opt | tf-place > line.tfg
    python3 line.py line.tfg
"""
import sys
from array import array
from ctypes import CDLL, POINTER, Structure, byref, c_char, c_char_p, c_float, c_int, c_int32
from ctypes import c_int64, c_size_t, c_void_p, cast

FLOAT32 = 1


class Error(Structure):
    _fields_ = [("code", c_int32), ("text", c_char * 1024)]


class Shape(Structure):
    _fields_ = [("rank", c_int32), ("dims", c_int64 * 8)]


class Tensor(Structure):
    _fields_ = [("type", c_int32), ("shape", Shape), ("data", c_void_p), ("bytes", c_size_t)]


tf = CDLL("libtf-tools.so.1")
error = Error()


def declare(name, result, *arguments):
    """Sets a function's types. One that can fail takes the error last, and ends the program."""
    function = getattr(tf, name)
    function.argtypes, function.restype = arguments, result

    def call(*values):
        made = function(*values, byref(error))
        if not made if result is c_void_p else made:
            print(f"line.py: {error.text.decode()}", file=sys.stderr)
            sys.exit(error.code)
        return made

    return call if arguments[-1] == POINTER(Error) else function


ERROR = POINTER(Error)
graph_open = declare("tf_graph_open", c_void_p, c_char_p, ERROR)
session_new = declare("tf_session_new", c_void_p, c_void_p, c_void_p, ERROR)
session_init = declare("tf_session_init", c_int, c_void_p, ERROR)
session_save = declare("tf_session_save", c_int, c_void_p, c_char_p, ERROR)
session_restore = declare("tf_session_restore", c_int, c_void_p, c_char_p, ERROR)
session_step = declare("tf_session_step", c_int64, c_void_p)
call_prepare = declare("tf_call_prepare", c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, ERROR)
call_feed = declare("tf_call_feed", c_int, c_void_p, c_int, POINTER(Tensor), ERROR)
call_run = declare("tf_call_run", c_int, c_void_p, ERROR)
call_fetch = declare("tf_call_fetch", c_int, c_void_p, c_int, POINTER(Tensor), ERROR)
free = [declare(f"tf_{what}_free", None, c_void_p) for what in ("call", "session", "graph")]


def feed(call, i, values):
    """The array keeps the memory that the call borrows."""
    data, n = values.buffer_info()
    shape = Shape(1, (c_int64 * 8)(n))
    call_feed(call, i, byref(Tensor(FLOAT32, shape, data, n * values.itemsize)))


def fetch(call, i):
    value = Tensor()
    call_fetch(call, i, byref(value))
    return cast(value.data, POINTER(c_float))[0]


x, y = array("f", [0, 1, 2, 3]), array("f", [-1, 2, 5, 8])
graph = graph_open((sys.argv[1] if len(sys.argv) > 1 else "line.tfg").encode())
session = session_new(graph, None)
train = call_prepare(session, b"x,y", b"loss", b"train")
session_init(session)
feed(train, 0, x)
feed(train, 1, y)
for _ in range(2000):
    call_run(train)
print(f"loss {fetch(train, 0):.6f} after step {session_step(session)}")
session_save(session, b"line.ckpt")

line = call_prepare(session, None, b"w,b", None)
session_init(session)  # all that was learned is forgotten
session_restore(session, b"line.ckpt")
call_run(line)
print(f"y = {fetch(line, 0):.3f} x + {fetch(line, 1):.3f}")
for handle, what in ((line, 0), (train, 0), (session, 1), (graph, 2)):
    free[what](handle)
