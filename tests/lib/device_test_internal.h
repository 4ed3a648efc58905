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

/* ---- device_test_queue.c ---- */

struct test_job {
    void (*run)(struct test_job *job, struct error *err);
    void (*free)(struct test_job *job);
    struct test_job *next;
};

struct test_queue {
    pthread_mutex_t lock; /* held by whoever runs jobs, too */
    struct test_job *first, *last;
};

void test_queue_init(struct test_queue *queue);
void test_queue_release(struct test_queue *queue);
void test_enqueue(struct test_queue *queue, struct test_job *job); /* owns the job */
/* Runs all that was enqueued. The first job that fails is the last that runs. */
int test_drain(struct test_queue *queue, struct error *err);
/* The same, and until test_end_alone, which is to follow in any case, nothing is enqueued. */
int test_drain_alone(struct test_queue *queue, struct error *err);
void test_end_alone(struct test_queue *queue);

/* ---- device_test.c ---- */

struct test_context {
    struct device device; /* the first two: what tensors and variables know */
    struct device raw;    /* the same with plain addresses, for kernels that allocate */
    struct device *cpu;
    struct pool *pool; /* of raw */
    struct kernel_table table;
    struct test_queue queue;
    atomic_long copies_in, copies_out, copies, kernels, enqueued;
};

/* Set while the thread is in a kernel of the CPU's, to which what it allocates has to be plain. */
extern _Thread_local bool test_allocates_plain;

/* ---- device_test_kernel.c ---- */

extern const struct kernel_code test_kernel, test_relayout;

#endif
