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
#include "exec/device/device.h"

/* oneDNN computes products and convolutions of float32 by kernels made for x86-64. Elsewhere it has
 * its reference code for them; OpenBLAS has kernels there. */
#ifdef __x86_64__
#define CPU_DNNL_COMPUTES true
#else
#define CPU_DNNL_COMPUTES false
#endif

struct cpu_context {
    struct device device;
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* holds nothing of a call: all threads share it */
    struct map codes;
    pthread_mutex_t lock; /* guards layouts */
    struct layout *layouts;
    char choice[96];
};

static inline struct cpu_context *cpu_context(const struct device *device)
{
    return device->context;
}

/* Gives what the calling thread runs in parallel teams of that size, or of OMP_THREAD_LIMIT. OpenMP
 * makes them no smaller then: the libraries' barriers would wait for ever for who is missing.
 * Signals are for the calling thread: the others of a team block them. */
void cpu_set_team(int threads);

/* A fingerprint of the C library's functions of double precision. */
unsigned cpu_libm(void);

/* The result of a oneDNN call as an error: 0, or a code with what was called. */
int cpu_dnnl_check(dnnl_status_t status, const char *what, struct error *err);

/* ---- layouts: a tensor's dimensions in the order of its shape, arranged as oneDNN likes ---- */

/* Memory seen as [outer, blocks, inner, block], with channel = index of block * block + index in
 * it: row-major NHWC has blocks = inner = 1, row-major NCHW block = 1. */
struct channels {
    int64_t n; /* real channels; blocks * block may be more, and the rest is zero */
    int64_t outer, blocks, inner, block;
};

/* Every layout that is made arranges its elements by channels. */
struct layout {
    dnnl_memory_desc_t desc;
    int axis; /* of the shape, that counts channels */
    struct channels channels;
    struct layout *next;
};

/* Row-major, of a known shape of rank 1 to 8; a scalar counts as [1]. */
dnnl_memory_desc_t cpu_desc(enum dtype type, const struct shape *shape);
dnnl_data_type_t cpu_dnnl_type(enum dtype type); /* dnnl_data_type_undef: oneDNN has no such type */

/* The description of a tensor as it arrives: by layout, or row-major. */
dnnl_memory_desc_t cpu_desc_of(const struct node_output *type, const struct layout *layout);

/* The layout with that description, which lives as long as the device; NULL when it is row-major or
 * not arranged by channels (then the kernel has to deliver row-major). Thread-safe. */
const struct layout *cpu_layout(struct device *device, const dnnl_memory_desc_t *desc, int axis);

/* The same arrangement of another image (rank 4) with as many channels, of its own type. */
const struct layout *cpu_layout_like(struct device *device, const struct layout *layout,
                                     const struct node_output *image);

/* A row-major tensor seen by channels. */
struct channels cpu_channels(const struct shape *shape, int axis);

size_t cpu_layout_bytes(const struct layout *layout);
bool cpu_layout_equal(const struct layout *a, const struct layout *b);
int64_t cpu_layout_count(const struct layout *layout); /* elements, padding of blocks included */
extern const struct kernel_code cpu_relayout;

#endif
