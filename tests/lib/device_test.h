/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of type TEST: the CPU's kernels on memory that the host cannot touch. An address of
 * the device is that of the memory with a bit set that no valid address has, so that whoever
 * follows one on the host dies at once; kernels get the addresses without it, and an argument in
 * the wrong memory is an error. What can be enqueued is, and runs as late as it may, when somebody
 * waits, so that a wait that is missing shows.
 *
 * A module like any other: device_open("TEST", 0, ...) with TF_DEVICE_PATH naming its folder.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_H
#define TF_TESTS_LIB_DEVICE_TEST_H

#include "exec/device/device.h"

/* Since the device was opened. */
struct device_test_counts {
    long copies_in, copies_out, copies; /* from the host, to it, within the device */
    long kernels, enqueued;             /* that ran; those of them that were enqueued */
};

/* What the module exports as "device_test_counts". */
typedef struct device_test_counts device_test_counts_function(struct device *device);

#endif
