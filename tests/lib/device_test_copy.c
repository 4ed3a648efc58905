/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the TEST device: a copy owns its host memory from when it is enqueued until it is over.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/device_test_internal.h"

struct test_copy {
    struct test_job job; /* first */
    struct test_scheduler *scheduler;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t sum; /* of the host's memory when the copy was enqueued */
    bool from_host, to_host;
    int enqueued; /* how often it is enqueued and not done */
    struct test_copy *next;
};

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards what is in a list, and the list */

static void count(struct test_copy *copy, int n)
{
    pthread_mutex_lock(&lock);
    copy->enqueued += n;
    pthread_mutex_unlock(&lock);
}

bool test_host_is_used(struct test_scheduler *scheduler, const void *data, size_t bytes)
{
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    bool is_used = false;
    pthread_mutex_lock(&lock);
    for (struct test_copy *copy = scheduler->copies; copy; copy = copy->next) {
        uintptr_t from = (uintptr_t)(copy->from_host ? copy->from : copy->to);
        is_used = is_used || (copy->enqueued && (copy->from_host || copy->to_host) && from < end &&
                              begin < from + copy->bytes);
    }
    pthread_mutex_unlock(&lock);
    return is_used;
}

/* FNV-1a. */
static uint64_t sum_of(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

static void copy_run(struct test_job *job)
{
    struct test_copy *copy = (struct test_copy *)job;
    if (copy->from_host && sum_of(copy->from, copy->bytes) != copy->sum)
        test_fail(copy->scheduler,
                  "the TEST device: %zu bytes of the host changed before they were copied",
                  copy->bytes);
    memcpy(copy->to, copy->from, copy->bytes);
    count(copy, -1);
}

/* Called at a launch: from now on the copy owns the host's memory. */
static void copy_launched(struct test_job *job)
{
    struct test_copy *copy = (struct test_copy *)job;
    count(copy, 1);
    if (copy->from_host)
        copy->sum = sum_of(copy->from, copy->bytes);
    if (copy->to_host)
        memset(copy->to, 0xa5, copy->bytes);
}

static void copy_free(struct test_job *job)
{
    struct test_copy *copy = (struct test_copy *)job, **at = &copy->scheduler->copies;
    pthread_mutex_lock(&lock);
    while (*at != copy)
        at = &(*at)->next;
    *at = copy->next;
    pthread_mutex_unlock(&lock);
    mem_free(copy);
}

static int check(const struct test_copying *c, struct error *err)
{
    if (test_is_device(c->to) == c->to_device && test_is_device(c->from) == c->from_device)
        return 0;
    return error_set(err, ERR_INTERNAL, "a copy of %zu bytes has an address in other memory",
                     c->bytes);
}

int test_enqueue_copy(struct test_scheduler *scheduler, int line,
                      const struct test_copying *copying, struct error *err)
{
    struct test_access accesses[2];
    int n = 0;
    if (!copying->bytes)
        return 0;
    if (check(copying, err))
        return err->code;
    struct test_copy *copy = mem_alloc(sizeof *copy);
    copy->job = (struct test_job){.run = copy_run, .free = copy_free, .launched = copy_launched};
    copy->scheduler = scheduler;
    copy->to = test_to_host(copying->to);
    copy->from = test_to_host(copying->from);
    copy->bytes = copying->bytes;
    copy->from_host = !copying->from_device;
    copy->to_host = !copying->to_device;
    if (!copy->from_host)
        accesses[n++] = (struct test_access){copy->from, copy->bytes, false};
    if (!copy->to_host)
        accesses[n++] = (struct test_access){copy->to, copy->bytes, true};
    pthread_mutex_lock(&lock);
    copy->next = scheduler->copies;
    scheduler->copies = copy;
    pthread_mutex_unlock(&lock);
    if (!test_captured(scheduler))
        copy_launched(&copy->job);
    return test_enqueue(scheduler, line, &copy->job, accesses, n, err);
}
