#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The null steps of dist.lua in TensorFlow's runtime over gRPC: "CASE MEDIAN" as peer_rpc.py.
usage: peer_grpc.py WORKERS SECONDS CASE..."""
import os
import statistics
import subprocess
import sys
import time

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow  # noqa: E402

tf = tensorflow.compat.v1
tf.disable_eager_execution()


def cluster(workers, port):
    return {"ps": [f"127.0.0.1:{port}"],
            "worker": [f"127.0.0.1:{port + 1 + k}" for k in range(workers)]}


def make_step(case, index):
    shard, worker = "/job:ps/task:0/cpu:0", f"/job:worker/task:{index}/cpu:0"
    kind, *n = case
    shape = n[:1] if kind == "dense" else n[:2]
    with tf.device(shard):
        held = tf.get_variable("-".join(map(str, case)), shape, use_resource=False,
                               initializer=tf.zeros_initializer())
    if kind == "dense":
        with tf.device(worker):
            value = tf.identity(held) * 1.0
        with tf.device(shard):
            return held, tf.assign_add(held, value).op
    with tf.device(worker):
        ids = tf.random.uniform([n[2]], 0, n[0], tf.int32)
    with tf.device(shard):
        rows = tf.gather(held, ids)
    with tf.device(worker):
        value = tf.identity(rows) * 1.0
    with tf.device(shard):
        return held, tf.scatter_add(held, ids, value).op


def measure(run, seconds):
    times = []
    run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def work(index, seconds, cases, spec):
    server = tf.train.Server(spec, "worker", index)
    for text in cases:
        kind, *numbers = text.split(":")
        held, step = make_step([kind, *map(int, numbers)], index)
        with tf.Session(server.target) as session:
            if index == 0:
                session.run(held.initializer)
            while not session.run(tf.is_variable_initialized(held)):
                time.sleep(0.05)
            median = measure(session.make_callable(step), seconds)
        if index == 0:
            print(text, f"{1e6 * median:.1f}", flush=True)


def main():
    if sys.argv[1] == "--task":
        job, index, port, workers, seconds = sys.argv[2:7]
        spec = cluster(int(workers), int(port))
        if job == "ps":
            tf.train.Server(spec, "ps", 0).join()
        work(int(index), float(seconds), sys.argv[7:], spec)
        return
    workers, port = int(sys.argv[1]), 20000 + os.getpid() % 20000
    rest = [str(port), *sys.argv[1:]]
    tasks = [subprocess.Popen([sys.executable, __file__, "--task", job, str(k), *rest],
                              stdout=None if (job, k) == ("worker", 0) else subprocess.DEVNULL)
             for job, k in [("ps", 0)] + [("worker", k) for k in range(workers)]]
    for task in tasks[1:]:
        task.wait()
    tasks[0].kill()


if __name__ == "__main__":
    main()
