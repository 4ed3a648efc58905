/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs of a plan write to is kept for later ones: one run for each step that ever ran at once.
 * A run of a whole plan, or of one with segments, has its memory in arenas that all plans of a
 * session share.
 */
#include "base/memory.h"
#include "exec/run/dynamic.h"

/* ---- with the lock of the arenas ---- */

static void drop_arenas(struct run *run)
{
    for (int i = 0; i < 2; i++)
        if (run->arenas[i])
            arena_drop(run->plan->options.arenas, run->arenas[i]);
}

static int take_arenas(struct run *run, struct error *err)
{
    const struct plan *plan = run->plan;
    const struct plan_frame *root = &plan->frames.items[FRAME_ROOT];
    for (int i = 0; root->borrows && i < 2; i++) {
        size_t bytes = root->arena_bytes[i];
        if (!bytes)
            continue;
        run->arenas[i] = arena_take(plan->options.arenas, plan->options.device, i == 1, bytes);
        if (!run->arenas[i])
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
    }
    return 0;
}

static void set_busy(struct run *run, bool busy)
{
    for (int i = 0; i < 2; i++)
        if (run->arenas[i])
            run->arenas[i]->busy = busy;
}

static void run_free(struct run *run);

/* One whose arenas no other step uses. Those whose arenas have gone go as well. */
static struct run *find_idle(struct plan *plan)
{
    for (struct run **at = &plan->idle_runs; *at;) {
        struct run *run = *at;
        bool runs = true, stays = true;
        for (int i = 0; i < 2; i++) {
            runs &= !run->arenas[i] || arena_is_free(run->arenas[i]);
            stays &= !run->arenas[i] || run->arenas[i]->buffer;
        }
        if (!runs && stays) {
            at = &run->next;
            continue;
        }
        *at = run->next;
        if (runs)
            return run;
        drop_arenas(run);
        run_free(run);
    }
    return NULL;
}

/* ---- */

static void run_free(struct run *run)
{
    captured_release(run);
    run->failed = false; /* the root of a whole plan is there: it holds nothing */
    for (size_t i = 1; i < run->plan->frames.n; i++)
        loop_run_free(run, run->loops[i]);
    frame_clear(run);
    frame_free_idle(run);
    mem_free(run->loops);
    device_step_release(&run->on_device);
    vec_release(&run->own.temporaries);
    mem_free(run->feeds);
    mem_free(run->idle_frames);
    mem_free(run->dead);
    mem_free(run->idle_iterations);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->changed);
    mem_free(run);
}

static struct run *run_new(struct plan *plan, struct error *err)
{
    struct run *run = mem_alloc(sizeof *run);
    size_t n = plan->frames.n;
    run->plan = plan;
    run->feeds = mem_array((size_t)plan->n_feeds + 1, sizeof *run->feeds);
    run->loops = mem_array(plan->frames.n, sizeof *run->loops);
    run->idle_frames = mem_array(n, sizeof *run->idle_frames);
    if (plan->has_branches)
        run->dead = mem_array(plan->values.n + plan->items.n, sizeof *run->dead);
    run->idle_iterations = mem_array(n, sizeof *run->idle_iterations);
    captured_open(run);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    pthread_mutex_lock(&plan->options.arenas->lock);
    int code = take_arenas(run, err);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    if (!code && plan->is_on_device)
        code = device_step_open(&run->on_device, plan->options.device, err);
    if (!code && plan->is_whole) { /* the one iteration stays as long as the run */
        run->root = frame_new(run, FRAME_ROOT, NULL, NULL);
        code = region_open(run, iteration_new(run, run->root, 0), err);
    }
    if (!code)
        return run;
    pthread_mutex_lock(&plan->options.arenas->lock);
    set_busy(run, false);
    drop_arenas(run);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    run_free(run);
    return NULL;
}

struct run *run_take(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct run *run = find_idle(plan);
    if (run)
        set_busy(run, true);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    return run ? run : run_new(plan, err);
}

void run_give(struct run *run)
{
    struct plan *plan = run->plan;
    pthread_mutex_lock(&plan->options.arenas->lock);
    set_busy(run, false);
    run->next = plan->idle_runs;
    plan->idle_runs = run;
    pthread_mutex_unlock(&plan->options.arenas->lock);
}

void run_free_idle(struct plan *plan)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct run *idle = plan->idle_runs;
    plan->idle_runs = NULL;
    for (struct run *at = idle; at; at = at->next)
        drop_arenas(at);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    while (idle) {
        struct run *next = idle->next;
        run_free(idle);
        idle = next;
    }
}
