/* SPDX-License-Identifier: Apache-2.0
 *
 * A step on a device with memory of its own: its step block (exec/device/step_block.h), which is
 * kept for later steps, one at a time. On a device whose memory is the host's nothing here does
 * anything, and there is no block.
 */
#ifndef TF_EXEC_DEVICE_STEP_H
#define TF_EXEC_DEVICE_STEP_H

#include "exec/device/fault.h"
#include "exec/plan/plan.h"

struct device_timer;
struct trace_run;

struct device_step {
    struct device *device; /* NULL: there is no block */
    struct buffer *memory; /* the block */
    struct buffer *host;   /* the block as written, and as read back */
    struct fault *found;   /* gets the faults of host kernels, if a caller asks for them; or NULL */
    pthread_mutex_t lock;  /* guards `copied`; exists with the block */
    struct device_event *copied;            /* the step's last copy from the host; NULL: none yet */
    _Atomic(struct device_timer *) timings; /* for the step's trace */
};

void device_step_release(struct device_step *on_device);

/* The block, in the device's memory; NULL: there is none. */
static inline struct step_block *device_step_block(const struct device_step *on_device)
{
    return on_device->memory ? on_device->memory->data : NULL;
}

/* Makes the block, unless it exists; its address never changes. Enqueues its initial contents,
 * before everything that the compute queue gets from now on. ERR_OS: no memory. */
int device_step_begin(struct device_step *on_device, struct device *device, const struct step *step,
                      struct error *err);

/* Notes that the step has just enqueued a copy in QUEUE_IN; and makes the compute queue wait for
 * such copies, but not for later prefetching. Any thread that runs the step. */
void device_step_copied(struct device_step *on_device);
void device_step_await_copies(struct device_step *on_device);

/* Enqueues the block's reading, after everything that was enqueued so far. */
void device_step_end(struct device_step *on_device);

/* When that is over, too: the fault that a kernel has left; NULL: none. */
const struct fault *device_step_fault(const struct device_step *on_device);

/* ---- traces: the time that a device takes for a part of a queue ---- */

/* Begins a time measurement, for steps with a trace. */
struct device_timer *device_timer_begin(struct device *device, enum queue_kind queue);
/* Ends the measured time, if that is earlier than device_timer_end. */
void device_timer_stop(struct device_timer *timing);
/* Borrows the texts, as traces do. Thread-safe. */
void device_timer_end(struct device_timer *timing, struct device_step *on_device,
                      const struct trace_run *run);
/* Drops a measurement instead of ending it, as the queue got nothing. NULL is allowed. */
void device_timer_drop(struct device_timer *timing);
/* When everything is over: adds measurements to the step's trace, unless the device has failed. */
void device_step_tell(struct device_step *on_device, const struct step *step, bool has_failed);

#endif
