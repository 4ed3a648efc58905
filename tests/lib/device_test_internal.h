/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the TEST device's module share.
 */
#ifndef TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H
#define TF_TESTS_LIB_DEVICE_TEST_INTERNAL_H

#include <pthread.h>

#include "exec/device/pool.h"
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

#define TEST_HOST N_QUEUES /* among the queues */

/* How much of each queue, and of what the host saw, is over. */
struct test_clock {
    uint64_t at[N_QUEUES + 1];
};

void test_clock_join(struct test_clock *clock, const struct test_clock *other);

struct test_access {
    const void *data; /* plain address */
    size_t bytes;
    bool write;
};

struct test_use {
    uintptr_t begin, end;
    enum queue_kind queue;
    uint64_t tick;
    bool write;
};

struct test_block { /* of memory */
    uintptr_t begin, end;
    VEC(struct test_use) uses;
};

struct test_order {
    struct test_clock clocks[N_QUEUES + 1];
    VEC(struct test_block) blocks; /* by address */
    size_t bytes;
};

void test_order_alloc(struct test_order *order, const void *data, size_t bytes);
/* What is enqueued next uses the memory. ERR_INTERNAL: it does not wait for an earlier use. */
int test_order_use(struct test_order *order, enum queue_kind queue,
                   const struct test_access *accesses, int n, struct error *err);
/* The same of all of the block, which is no memory of the device any more. */
int test_order_free(struct test_order *order, const void *data, struct error *err);
void test_order_release(struct test_order *order);

/* ---- device_test_queue.c: the scheduler ---- */

struct test_job {
    void (*run)(struct test_job *job); /* NULL: nothing */
    void (*free)(struct test_job *job);
    struct device_event *waits; /* for what it waits; NULL: nothing */
    struct device_event *marks; /* what is over with it; NULL: nothing */
    struct test_job *next;
};

struct test_line {
    struct test_job *first, *last;
    bool busy; /* the first one runs */
};

struct test_scheduler {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct test_line lines[N_QUEUES];
    struct test_order order;
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

void test_scheduler_init(struct test_scheduler *scheduler);
void test_scheduler_release(struct test_scheduler *scheduler);

/* From then on nothing works any more. */
void test_fail(struct test_scheduler *scheduler, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Owns the job. What fails, fails the device: the code, when it has. */
int test_enqueue(struct test_scheduler *scheduler, enum queue_kind queue, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err);
/* Memory that goes behind all that the compute queue has. */
void test_enqueue_free(struct test_scheduler *scheduler, struct test_job *job, const void *data);
void test_allocated(struct test_scheduler *scheduler, const void *data, size_t bytes);

struct device_event *test_record(struct test_scheduler *scheduler, enum queue_kind queue);
void test_wait(struct test_scheduler *scheduler, enum queue_kind queue, struct device_event *event);
bool test_query(struct test_scheduler *scheduler, struct device_event *event);
void test_notify(struct test_scheduler *scheduler, struct device_event *event,
                 struct event_waiter *waiter);
int test_block(struct test_scheduler *scheduler, struct device_event *event, struct error *err);
void test_event_free(struct device_event *event);

/* Does all work, then nobody else enqueues until test_end_alone. The host uses the memory now, as
 * if it were the compute queue. */
int test_begin_alone(struct test_scheduler *scheduler, const struct test_access *accesses, int n,
                     struct error *err);
int test_end_alone(struct test_scheduler *scheduler, const struct test_access *accesses, int n,
                   struct error *err);

/* ---- device_test.c ---- */

struct test_context {
    struct device device; /* the first two: what tensors and variables know */
    struct device raw;    /* the same with plain addresses, for kernels that allocate */
    struct device *cpu;
    struct pool *pool; /* of raw */
    struct kernel_table table;
    struct test_scheduler scheduler;
    size_t memory; /* that it has */
    atomic_long copies_in, copies_out, copies, kernels, enqueued, updates;
};

/* Set while the thread is in a kernel of the CPU's, to which what it allocates has to be plain. */
extern _Thread_local bool test_allocates_plain;

/* ---- device_test_kernel.c ---- */

extern const struct kernel_code test_kernel, test_relayout;

#endif
