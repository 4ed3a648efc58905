/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: memory, copies, ordering and kernels' code, behind plain C. The executor knows no more
 * of a device than this. Each type of device is a module that is loaded when it is asked for.
 */
#ifndef TF_EXEC_DEVICE_H
#define TF_EXEC_DEVICE_H

#include "exec/kernel.h"

#define DEVICE_ABI 1

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

    /* One holder; NULL without memory. Given back through the buffer. */
    struct buffer *(*alloc)(struct device *device, size_t bytes);

    /* Copies between host and device memory, enqueued in order; with `wait` over on return. */
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
 * choice. ERR_CONFIG when there is no such module or device. */
struct device *device_open(const char *type, int index, const struct device_options *options,
                           struct error *err);
void device_free(struct device *device);

#endif
