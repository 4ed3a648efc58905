#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitioned variables as TensorFlow saves them: parts-tf and grid-tf. Needs TensorFlow (these are
of 2.21). usage: make.py FOLDER"""

import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
out = sys.argv[1]


def variable(name, value, axis=None, parts=1):
    cut = tf1.fixed_size_partitioner(parts, axis=axis) if axis is not None else None
    return tf1.get_variable(name, initializer=tf.constant(value), partitioner=cut)


def counting(shape, dtype, first=0):
    return first + np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def save_slices(prefix, slices):
    """Each slice is name, spec and value, as SaveV2 takes them."""
    names, specs, values = zip(*slices)
    return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs,
                             tensors=[tf.constant(v) for v in values])


def cell(table, rows, columns):
    (r, n), (c, m) = rows, columns
    return "grid", "5 200 %d,%d:%d,%d" % (r, n, c, m), table[r:r + n, c:c + m]


# one Saver, by rows and by columns
with tf.Graph().as_default():
    variable("row", counting((10, 3), np.float32), 0, 4)
    variable("col", counting((2, 70), np.int32, 100), 1, 3)
    variable("whole", counting((3,), np.float64))
    step = tf1.train.get_or_create_global_step()
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(step.assign(77))
        tf1.train.Saver().save(session, out + "/parts-tf", write_meta_graph=False,
                               write_state=False)

# what a sharded Saver does: a file for each device, and one index of both
with tf.Graph().as_default():
    grid, long = counting((5, 200), np.int64) * 1000, (np.arange(8200) % 251).astype(np.uint8)
    above, below, left, right = (0, 2), (2, 3), (0, 70), (70, 130)
    prefixes = [out + "/part-0", out + "/part-1"]
    saves = [
        save_slices(prefixes[0], [cell(grid, above, left), cell(grid, below, right),
                                  ("long", "8200 0,8195", long[:8195]),
                                  ("first", "", np.float32(1.5))]),
        save_slices(prefixes[1], [cell(grid, above, right), cell(grid, below, left),
                                  ("long", "8200 8195,5", long[8195:]),
                                  ("second", "", np.array([1, 2], np.int32))]),
    ]
    with tf1.control_dependencies(saves):
        merge = tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes,
                                              destination_prefix=out + "/grid-tf",
                                              delete_old_dirs=False)
    with tf1.Session() as session:
        session.run(merge)
