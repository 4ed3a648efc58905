/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the TEST device's module share.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H
#define TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H

#include <pthread.h>

#include "exec/device/module.h"
#include "lib/device_test.h"

/* Bit 55 of an address is 0 for programs: on x86-64 by canonical form and the size of the address
 * space, on AArch64 as it chooses the kernel's half. */
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

/* Lines of work: the queues, or as many streams as somebody has. */
#define TEST_LINES 48
#define TEST_HOST TEST_LINES /* among the lines */

/* How much of each line, and of what the host saw, is over. */
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
/* What is enqueued next uses the memory. ERR_INTERNAL: it does not wait for an earlier use. */
int test_order_use(struct test_order *order, int line, const struct test_access *accesses, int n,
                   struct error *err);
/* The same of all of the block, which is no memory of the device any more. */
int test_order_free(struct test_order *order, int line, const void *data, struct error *err);
void test_order_release(struct test_order *order);

/* ---- device_test_queue.c: the scheduler ---- */

struct test_event {
    atomic_int holders;
    bool over;
    int64_t time;                      /* by the device's clock, when it is */
    struct test_clock clock;           /* what is over with it */
    const struct test_graph *captured; /* in which it is; NULL: none */
    struct event_waiter *waiter;       /* who is to be told */
};

struct test_job {
    void (*run)(struct test_job *job); /* NULL: nothing */
    void (*free)(struct test_job *job);
    void (*launched)(struct test_job *job); /* of captured work, which will run; NULL: nothing */
    bool (*is_ready)(const struct test_job *job); /* NULL: it is. Who makes it so says `changed` */
    struct test_event *waits;                     /* for what it waits; NULL: nothing */
    struct test_event *marks;                     /* what is over with it; NULL: nothing */
    struct test_job *next;
};

struct test_line {
    struct test_job *first, *last;
    bool busy;   /* the first one runs */
    bool taken;  /* by a stream */
    int64_t now; /* by the device's clock */
};

struct test_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct test_line lines[TEST_LINES];
    int n_lines; /* that there are */
    struct test_order order;
    struct test_copy *copies; /* device_test_copy.c */
    uint64_t random;
    long until_failure; /* pieces of work; < 0: never */
    struct error failure;
    bool is_alone; /* nobody but `alone` enqueues */
    pthread_t alone;
    struct event_waiter *told; /* whose events are over */
    int n_waiting;             /* whose are not */
    bool closing, watched;
    pthread_t watcher;
};

void test_scheduler_init(struct test_scheduler *scheduler, int n_lines);
void test_scheduler_release(struct test_scheduler *scheduler);

/* From then on nothing works any more. */
void test_fail(struct test_scheduler *scheduler, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* With the lock held. */
uint64_t test_random(struct test_scheduler *scheduler);
void test_wait_for_turn(struct test_scheduler *scheduler);
void test_append(struct test_scheduler *scheduler, int line, struct test_job *job);
void test_host_knows(struct test_scheduler *scheduler, const struct test_event *event);
/* False: there is nothing that could be done now. */
bool test_do_some(struct test_scheduler *scheduler);

/* Owns the job. What fails, fails the device: the code, when it has. */
int test_enqueue(struct test_scheduler *scheduler, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err);
/* Memory that goes behind all that the line has. */
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

/* Does all work that there is. */
void test_finish(struct test_scheduler *scheduler);

/* Does all work, then nobody else enqueues until test_end_alone. The host uses the memory now, as
 * if it were the line. */
int test_begin_alone(struct test_scheduler *scheduler, int line, const struct test_access *accesses,
                     int n, struct error *err);
int test_end_alone(struct test_scheduler *scheduler, int line, const struct test_access *accesses,
                   int n, struct error *err);

/* ---- device_test_graph.c ---- */

/* What the thread captures; NULL: nothing. Then: in place of enqueuing, recording, waiting. */
struct test_graph *test_captured(const struct test_scheduler *scheduler);
int test_capture(struct test_graph *graph, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err);
void test_capture_mark(struct test_graph *graph, int line, struct test_job *job);
void test_capture_wait(struct test_graph *graph, int line, struct test_job *job);
/* What cannot be done meanwhile: nothing is captured then. */
void test_capture_refuse(struct test_scheduler *scheduler, const char *what);

/* From now on the thread captures what the line gets, and lines that wait for it. In the end it has
 * waited for those. `graph` is NULL after an error. */
void test_capture_begin(struct test_scheduler *scheduler, int line);
int test_capture_end(struct test_scheduler *scheduler, struct test_graph **graph,
                     struct error *err);
int test_launch(struct test_scheduler *scheduler, int line, struct test_graph *graph,
                struct error *err);
void test_graph_free(struct test_graph *graph);

/* ---- device_test_copy.c ---- */

/* Each address has to be in the memory where it should be; nothing is enqueued for no bytes. */
struct test_copying {
    bool to_device, from_device;
    void *to;
    const void *from;
    size_t bytes;
};
int test_enqueue_copy(struct test_scheduler *scheduler, int line,
                      const struct test_copying *copying, struct error *err);

/* Whether a copy from the host's memory or to it was enqueued, and is not over. */
bool test_host_is_used(struct test_scheduler *scheduler, const void *data, size_t bytes);

/* ---- device_test_context.c: kernels of the CPU's on such a device, or its own, run as those ----
 */

struct test_context {
    struct device *device; /* of whose memory tensors and variables are */
    struct device_layout layout;
    struct device raw; /* the same with plain addresses, for kernels that allocate */
    struct device_memory raw_memory;
    struct device *cpu;
    struct pool *pool; /* of raw */
    struct kernel_table table;
    /* The device's own kernels that the CPU has not; NULL: it has none. */
    const struct kernel_code *(*own)(struct device *device, const char *name);
    bool own_alone; /* the CPU's do not stand in for those that it has not */
    struct test_scheduler *scheduler;
    int (*compute_line)(struct test_context *context); /* what the thread enqueues kernels in */
    /* What the device says when nothing works any more; NULL: what the scheduler does. */
    int (*failed)(struct device *device, struct error *err);
    atomic_long copies_in, copies_out, copies, kernels, enqueued, updates, captures, launches;
    pthread_mutex_t lock;     /* guards what follows */
    VEC(struct error) errors; /* that the device's own faults stand for */
    VEC(struct test_access) pinned;
    long pins, unpins;
    struct test_context *next;
};

/* Has the device compute, by what `cpu` has, whose layouts become its own; `raw_alloc` is its alloc
 * with plain addresses. Owns `cpu`. The scheduler and its line are the caller's to set. */
void test_context_open(struct test_context *context, struct device *device, struct device *cpu,
                       struct buffer *(*raw_alloc)(struct device *device, size_t bytes));
/* `finish` has the device do all that was enqueued. */
void test_context_close(struct test_context *context, void (*finish)(struct device *device));
struct test_context *test_context(const struct device *device);

/* The code of that name, which is to be wrapped; NULL: there is none. */
const struct kernel_code *test_inner_code(struct test_context *context, const char *name,
                                          bool *is_own);

/* A fault that stands for the error. Thread-safe. */
struct fault test_own_fault(struct test_context *context, uint32_t item, const struct error *err);

/* Set while the thread is in a kernel of the CPU's, to which what it allocates has to be plain. */
extern _Thread_local bool test_allocates_plain;

/* ---- device_test_pinned.c: struct device_memory.pin and unpin ---- */

int test_pin(struct device *device, const void *data, size_t bytes, struct error *err);
void test_unpin(struct device *device, const void *data);

/* ---- device_test_enqueue.c ---- */

/* Once nothing works any more, it is the device that says so: the code, or that of what it says. */
int test_as_device(struct test_context *context, int code, struct error *err);

/* In the line for kernels. Owns the job. */
int test_enqueue_kernel(struct test_context *context, struct test_job *job,
                        const struct test_access *accesses, int n, struct error *err);

/* struct device.leave_fault */
int test_leave_fault(struct device *device, struct step_block *block, const struct fault *fault,
                     struct error *err);

/* ---- device_test_kernel.c ---- */

extern const struct kernel_code test_kernel, test_relayout;

#endif
