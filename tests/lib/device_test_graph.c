/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured work of the TEST device. It must be ordered by its own waits, and missing ones are found
 * during the capture. Launched, it is one piece of work of the compute queue, within which jobs are
 * done in any order that events allow, chosen by a seed.
 */
#include "base/memory.h"
#include "lib/device_test_internal.h"

struct captured_job {
    int line;
    struct test_job *job;
};

struct test_graph {
    struct test_scheduler *scheduler;
    VEC(struct captured_job) jobs;
    VEC(struct test_access) accesses;
    struct test_order order; /* among its jobs */
    int origin, n_lines;
    bool forked[TEST_LINES]; /* the lines that it is in */
    struct error failure;
    uint64_t random;
    size_t *next; /* while it runs, by line: the first job that is not done */
};

/* What this thread captures. */
static _Thread_local struct test_graph *current;

struct test_graph *test_captured(const struct test_scheduler *s)
{
    return current && current->scheduler == s ? current : NULL;
}

void test_capture_refuse(struct test_scheduler *s, const char *what)
{
    struct test_graph *graph = test_captured(s);
    if (graph && !graph->failure.code)
        error_set(&graph->failure, ERR_INTERNAL, "the TEST device: %s while work is captured",
                  what);
}

/* ---- capturing ---- */

static void keep(struct test_graph *graph, int line, struct test_job *job)
{
    vec_push(&graph->jobs, ((struct captured_job){line, job}));
    if (!graph->forked[line])
        test_capture_refuse(graph->scheduler, "a queue is used that does not wait for it");
}

int test_capture(struct test_graph *graph, int line, struct test_job *job,
                 const struct test_access *accesses, int n, struct error *err)
{
    keep(graph, line, job);
    for (int i = 0; i < n; i++)
        vec_push(&graph->accesses, accesses[i]);
    if (!graph->failure.code)
        test_order_use(&graph->order, line, accesses, n, &graph->failure);
    if (graph->failure.code)
        *err = graph->failure;
    return graph->failure.code;
}

void test_capture_mark(struct test_graph *graph, int line, struct test_job *job)
{
    job->marks->captured = graph;
    job->marks->clock = graph->order.clocks[line];
    keep(graph, line, job);
}

void test_capture_wait(struct test_graph *graph, int line, struct test_job *job)
{
    if (job->waits->captured != graph)
        test_capture_refuse(graph->scheduler, "an event of before is waited for");
    graph->forked[line] = true;
    test_clock_join(&graph->order.clocks[line], &job->waits->clock);
    keep(graph, line, job);
}

/* Checks that the first line has waited for all work of the others. */
static void check_joined(struct test_graph *graph)
{
    const struct test_clock *known = &graph->order.clocks[graph->origin];
    for (int i = 0; i < TEST_LINES; i++)
        if (known->at[i] < graph->order.clocks[i].at[i])
            test_capture_refuse(graph->scheduler, "a queue is not waited for in the end");
}

void test_capture_begin(struct test_scheduler *s, int line)
{
    struct test_graph *graph = current = mem_alloc(sizeof *graph);
    graph->scheduler = s;
    graph->failure = error_none();
    graph->origin = line;
    graph->n_lines = s->n_lines;
    graph->forked[line] = true;
    graph->next = mem_array(TEST_LINES, sizeof *graph->next);
    test_order_alloc(&graph->order, NULL, UINTPTR_MAX);
    pthread_mutex_lock(&s->lock);
    graph->random = test_random(s);
    pthread_mutex_unlock(&s->lock);
}

int test_capture_end(struct test_scheduler *s, struct test_graph **result, struct error *err)
{
    struct test_graph *graph = *result = test_captured(s);
    if (!graph)
        return error_set(err, ERR_INTERNAL, "the TEST device: the thread captures nothing");
    check_joined(graph);
    current = NULL;
    if (!graph->failure.code)
        return 0;
    *err = graph->failure;
    *result = NULL;
    test_graph_free(graph);
    return err->code;
}

void test_graph_free(struct test_graph *graph)
{
    for (size_t i = 0; i < graph->jobs.n; i++) {
        struct test_job *job = graph->jobs.items[i].job;
        test_event_free(job->waits);
        test_event_free(job->marks);
        job->free(job);
    }
    vec_release(&graph->jobs);
    vec_release(&graph->accesses);
    test_order_release(&graph->order);
    mem_free(graph->next);
    mem_free(graph);
}

/* ---- launching ---- */

struct launch_job {
    struct test_job job; /* first */
    struct test_graph *graph;
};

/* Returns the line's first job that is not done; the number of jobs if there is none. */
static size_t first_of(const struct test_graph *graph, int line)
{
    size_t i = graph->next[line];
    while (i < graph->jobs.n && graph->jobs.items[i].line != line)
        i++;
    return i;
}

static bool do_one(struct test_graph *graph, int line)
{
    size_t at = graph->next[line] = first_of(graph, line);
    if (at == graph->jobs.n)
        return false;
    struct test_job *job = graph->jobs.items[at].job;
    if (job->waits && !job->waits->over)
        return false;
    if (job->run)
        job->run(job);
    if (job->marks)
        job->marks->over = true;
    graph->next[line]++;
    return true;
}

/* Runs captured work, whose events nobody else uses. */
static void run_graph(struct test_job *job)
{
    struct test_graph *graph = ((struct launch_job *)job)->graph;
    for (size_t i = 0; i < graph->jobs.n; i++)
        if (graph->jobs.items[i].job->marks)
            graph->jobs.items[i].job->marks->over = false;
    for (int i = 0; i < TEST_LINES; i++)
        graph->next[i] = 0;
    for (bool any = true; any;) {
        any = false;
        graph->random = graph->random * 6364136223846793005u + 1442695040888963407u;
        for (int i = 0; i < graph->n_lines && !any; i++)
            any = do_one(graph,
                         (int)(((graph->random >> 33) + (uint64_t)i) % (uint64_t)graph->n_lines));
    }
}

static void free_launch(struct test_job *job)
{
    mem_free((struct launch_job *)job);
}

int test_launch(struct test_scheduler *s, int line, struct test_graph *graph, struct error *err)
{
    struct launch_job *launch = mem_alloc(sizeof *launch);
    launch->job = (struct test_job){.run = run_graph, .free = free_launch};
    launch->graph = graph;
    for (size_t i = 0; i < graph->jobs.n; i++)
        if (graph->jobs.items[i].job->launched)
            graph->jobs.items[i].job->launched(graph->jobs.items[i].job);
    return test_enqueue(s, line, &launch->job, graph->accesses.items, (int)graph->accesses.n, err);
}
