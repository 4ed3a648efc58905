/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of an all-reduce of float32 among processes of this machine, the median over calls of
 * rank 0, and the processor time of a call on rank 0, which other processes influence less; both in
 * microseconds. usage: allreduce shared|unix|tcp RANKS BYTES CALLS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "transport/collective/collective.h"

#define RANKS_MAX 16
#define WARM 3

static const char *kind;
static int n_ranks, n_calls;
static int64_t n_elements;
static char folder[] = "/tmp/allreduceXXXXXX";
static char tasks[RANKS_MAX][32], addresses[RANKS_MAX][32];

static void must(int code, const struct error *err)
{
    if (!code)
        return;
    fprintf(stderr, "allreduce: %s\n", err->text);
    _exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct took {
    double seconds, processor;
};

/* Returns the processor seconds of all threads of this process. */
static double processor_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static struct collective *join(struct conns **conns, int rank)
{
    struct error err = ERROR_INIT;
    const char *names[RANKS_MAX];
    const struct collective_tasks group = {names, n_ranks, 0, NULL, NULL};
    struct cluster cluster = {0};
    struct str text = STR_INIT;
    for (int k = 0; k < n_ranks; k++) {
        names[k] = tasks[k];
        str_printf(&text, "task %s %s\n", tasks[k], addresses[k]);
    }
    must(cluster_parse(&cluster, str_text(&text), "cluster", &err), &err);
    str_release(&text);
    struct conns_options options = {.peers = {.task = tasks[rank],
                                              .folder = folder,
                                              .no_key = true,
                                              .no_shared_memory = strcmp(kind, "shared") != 0}};
    *conns = conns_new(&options, &err);
    must(!*conns, &err);
    struct collective *collective = collective_links_new(*conns, &group, rank);
    must(peers_listen(conns_peers(*conns), addresses[rank], NULL, &err), &err);
    must(collective_links_join(collective, &cluster, &(struct member_options){.timeout = 20}, &err),
         &err);
    cluster_release(&cluster);
    return collective;
}

/* The value is yielded to the sum. */
static void sum_up(struct collective *collective, const char *name, int64_t step,
                   struct tensor *value)
{
    static const enum collective_kind sum = COLLECTIVE_SUM;
    struct error err = ERROR_INIT;
    struct tensor result = TENSOR_INIT;
    struct collective_call call = {{name, step, 0}, value, &sum, 1, .yields = true};
    must(collective_links_run(collective, &call, &result, NULL, &err), &err);
    tensor_release(value);
    *value = result;
}

/* Returns when all have come and finished all earlier work. */
static void meet(struct collective *collective, int64_t step)
{
    struct error err = ERROR_INIT;
    struct tensor nothing;
    must(tensor_alloc(&nothing, INT32, &SHAPE_SCALAR, &err), &err);
    tensor_set_int64(&nothing, 0, 0);
    sum_up(collective, "meet", step, &nothing);
    tensor_release(&nothing);
}

/* One call, in place as with the peers; the sum is checked at its ends. All meet before the time
 * starts, as there may be more members than cores; and after it, as the sum may still be on its way
 * to others, and the next call writes to it. */
static struct took reduce(struct collective *collective, struct tensor *value, int64_t step)
{
    struct error err = ERROR_INIT;
    for (int64_t i = 0; i < n_elements; i++)
        ((float *)value->data)[i] = (float)(collective->rank + 1);
    meet(collective, 2 * step);
    struct took took;
    took.processor = -processor_seconds();
    took.seconds = -time_now();
    sum_up(collective, "bench", step, value);
    took.seconds += time_now();
    took.processor += processor_seconds();
    meet(collective, 2 * step + 1);
    const float *first = value->data, expected = (float)(n_ranks * (n_ranks + 1) / 2);
    if (first[0] != expected || first[n_elements - 1] != expected)
        must(error_set(&err, 1, "a wrong sum"), &err);
    return took;
}

/* Allocates as an executor does for the input of an AllReduce. */
static int alloc(struct conns *conns, struct tensor *value, const struct shape *shape,
                 struct error *err)
{
    size_t bytes = (size_t)shape_bytes(shape, FLOAT32);
    struct buffer *buffer = outgoing_alloc(conns_outgoing(conns), FLOAT32, bytes);
    if (!buffer)
        return tensor_alloc(value, FLOAT32, shape, err);
    *value = (struct tensor){FLOAT32, *shape, buffer->data, buffer, NULL};
    return 0;
}

static void run(int rank)
{
    struct error err = ERROR_INIT;
    struct conns *conns;
    struct collective *collective = join(&conns, rank);
    struct shape shape = shape_vector(n_elements);
    struct tensor value;
    double *times = mem_array((size_t)n_calls, sizeof *times);
    must(alloc(conns, &value, &shape, &err), &err);
    double used = 0;
    for (int i = 0; i < WARM + n_calls; i++) {
        struct took took = reduce(collective, &value, i);
        if (i < WARM)
            continue;
        times[i - WARM] = took.seconds;
        used += took.processor;
    }
    qsort(times, (size_t)n_calls, sizeof *times, by_value);
    if (!rank)
        printf("%.1f %.1f\n", 1e6 * times[n_calls / 2], 1e6 * used / n_calls);
    mem_free(times);
    tensor_release(&value);
    collective_links_end(collective, 5);
    collective->free(collective);
    conns_free(conns);
}

int main(int argc, char **argv)
{
    int failed = 0, status;
    if (argc != 5)
        return fprintf(stderr, "usage: allreduce shared|unix|tcp RANKS BYTES CALLS\n"), 64;
    kind = argv[1];
    n_ranks = atoi(argv[2]);
    n_elements = atoll(argv[3]) / 4;
    n_calls = atoi(argv[4]);
    if (n_ranks < 1 || n_ranks > RANKS_MAX || n_elements < 1 || n_calls < 1 || !mkdtemp(folder))
        return 64;
    for (int k = 0; k < n_ranks; k++) {
        snprintf(tasks[k], sizeof tasks[k], "worker:%d", k);
        if (strcmp(kind, "tcp") != 0)
            snprintf(addresses[k], sizeof addresses[k], "unix:w%d", k);
        else
            snprintf(addresses[k], sizeof addresses[k], "127.0.0.1:%d",
                     20000 + (int)(getpid() * 16L % 30000) + k);
    }
    for (int k = 0; k < n_ranks; k++) {
        if (!fork()) {
            run(k);
            fflush(stdout);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status;
    rmdir(folder);
    return failed ? 1 : 0;
}
