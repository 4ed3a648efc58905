/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the TEST device's module share.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H
#define TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H

#include <pthread.h>

#include "exec/device/module.h"
#include "lib/device_test.h"

/* Bit 55 is 0 in a program's addresses: on x86-64 by canonical form and the size of the address
 * space, on AArch64 because it selects the kernel's half. */
#define TEST_ADDRESS_BIT ((uintptr_t)1 << 55)

static inline bool test_is_device(const void *address)
{
    return ((uintptr_t)address & TEST_ADDRESS_BIT) != 0;
}

static inline void *test_to_host(const void *address)
{
    return (void *)((uintptr_t)address & ~TEST_ADDRESS_BIT);
}

static inline void *test_to_device(const void *address)
{
    return address ? (void *)((uintptr_t)address | TEST_ADDRESS_BIT) : NULL;
}

/* ---- device_test_order.c: what happens before what ---- */

/* Lines of work: the queues, or the streams of a device over the scheduler. */
#define TEST_LINES 48
#define TEST_HOST TEST_LINES /* the host's place among the lines */

/* How much work of each line, and of the host, is known to be over. */
struct test_clock {
    uint64_t at[TEST_LINES + 1];
};

void test_clock_join(struct test_clock *clock, const struct test_clock *other);

struct test_access {
    const void *data; /* plain address */
    size_t bytes;
    bool write;
};

struct test_use {
    uintptr_t begin, end;
    int line;
    uint64_t tick;
    bool write;
};

struct test_block { /* of memory */
    uintptr_t begin, end;
    VEC(struct test_use) uses;
};

struct test_order {
    struct test_clock clocks[TEST_LINES + 1];
    VEC(struct test_block) blocks; /* by address */
    size_t bytes;
};

void test_order_alloc(struct test_order *order, const void *data, size_t bytes);
/* Notes that the next enqueued work uses the memory. ERR_INTERNAL: no wait for an earlier use. */
int test_order_use(struct test_order *order, int line, const struct test_access *accesses, int n,
                   struct error *err);
/* The same for the whole block, which is then no longer memory of the device. */
int test_order_free(struct test_order *order, int line, const void *data, struct error *err);
void test_order_release(struct test_order *order);

/* ---- device_test_queue.c: the scheduler ---- */

struct test_event {
    atomic_int holders;
    bool over;
    int64_t time;                      /* by the device's clock, once it is over */
    struct test_clock clock;           /* work that is over when it is */
    const struct test_graph *captured; /* the capture that it is part of; NULL: none */
    struct event_waiter *waiter;       /* to be told */
};

struct test_job {
    void (*run)(struct test_job *job); /* NULL: nothing */
    void (*free)(struct test_job *job);
    void (*launched)(struct test_job *job); /* of captured work, which will run; NULL: nothing */
    bool (*is_ready)(const struct test_job *job); /* NULL: it is. `changed` signals a change */
    struct test_event *waits;                     /* event that it waits for; NULL: none */
    struct test_event *marks;                     /* event that is over with it; NULL: none */
    struct test_job *next;
};

struct test_line {
    struct test_job *first, *last;
    bool busy;   /* its first job runs */
    bool taken;  /* by a stream */
    int64_t now; /* by the device's clock */
};

struct test_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct test_line lines[TEST_LINES];
    int n_lines; /* lines in use */
    struct test_order order;
    struct test_copy *copies; /* device_test_copy.c */
    uint64_t random;
    long until_failure; /* pieces of work; < 0: never */
    struct error failure;
    bool is_alone; /* nobody but `alone` enqueues */
    pthread_t alone;
    struct event_waiter *told; /* waiters whose events are over */
    int n_waiting;             /* number of the other waiters */
    bool closing, watched;
    pthread_t watcher;
};

void test_scheduler_init(struct test_scheduler *scheduler, int n_lines);
void test_scheduler_release(struct test_scheduler *scheduler);

/* Makes the device fail for good. */
void test_fail(struct test_scheduler *scheduler, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Call these with the lock held. */
uint64_t test_random(struct test_scheduler *scheduler);
void test_wait_for_turn(struct test_scheduler *scheduler);
void test_append(struct test_scheduler *scheduler, int line, struct test_job *job);
void test_host_knows(struct test_scheduler *scheduler, const struct test_event *event);
/* Does a piece of work; returns false if none can be done now. */
bool test_do_some(struct test_scheduler *scheduler);

/* Takes ownership of the job. A failure makes the device fail; returns its code then. */
int test_enqueue(struct test_scheduler *scheduler, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err);
/* Frees memory after all work of the line. */
void test_enqueue_free(struct test_scheduler *scheduler, int line, struct test_job *job,
                       const void *data);
void test_allocated(struct test_scheduler *scheduler, const void *data, size_t bytes);

/* ---- device_test_event.c; the thread that watches is the scheduler's, too ---- */

struct test_event *test_record(struct test_scheduler *scheduler, int line);
void test_wait(struct test_scheduler *scheduler, int line, struct test_event *event);
int64_t test_time(struct test_scheduler *scheduler, const struct test_event *event);
bool test_query(struct test_scheduler *scheduler, struct test_event *event);
void test_notify(struct test_scheduler *scheduler, struct test_event *event,
                 struct event_waiter *waiter);
int test_block(struct test_scheduler *scheduler, struct test_event *event, struct error *err);
void test_event_free(struct test_event *event);

/* ---- device_test_queue.c ---- */

/* Does all enqueued work. */
void test_finish(struct test_scheduler *scheduler);

/* Does all work; then nobody else can enqueue until test_end_alone. The host uses the memory in the
 * line's place. */
int test_begin_alone(struct test_scheduler *scheduler, int line, const struct test_access *accesses,
                     int n, struct error *err);
int test_end_alone(struct test_scheduler *scheduler, int line, const struct test_access *accesses,
                   int n, struct error *err);

/* ---- device_test_graph.c ---- */

/* Returns what the thread captures; NULL: nothing. The next ones replace enqueue, record, wait. */
struct test_graph *test_captured(const struct test_scheduler *scheduler);
int test_capture(struct test_graph *graph, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err);
void test_capture_mark(struct test_graph *graph, int line, struct test_job *job);
void test_capture_wait(struct test_graph *graph, int line, struct test_job *job);
/* Reports something that a capture does not allow: nothing is captured then. */
void test_capture_refuse(struct test_scheduler *scheduler, const char *what);

/* From begin to end the thread captures work for the line, and for lines that wait for it; by the
 * end the line must have waited for those. `graph` is NULL after an error. */
void test_capture_begin(struct test_scheduler *scheduler, int line);
int test_capture_end(struct test_scheduler *scheduler, struct test_graph **graph,
                     struct error *err);
int test_launch(struct test_scheduler *scheduler, int line, struct test_graph *graph,
                struct error *err);
void test_graph_free(struct test_graph *graph);

/* ---- device_test_copy.c ---- */

/* A copy, whose addresses must be in the right memory; a copy of no bytes is not enqueued. */
struct test_copying {
    bool to_device, from_device;
    void *to;
    const void *from;
    size_t bytes;
};
int test_enqueue_copy(struct test_scheduler *scheduler, int line,
                      const struct test_copying *copying, struct error *err);

/* Returns whether a copy from or to the host's memory is enqueued and not over. */
bool test_host_is_used(struct test_scheduler *scheduler, const void *data, size_t bytes);

/* ---- device_test_context.c: the CPU's kernels on such a device, or its own, run like those ----
 */

struct test_context {
    struct device *device; /* the one whose memory tensors and variables use */
    struct device_layout layout;
    struct device raw; /* the same with plain addresses, for kernels that allocate */
    struct device_memory raw_memory;
    struct device *cpu;
    struct pool *pool; /* of raw */
    struct kernel_table table;
    /* Finds the device's own kernels, which the CPU lacks; NULL: it has none. */
    const struct kernel_code *(*own)(struct device *device, const char *name);
    bool own_alone; /* the CPU's kernels do not replace those that it lacks */
    struct test_scheduler *scheduler;
    int (*compute_line)(struct test_context *context); /* where the thread enqueues kernels */
    /* Sets the error of a device that has failed; NULL: the scheduler's is used. */
    int (*failed)(struct device *device, struct error *err);
    atomic_long copies_in, copies_out, copies, kernels, enqueued, updates, captures, launches;
    pthread_mutex_t lock;     /* guards what follows */
    VEC(struct error) errors; /* meant by the device's own faults */
    VEC(struct test_access) pinned;
    long pins, unpins;
    struct test_context *next;
};

/* Lets the device compute with the kernels of `cpu`, whose layouts it adopts; `raw_alloc` is its
 * alloc with plain addresses. Takes ownership of `cpu`. The caller sets scheduler and line. */
void test_context_open(struct test_context *context, struct device *device, struct device *cpu,
                       struct buffer *(*raw_alloc)(struct device *device, size_t bytes));
/* `finish` makes the device do all enqueued work. */
void test_context_close(struct test_context *context, void (*finish)(struct device *device));
struct test_context *test_context(const struct device *device);

/* Returns the code of that name, for wrapping; NULL: there is none. */
const struct kernel_code *test_inner_code(struct test_context *context, const char *name,
                                          bool *is_own);

/* Makes a fault that stands for the error. Thread-safe. */
struct fault test_own_fault(struct test_context *context, uint32_t item, const struct error *err);

/* Set while the thread runs a kernel of the CPU, which must allocate with plain addresses. */
extern _Thread_local bool test_allocates_plain;

/* ---- device_test_pinned.c: struct device_memory.pin and unpin ---- */

int test_pin(struct device *device, const void *data, size_t bytes, struct error *err);
void test_unpin(struct device *device, const void *data);

/* ---- device_test_enqueue.c ---- */

/* Returns the code or, once the device has failed, that of the error which the device reports. */
int test_as_device(struct test_context *context, int code, struct error *err);

/* Enqueues a job in the line for kernels, and takes ownership of it. */
int test_enqueue_kernel(struct test_context *context, struct test_job *job,
                        const struct test_access *accesses, int n, struct error *err);

/* struct device.leave_fault */
int test_leave_fault(struct device *device, struct step_block *block, const struct fault *fault,
                     struct error *err);

/* ---- device_test_kernel.c ---- */

extern const struct kernel_code test_kernel, test_relayout;

#endif
