/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of type TEST: the CPU's kernels on memory that the host cannot access. A device
 * address is the memory's address with a bit set that no valid address has, so that host code which
 * dereferences one crashes at once; kernels get the addresses without the bit, and an argument in
 * the wrong memory is an error.
 *
 * All that can be enqueued is enqueued. A scheduler serves its three queues: work is done in any
 * order that events allow, chosen by a seed, mostly as late as possible. Each range of bytes has a
 * record of its last uses: work that might run before what it depends on, because a wait is
 * missing, makes the device fail, even if the order happened to be right. So does host memory that
 * changes before it was copied; the target of a pending copy to the host is filled with garbage. So
 * does pinning host memory that overlaps pinned memory, and unpinning memory that is not pinned;
 * all must be unpinned before the device is closed.
 *
 * Its clock starts when it is opened. Each kernel and each copy takes a microsecond, and begins
 * when the work before it in its queue, and all that this waited for, is over, whatever the order
 * in which the scheduler does it.
 *
 * It is a module like any other: device_open("TEST", 0, ...) with TF_DEVICE_PATH naming its folder.
 * It reads from the environment, when opened: TF_TEST_DEVICE_SEED=N; TF_TEST_DEVICE_MEMORY=BYTES,
 * its memory; TF_TEST_DEVICE_FAIL=N, it fails for good at the N-th piece of work;
 * TF_TEST_DEVICE_CAPTURE=0, it captures nothing; TF_TEST_DEVICE_COUNTS=FILE, to which it adds a
 * line, when closed, with how much it has captured and launched.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_H
#define TF_TESTS_LIB_DEVICE_TEST_H

#include "exec/device/device.h"

/* Counts since the device was opened. */
struct device_test_counts {
    long copies_in, copies_out, copies; /* from the host, to it, within the device */
    long kernels, enqueued;             /* kernels that ran; how many of them were enqueued */
    long updates;                       /* enqueued kernels that update variables */
    long captures, launches;            /* of captured work */
    long pins, unpins;                  /* of memory of the host */
};

/* What the module exports as "device_test_counts". */
typedef struct device_test_counts device_test_counts_function(struct device *device);

#endif
