/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the CPU module: the device's context, layouts, and threads. Only files
 * whose names end in _cpu.c include this.
 */
#ifndef TF_OPS_DEVICE_CPU_H
#define TF_OPS_DEVICE_CPU_H

#include <dnnl.h>
#include <pthread.h>

#include "base/memory.h"
#include "exec/device/device.h"

/* oneDNN has optimized kernels for products and convolutions of float32 only on x86-64. Elsewhere
 * it has reference code, but OpenBLAS has kernels. */
#ifdef __x86_64__
#define CPU_DNNL_COMPUTES true
#else
#define CPU_DNNL_COMPUTES false
#endif

struct cpu_context {
    struct device device;
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* has no per-call state: all threads share it */
    pthread_mutex_t lock; /* guards layouts */
    struct layout *layouts;
    char choice[96];
};

static inline struct cpu_context *cpu_context(const struct device *device)
{
    return device->context;
}

/* Sets the team size of the calling thread's parallel regions, at most OMP_THREAD_LIMIT. OpenMP
 * then makes no smaller teams, in which the libraries' barriers would wait forever for the missing
 * threads. Signals go to the calling thread: the others of a team block them. */
void cpu_set_team(int threads);

/* Returns a fingerprint of the C library's functions of double precision. */
unsigned cpu_libm(void);

/* Turns the status of a oneDNN call into an error: 0, or a code with the name of the call. */
int cpu_dnnl_check(dnnl_status_t status, const char *what, struct error *err);

/* ---- layouts: a tensor's dimensions in the order of its shape, arranged as oneDNN likes ---- */

/* Memory seen as [outer, blocks, inner, block], with channel = index of block * block + index in
 * it: row-major NHWC has blocks = inner = 1, row-major NCHW block = 1. */
struct channels {
    int64_t n; /* real channels; blocks * block may be more, and the rest is zero */
    int64_t outer, blocks, inner, block;
};

/* Every layout arranges its elements by channels. */
struct layout {
    dnnl_memory_desc_t desc;
    int axis; /* of the shape: the channels */
    struct channels channels;
    struct layout *next;
};

/* The description of a tensor as the kernel gets it: by layout, or row-major of a known shape of
 * rank 1 to 8; a scalar counts as [1]. */
dnnl_memory_desc_t cpu_desc_of(const struct node_output *type, const struct layout *layout);

/* Returns the layout with that description, which lives as long as the device; NULL if it is
 * row-major or not arranged by channels (then the kernel must deliver row-major). Thread-safe. */
const struct layout *cpu_layout(struct device *device, const dnnl_memory_desc_t *desc, int axis);

/* The same arrangement for another image (rank 4) with as many channels, of its own type. */
const struct layout *cpu_layout_like(struct device *device, const struct layout *layout,
                                     const struct node_output *image);

/* Describes a row-major tensor by channels. */
struct channels cpu_channels(const struct shape *shape, int axis);

size_t cpu_layout_bytes(const struct layout *layout);
bool cpu_layout_equal(const struct layout *a, const struct layout *b);
int64_t cpu_layout_count(const struct layout *layout); /* elements, padding of blocks included */
extern const struct kernel_code cpu_relayout;

#endif
