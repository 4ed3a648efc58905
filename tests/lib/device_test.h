/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of type TEST: the CPU's kernels on memory that the host cannot touch. An address of
 * the device is that of the memory with a bit set that no valid address has, so that whoever
 * follows one on the host dies at once; kernels get the addresses without it, and an argument in
 * the wrong memory is an error.
 *
 * What can be enqueued is. Its three queues are a scheduler: work is done in any order that events
 * allow, as a seed has it, mostly as late as can be. Each range of bytes knows who used it last:
 * work that may come before what it depends on, because a wait is missing, fails the device, also
 * where the order happened to be right; so does memory of the host that changes before it was
 * copied. Memory that is about to be copied to is garbage. So does memory of the host that is
 * pinned where some is still, or unpinned where none is; whoever closes the device has unpinned
 * all.
 *
 * Its clock begins when it is opened. Each kernel and each copy takes a microsecond, and begins
 * when what is before it in its queue, and what that has waited for, is over: whatever the order in
 * which the scheduler does it.
 *
 * A module like any other: device_open("TEST", 0, ...) with TF_DEVICE_PATH naming its folder. From
 * the environment, when it is opened: TF_TEST_DEVICE_SEED=N; TF_TEST_DEVICE_MEMORY=BYTES that it
 * has; TF_TEST_DEVICE_FAIL=N, it fails for good at the N-th piece of work;
 * TF_TEST_DEVICE_CAPTURE=0, it captures nothing; TF_TEST_DEVICE_COUNTS=FILE, to which it adds a
 * line when it is closed, of how much it has captured and launched.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_H
#define TF_TESTS_LIB_DEVICE_TEST_H

#include "exec/device/device.h"

/* Since the device was opened. */
struct device_test_counts {
    long copies_in, copies_out, copies; /* from the host, to it, within the device */
    long kernels, enqueued;             /* that ran; those of them that were enqueued */
    long updates;                       /* of variables, among these */
    long captures, launches;            /* of captured work */
    long pins, unpins;                  /* of memory of the host */
};

/* What the module exports as "device_test_counts". */
typedef struct device_test_counts device_test_counts_function(struct device *device);

#endif
