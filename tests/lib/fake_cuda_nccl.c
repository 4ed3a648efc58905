/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL in the tests, among processes: members share a file, in which each has a place for its
 * contribution. A sum is two pieces of work of a stream: a member contributes once all have read
 * the former contributions, and adds once all have contributed; a thread of the communicator makes
 * the device check again. Terms are added from the last member to the first, unlike in our own
 * sums, so that tests can tell them apart. TF_TEST_DEVICE_LACKS=nccl: there is no such library;
 * TF_TEST_NCCL_VERSION: its version. TF_TEST_NCCL_STUCK=N: this member never contributes to its
 * N-th sum, and makes a file tf-nccl-stuck.RANK when that sum is requested.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/fake_cuda_driver.h"

enum { NCCL_SYSTEM = 2, NCCL_INVALID = 4 };

#define MEMBERS_MAX 8
#define PLACE_BYTES ((size_t)4 << 20)

struct shared_place {
    atomic_int joined, brought, read; /* brought, read: sums */
};

struct shared_file {
    struct shared_place members[MEMBERS_MAX];
    char values[MEMBERS_MAX][PLACE_BYTES];
};

struct fake_group {
    atomic_int holders; /* the member that opened it, and its work */
    struct shared_file *file;
    int n, rank, sums, stuck;
    atomic_bool aborted;
    struct fake_card *card;
    pthread_t looks;
};

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static int load(struct error *err)
{
    return fake_load("nccl", "sums among GPUs", err);
}

static int version(int *number)
{
    *number = number_from("TF_TEST_NCCL_VERSION", 22809);
    return 0;
}

static const char *folder(void)
{
    const char *text = getenv("TMPDIR");
    return text ? text : "/tmp";
}

/* Makes the name of a file that exists while a member has it open or has not joined yet. */
static int make_id(char id[COMMUNICATOR_ID_BYTES])
{
    snprintf(id, COMMUNICATOR_ID_BYTES, "%s/tf-nccl.XXXXXX", folder());
    int file = mkstemp(id);
    int code = file < 0 || ftruncate(file, sizeof(struct shared_file)) ? NCCL_SYSTEM : 0;
    if (file >= 0)
        close(file);
    return code;
}

static bool all_have(const struct fake_group *group, size_t what, int least)
{
    bool all = true;
    for (int k = 0; k < group->n && all; k++)
        all = atomic_load((atomic_int *)((char *)&group->file->members[k] + what)) >= least;
    return all;
}

static void drop(struct fake_group *group)
{
    if (atomic_fetch_sub(&group->holders, 1) > 1)
        return;
    munmap(group->file, sizeof *group->file);
    mem_free(group);
}

/* Checks again and again, as nothing tells a process what others have written. */
static void *look_again(void *argument)
{
    struct fake_group *group = argument;
    struct test_scheduler *s = group->card->scheduler;
    while (!atomic_load(&group->aborted)) {
        pthread_mutex_lock(&s->lock);
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        usleep(500);
    }
    return NULL;
}

static int map_file(const char *name, struct shared_file **mapped)
{
    int file = open(name, O_RDWR);
    if (file < 0)
        return NCCL_SYSTEM;
    void *at = mmap(NULL, sizeof **mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    *mapped = at;
    return at == MAP_FAILED ? NCCL_SYSTEM : 0;
}

static int open_group(void **communicator, const struct communicator_place *place)
{
    struct fake_group *group = mem_alloc(sizeof *group);
    *group = (struct fake_group){.n = place->n,
                                 .rank = place->rank,
                                 .stuck = number_from("TF_TEST_NCCL_STUCK", 0),
                                 .card = fake_current()};
    if (place->n > MEMBERS_MAX || map_file(place->id, &group->file)) {
        mem_free(group);
        return NCCL_INVALID;
    }
    atomic_store(&group->holders, 1);
    atomic_store(&group->file->members[group->rank].joined, 1);
    if (pthread_create(&group->looks, NULL, look_again, group)) {
        drop(group);
        return NCCL_SYSTEM;
    }
    *communicator = group;
    if (all_have(group, offsetof(struct shared_place, joined), 1))
        unlink(place->id);
    return CUDA_NCCL_IN_PROGRESS;
}

static int state(void *communicator, int *status)
{
    const struct fake_group *group = communicator;
    bool there = all_have(group, offsetof(struct shared_place, joined), 1);
    *status = there ? 0 : CUDA_NCCL_IN_PROGRESS;
    return 0;
}

/* ---- a sum ---- */

struct fake_sum {
    struct test_job job; /* first */
    struct fake_group *group;
    struct communicator_sum call;
    int number;
};

static size_t sum_bytes(const struct communicator_sum *call)
{
    return (size_t)call->count * dtype_bytes(call->type);
}

static bool may_bring(const struct test_job *job)
{
    const struct fake_sum *sum = (const struct fake_sum *)job;
    const struct fake_group *group = sum->group;
    return atomic_load(&group->aborted) ||
           (sum->number != group->stuck &&
            all_have(group, offsetof(struct shared_place, read), sum->number - 1));
}

static void bring(struct test_job *job)
{
    struct fake_sum *sum = (struct fake_sum *)job;
    struct fake_group *group = sum->group;
    if (atomic_load(&group->aborted))
        return;
    memcpy(group->file->values[group->rank], test_to_host(sum->call.from), sum_bytes(&sum->call));
    atomic_store(&group->file->members[group->rank].brought, sum->number);
}

static bool may_add(const struct test_job *job)
{
    const struct fake_sum *sum = (const struct fake_sum *)job;
    return atomic_load(&sum->group->aborted) ||
           all_have(sum->group, offsetof(struct shared_place, brought), sum->number);
}

#define ADD(type)                                                                                  \
    do {                                                                                           \
        type total = ((const type *)group->file->values[group->n - 1])[i];                         \
        for (int k = group->n - 1; k-- > 0;)                                                       \
            total = (type)(total + ((const type *)group->file->values[k])[i]);                     \
        ((type *)to)[i] = call->mean ? (type)(total / (type)group->n) : total;                     \
    } while (0)

static void add_element(const struct fake_group *group, const struct communicator_sum *call,
                        size_t i)
{
    void *to = test_to_host(call->to);
    if (call->type == FLOAT32)
        ADD(float);
    else if (call->type == FLOAT64)
        ADD(double);
    else if (call->type == INT32)
        ADD(int32_t);
    else
        ADD(int64_t);
}

static void add_all(struct test_job *job)
{
    struct fake_sum *sum = (struct fake_sum *)job;
    struct fake_group *group = sum->group;
    if (atomic_load(&group->aborted)) { /* garbage */
        memset(test_to_host(sum->call.to), 0xff, sum_bytes(&sum->call));
        return;
    }
    for (size_t i = 0; i < (size_t)sum->call.count; i++)
        add_element(group, &sum->call, i);
    atomic_store(&group->file->members[group->rank].read, sum->number);
}

static void free_sum(struct test_job *job)
{
    struct fake_sum *sum = (struct fake_sum *)job;
    drop(sum->group);
    mem_free(sum);
}

static int enqueue(struct fake_group *group, const struct communicator_sum *call, bool brings,
                   struct cuda_stream *stream)
{
    struct fake_sum *sum = mem_alloc(sizeof *sum);
    struct error err = ERROR_INIT;
    struct test_access access = {test_to_host(brings ? call->from : call->to), sum_bytes(call),
                                 !brings};
    *sum = (struct fake_sum){.job = {.run = brings ? bring : add_all,
                                     .free = free_sum,
                                     .is_ready = brings ? may_bring : may_add},
                             .group = group,
                             .call = *call,
                             .number = group->sums};
    atomic_fetch_add(&group->holders, 1);
    return test_enqueue(stream->card->scheduler, stream->line, &sum->job, &access, 1, &err)
               ? NCCL_SYSTEM
               : 0;
}

static void say_stuck(const struct fake_group *group)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/tf-nccl-stuck.%d", folder(), group->rank);
    int file = creat(name, 0600);
    if (file >= 0)
        close(file);
}

static int add(void *communicator, const struct communicator_sum *call, struct CUstream_st *stream)
{
    struct fake_group *group = communicator;
    struct cuda_stream *line = (struct cuda_stream *)stream;
    if (atomic_load(&group->aborted) || sum_bytes(call) > PLACE_BYTES ||
        (call->mean && call->type != FLOAT32 && call->type != FLOAT64))
        return NCCL_INVALID;
    group->sums++;
    int status = enqueue(group, call, true, line);
    if (!status)
        status = enqueue(group, call, false, line);
    if (group->sums == group->stuck)
        say_stuck(group);
    return status;
}

static int abort_group(void *communicator)
{
    struct fake_group *group = communicator;
    atomic_store(&group->aborted, true);
    pthread_mutex_lock(&group->card->scheduler->lock);
    pthread_cond_broadcast(&group->card->scheduler->changed);
    pthread_mutex_unlock(&group->card->scheduler->lock);
    pthread_join(group->looks, NULL);
    drop(group);
    return 0;
}

static const char *error_text(int status)
{
    return status == NCCL_SYSTEM ? "a call of the system has failed" : "an argument is invalid";
}

const struct cuda_nccl fake_cuda_nccl = {
    .calls = {.name = "NCCL", .load = load, .error_text = error_text},
    .version = version,
    .id = make_id,
    .open = open_group,
    .state = state,
    .add = add,
    .abort = abort_group};
