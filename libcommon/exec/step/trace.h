/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of what ran when, off by default. A trace collects events in memory and writes them as
 * trace records when it is flushed; any number of threads may add. Times are nanoseconds of
 * CLOCK_MONOTONIC; for work on a device with memory of its own, as measured by the device's clock.
 */
#ifndef TF_EXEC_TRACE_H
#define TF_EXEC_TRACE_H

#include <stdint.h>

#include "base/error.h"
#include "base/time.h"
#include "wire/record.h"

struct trace;

struct trace *trace_new(void);
void trace_free(struct trace *trace);

/* One run of a kernel, or of a whole step (node NULL). The texts are borrowed: they must outlive
 * the next flush. */
struct trace_run {
    const char *node, *kernel, *op;
    int64_t start, end;
    const char *queue; /* of a device, that ran it; NULL: this thread did */
};

void trace_kernel(struct trace *trace, int64_t step, const struct trace_run *run);

/* Bytes of values sent to another task, and received from it, up to the end of a step. */
struct trace_peer {
    const char *task; /* copied */
    uint64_t sent, got;
};
void trace_peer(struct trace *trace, int64_t step, const struct trace_peer *peer);

/* A device with memory of its own that a step ran on; recorded once for each device. */
struct trace_device {
    const char *type; /* of the device's module, which stays */
    int index;
    int64_t memory; /* bytes; 0: unknown */
};
void trace_device(struct trace *trace, const struct trace_device *device);

/* Writes the collected events as trace records and forgets them. */
int trace_flush(struct trace *trace, struct stream_writer *writer, struct error *err);

#endif
