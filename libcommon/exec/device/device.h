/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: memory, copies, ordering and kernels' code, behind plain C. The executor knows no more
 * of a device than this. Each type of device is a module that is loaded when it is asked for.
 *
 * A device whose memory is not the host's (is_host false) has one order of everything that is
 * enqueued: kernels that return ENQUEUED, and copies. Its memory may be given back while enqueued
 * work still uses it: whoever gets it next enqueues behind that work, and memory that goes back to
 * the system is freed behind it. What the host itself looks at is only there after a copy or a
 * sync that waits.
 */
#ifndef TF_EXEC_DEVICE_H
#define TF_EXEC_DEVICE_H

#include "exec/device/kernel.h"

#define DEVICE_ABI 3

struct device_options {
    int threads; /* size of the compute team; 0: as many as cores */
    bool deterministic;
};

struct device {
    const char *type; /* "CPU" */
    int index;        /* 0 of CPU:0 */
    bool is_host;     /* memory is the host's: copies are not needed */
    int threads;
    bool deterministic;
    void *context;      /* the device's own */
    void *module;       /* of dlopen */
    const char *choice; /* what was chosen for this machine, for plans: "isa=v4 blas=SkylakeX" */

    /* Kernels that the module brings itself; NULL: those that every tool knows. */
    const struct kernel_table *kernels;

    /* One holder; NULL without memory. Given back through the buffer. */
    struct buffer *(*alloc)(struct device *device, size_t bytes);
    /* Host memory that copies well to and from the device; NULL: any does. As alloc. */
    struct buffer *(*alloc_host)(struct device *device, size_t bytes);

    /* Copies between host and device memory, enqueued in order. With `wait` the host's side is the
     * caller's again on return: what was copied out is there, what is copied in was read. Else
     * that is so after the next sync. */
    int (*copy_in)(struct device *device, void *to, const void *from, size_t bytes, bool wait,
                   struct error *err);
    int (*copy_out)(struct device *device, void *to, const void *from, size_t bytes, bool wait,
                    struct error *err);
    int (*copy)(struct device *device, void *to, const void *from, size_t bytes, struct error *err);

    /* Waits until everything enqueued is over; reports the first error of it. */
    int (*sync)(struct device *device, struct error *err);

    /* Code of a kernel row by its name; NULL: not in this module. */
    const struct kernel_code *(*code)(struct device *device, const char *name);

    /* Layouts; NULL when the device has none. A tensor with a layout takes layout_bytes. `relayout`
     * converts input 0 (in_layouts[0], NULL: row-major) to out[0].layout, which the caller sets
     * before prepare (NULL: row-major); prepared with setup->node NULL. */
    size_t (*layout_bytes)(const struct layout *layout);
    bool (*layout_equal)(const struct layout *a, const struct layout *b);
    const struct kernel_code *relayout;

    /* Called by a thread before it runs its first kernel: the size of the team it may use. */
    void (*enter_thread)(struct device *device, int threads);

    void (*free)(struct device *device);
};

/* What a module exports as "device_entry". */
struct device_entry {
    int abi; /* DEVICE_ABI */
    struct device *(*open)(int index, const struct device_options *options, struct error *err);
};

/* Opens "CPU", 0: loads the best module for the machine. TF_CPU_ISA=base|v3|v4 overrides the
 * choice. Of any other type the module is TYPE.so in lower case, in one of the folders that
 * TF_DEVICE_PATH names (separated by colons) or in the folder of the library: "CUDA" is cuda.so.
 * ERR_CONFIG when there is no such module or device. */
struct device *device_open(const char *type, int index, const struct device_options *options,
                           struct error *err);
void device_free(struct device *device);

/* Host memory for use with the device. One holder; NULL without memory. */
struct buffer *device_alloc_host(struct device *device, size_t bytes);

#endif
