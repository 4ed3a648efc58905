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
    struct device *device; /* NULL: none has been opened */
    struct buffer *memory; /* the block */
    struct buffer *host;   /* it as it was written, and as it was read back */
    struct fault *found;   /* for who runs kernels of the host and asks for theirs; NULL: nobody */
    pthread_mutex_t lock;  /* guards `copied`; there with the block */
    struct device_event *copied; /* the step's last copy from the host; NULL: there was none yet */
    _Atomic(struct device_timer *) timings; /* for the step's trace */
};

/* Makes the block, unless it is there: its address stays. ERR_OS: no memory. */
int device_step_open(struct device_step *on_device, struct device *device, struct error *err);
void device_step_release(struct device_step *on_device);

/* The block, in the device's memory; NULL where there is none. */
static inline struct step_block *device_step_block(const struct device_step *on_device)
{
    return on_device->memory ? on_device->memory->data : NULL;
}

/* Enqueues what the block is at a step's beginning, before all that the compute queue gets from now
 * on. */
int device_step_begin(struct device_step *on_device, const struct step *step, struct error *err);

/* QUEUE_IN has just been given a copy by the step; and the compute queue waits for what it was
 * given so, but not for what others have prefetched there since. Any thread that runs the step. */
void device_step_copied(struct device_step *on_device);
void device_step_await_copies(struct device_step *on_device);

/* Enqueues that it is read when all that was enqueued by now is over. */
void device_step_end(struct device_step *on_device);

/* When that is over, too: what a kernel has left there; NULL: nothing. */
const struct fault *device_step_fault(const struct device_step *on_device);

/* ---- traces: when the device does what a queue gets between two moments ---- */

/* Begins a time measurement, for steps with a trace. */
struct device_timer *device_timer_begin(struct device *device, enum queue_kind queue);
/* The end, if that is not the moment of device_timer_end. */
void device_timer_stop(struct device_timer *timing);
/* The texts are borrowed, as by traces. Thread-safe. */
void device_timer_end(struct device_timer *timing, struct device_step *on_device,
                      const struct trace_run *run);
/* Drops a measurement instead of ending it: the queue got nothing. NULL: nothing is done. */
void device_timer_drop(struct device_timer *timing);
/* When all is over: tells the step's trace, unless the device has failed. */
void device_step_tell(struct device_step *on_device, const struct step *step, bool has_failed);

#endif
