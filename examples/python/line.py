#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits a straight line with the library of tf-tools, as examples/c/line.c does: by ctypes alone.

    tf-graph ../c/line.lua | tf-opt | tf-place > line.tfg
    python3 line.py line.tfg
"""
import ctypes as c
import sys

tf = c.CDLL("libtf-tools.so.1")
for name in ("tf_graph_open", "tf_session_new", "tf_call_prepare"):
    getattr(tf, name).restype = c.c_void_p  # handles; others return a code
tf.tf_session_step.restype = c.c_int64


class Error(c.Structure):
    _fields_ = [("code", c.c_int32), ("text", c.c_char * 1024)]


class Shape(c.Structure):
    _fields_ = [("rank", c.c_int32), ("dims", c.c_int64 * 8)]


class Tensor(c.Structure):
    _fields_ = [("type", c.c_int32), ("shape", Shape), ("data", c.c_void_p), ("bytes", c.c_size_t)]


def call(name, *arguments):
    """Calls a function that takes an error last, and ends the program if there is one."""
    error, function = Error(), getattr(tf, "tf_" + name)
    result = function(*arguments, c.byref(error))
    if error.code:
        print(f"line.py: {error.text.decode()}", file=sys.stderr)
        sys.exit(error.code)
    return c.c_void_p(result) if function.restype is c.c_void_p else result


def fetch(steps, i):
    value = Tensor()
    call("call_fetch", steps, i, c.byref(value))
    return c.cast(value.data, c.POINTER(c.c_float))[0]


points = [(c.c_float * 4)(0, 1, 2, 3), (c.c_float * 4)(-1, 2, 5, 8)]  # borrowed, so they stay
graph = call("graph_open", (sys.argv[1] if len(sys.argv) > 1 else "line.tfg").encode())
session = call("session_new", graph, None)
train = call("call_prepare", session, b"x,y", b"loss", b"train")
call("session_init", session)
for i, values in enumerate(points):
    shape = Shape(1, (c.c_int64 * 8)(len(values)))
    value = Tensor(1, shape, c.addressof(values), c.sizeof(values))  # 1: TF_FLOAT32
    call("call_feed", train, i, c.byref(value))
for _ in range(2000):
    call("call_run", train)
print(f"loss {fetch(train, 0):.6f} after step {tf.tf_session_step(session)}")
call("session_save", session, b"line.ckpt")
line = call("call_prepare", session, None, b"w,b", None)
call("session_init", session)  # all that was learned is forgotten
call("session_restore", session, b"line.ckpt")
call("call_run", line)
print(f"y = {fetch(line, 0):.3f} x + {fetch(line, 1):.3f}")
for free, handle in (("call", line), ("call", train), ("session", session), ("graph", graph)):
    getattr(tf, f"tf_{free}_free")(handle)
