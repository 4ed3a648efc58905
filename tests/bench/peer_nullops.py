#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The measurement of nullops.c in TensorFlow: ops per second that compute nothing, in a graph that
# is not simplified, on one thread of each kind. Seconds are of processor time.
# usage: peer_nullops.py [OPS]
import os
import random
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
REPEATS = 21


def noops(n, fan_in):
    """Each waits for up to fan_in random ones before it; one: the last."""
    ops = []
    for _ in range(n):
        chosen = [ops[-1]] + random.choices(ops, k=fan_in - 1) if ops else []
        with tf.control_dependencies(chosen):
            ops.append(tf.no_op())
    return ops[-1]


def chain(n, op):
    x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[])
    y = x
    for _ in range(n):
        y = op(y)
    return y.op, x


def rate(graph, target, n, feeds, executor):
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    config.experimental.executor_type = executor
    with v1.Session(graph=graph, config=config) as session:
        call = session.make_callable(target, feed_list=list(feeds))
        values = [feeds[x] for x in feeds]
        call(*values)
        seconds = []
        for _ in range(REPEATS):
            start = time.process_time()
            call(*values)
            seconds.append(time.process_time() - start)
    return n / statistics.median(seconds)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    random.seed(1)
    for name, make in (
        ("NoOp, a chain", lambda: (noops(n, 1), None)),
        ("NoOp, fan-in 3", lambda: (noops(n, 3), None)),
        ("Identity", lambda: chain(n, tf.identity)),
        ("Neg", lambda: chain(n, tf.negative)),
    ):
        graph = tf.Graph()
        with graph.as_default():
            target, x = make()
        feeds = {} if x is None else {x: 1.0}
        for executor in ("", "SINGLE_THREADED_EXECUTOR"):
            print(f"{name:16s} {executor or 'default executor':26s} "
                  f"{rate(graph, target, n, feeds, executor) / 1e6:8.2f} M/s")


main()
