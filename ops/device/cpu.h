/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CPU module share: the device's context, layouts, and threads. Only files
 * whose names end in _cpu.c include this.
 */
#ifndef TF_OPS_DEVICE_CPU_H
#define TF_OPS_DEVICE_CPU_H

#include <dnnl.h>
#include <pthread.h>

#include "base/map.h"
#include "base/memory.h"
#include "exec/device.h"

struct cpu_context {
    struct device device;
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* holds nothing of a call: all threads share it */
    struct map codes;
    pthread_mutex_t lock; /* guards layouts */
    struct layout *layouts;
    char choice[64];
};

static inline struct cpu_context *cpu_context(const struct device *device)
{
    return device->context;
}

/* The result of a oneDNN call as an error: 0, or a code with what was called. */
int cpu_dnnl_check(dnnl_status_t status, const char *what, struct error *err);

/* ---- layouts: a tensor's dimensions in the order of its shape, arranged as oneDNN likes ---- */

struct layout {
    dnnl_memory_desc_t desc;
    struct layout *next;
};

/* Row-major, of a known shape of rank 1 to 8; a scalar counts as [1]. */
dnnl_memory_desc_t cpu_desc(enum dtype type, const struct shape *shape);
dnnl_data_type_t cpu_dnnl_type(enum dtype type); /* dnnl_data_type_undef: oneDNN has no such type */

/* The description of a tensor as it arrives: by layout, or row-major. */
dnnl_memory_desc_t cpu_desc_of(const struct node_output *type, const struct layout *layout);

/* The layout with that description, which lives as long as the device; NULL when it is row-major.
 * Thread-safe. */
const struct layout *cpu_layout(struct device *device, const dnnl_memory_desc_t *desc);

size_t cpu_layout_bytes(const struct layout *layout);
bool cpu_layout_equal(const struct layout *a, const struct layout *b);
extern const struct kernel_code cpu_relayout;

/* Elements in memory of a tensor with that layout, padding of blocks included; -1 if the layout has
 * gaps. Element-wise kernels that map 0 to 0 may run over the padding. */
int64_t cpu_layout_count(const struct layout *layout);

#endif
