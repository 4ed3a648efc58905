/* SPDX-License-Identifier: Apache-2.0
 *
 * Running plans and starting them.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan_internal.h"
#include "exec/rendezvous.h"
#include "exec/step.h"

/* Those who wait for a value at the step's rendezvous learn by it that the step stops. */
struct peer {
    struct step_waiter waiter; /* first */
    struct rendezvous *rendezvous;
};

static void abort_rendezvous(struct step_waiter *waiter, const struct error *reason)
{
    struct rendezvous *rendezvous = ((struct peer *)waiter)->rendezvous;
    rendezvous->abort(rendezvous, reason);
}

/* Feeds are what the plan was made for: static plans check that shapes are equal themselves. */
static int check_feeds(const struct plan *plan, const struct tensor *feeds, struct error *err)
{
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct plan_feed *wanted = &plan->feeds[i];
        if (feeds[i].type != wanted->type || !shape_compatible(&feeds[i].shape, &wanted->shape))
            return error_set(err, ERR_DATA, "%s: is %s, but is fed %s",
                             node_text(graph_node(plan->source, wanted->edge.node)),
                             shape_text_typed(wanted->type, &wanted->shape),
                             shape_text_typed(feeds[i].type, &feeds[i].shape));
    }
    return 0;
}

int plan_run_part(struct plan *plan, struct step *step, const struct tensor *feeds,
                  struct tensor *fetches, struct error *err)
{
    struct rendezvous *rendezvous = step->rendezvous;
    if (plan->n_fetches)
        memset(fetches, 0, (size_t)plan->n_fetches * sizeof *fetches);
    struct peer peer = {.waiter.cancelled = abort_rendezvous, .rendezvous = rendezvous};
    int code = rendezvous ? step_on_cancel(step, &peer.waiter, err) : 0;
    if (code) {
        rendezvous->abort(rendezvous, err);
        return code;
    }
    code = check_feeds(plan, feeds, err);
    if (!code)
        code = plan->is_static ? static_run(plan, step, feeds, fetches, err)
                               : dynamic_run(plan, step, feeds, fetches, err);
    if (code)
        step_stop(step, err);
    if (rendezvous)
        step_off_cancel(step, &peer.waiter);
    return code;
}

int plan_run(struct plan *plan, struct step *step, const struct tensor *feeds,
             struct tensor *fetches, struct error *err)
{
    int code = plan_run_part(plan, step, feeds, fetches, err);
    step_end(step);
    return code;
}

struct started {
    struct plan *plan;
    struct step *step;
    const struct tensor *feeds;
    struct tensor *fetches;
    struct step_done *done;
    bool ends_step;
};

static void *run_started(void *argument)
{
    struct started s = *(struct started *)argument;
    struct error err = ERROR_INIT;
    mem_free(argument);
    int code = plan_run_part(s.plan, s.step, s.feeds, s.fetches, &err);
    if (s.ends_step)
        step_end(s.step);
    s.done->done(s.done, code, &err);
    return NULL;
}

static void start(const struct started *started)
{
    struct started *s = mem_alloc(sizeof *s);
    struct error err = ERROR_INIT;
    *s = *started;
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool failed = pthread_create(&thread, NULL, run_started, s) != 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) {
        pthread_detach(thread);
        return;
    }
    mem_free(s);
    error_set(&err, ERR_OS, "cannot start a thread for a step");
    started->done->done(started->done, err.code, &err);
}

void plan_start_part(struct plan *plan, struct step *step, const struct tensor *feeds,
                     struct tensor *fetches, struct step_done *done)
{
    start(&(struct started){plan, step, feeds, fetches, done, false});
}

void plan_start(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct step_done *done)
{
    start(&(struct started){plan, step, feeds, fetches, done, true});
}
