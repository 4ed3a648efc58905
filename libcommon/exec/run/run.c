/* SPDX-License-Identifier: Apache-2.0
 *
 * Running plans and starting them: what both executors do before and after.
 */
#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "exec/device/deferred.h"
#include "exec/device/pool.h"
#include "exec/plan/plan_while.h"
#include "exec/run/run.h"
#include "exec/step/rendezvous.h"

/* Those who wait for a value learn by the rendezvous that the step stops. */
static void abort_rendezvous(struct step_waiter *waiter, const struct error *reason)
{
    struct execution *execution = CONTAINER_OF(waiter, struct execution, waiter);
    struct rendezvous *rendezvous = execution->step->rendezvous;
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

int execution_open(struct execution *execution, const struct plan *plan, struct error *err)
{
    struct rendezvous *rendezvous = execution->step->rendezvous;
    if (plan->n_fetches)
        memset(execution->fetches, 0, (size_t)plan->n_fetches * sizeof *execution->fetches);
    execution->waiter.cancelled = abort_rendezvous;
    execution->waits = rendezvous && !step_on_cancel(execution->step, &execution->waiter, err);
    if (rendezvous && !execution->waits) {
        rendezvous->abort(rendezvous, err);
        return err->code;
    }
    return check_feeds(plan, execution->feeds, err);
}

void execution_close(struct execution *execution, int code, const struct error *err)
{
    if (code)
        step_stop(execution->step, err);
    if (execution->waits)
        step_off_cancel(execution->step, &execution->waiter);
    if (!execution->is_part)
        step_end(execution->step);
}

int execution_result(struct step *step, struct device_step *on_device, const struct error *own,
                     const struct error *devices, struct error *err)
{
    bool has_failed = devices && devices->code;
    device_step_tell(on_device, step, has_failed);
    const struct fault *fault = has_failed ? NULL : device_step_fault(on_device);
    if (fault)
        return fault_report(fault, err);
    if (!own && !has_failed)
        return 0;
    *err = own ? *own : *devices;
    return err->code;
}

int execution_fail_dead(struct error *err)
{
    return error_set(err, ERR_DATA,
                     "a fetched value is dead: it is in a branch that was not taken");
}

static int run(struct plan *plan, struct execution *execution, struct error *err)
{
    thread_take_up(plan->options.device);
    return plan->is_static ? static_run(plan, execution, err) : dynamic_run(plan, execution, err);
}

int plan_run(struct plan *plan, struct step *step, const struct tensor *feeds,
             struct tensor *fetches, struct error *err)
{
    struct execution execution = {.step = step, .feeds = feeds, .fetches = fetches};
    return run(plan, &execution, err);
}

void plan_trim(struct plan *plan)
{
    if (plan->is_static)
        static_free_instances(plan);
    if (plan->pool)
        pool_trim(plan->pool);
    if (plan->host_pool)
        pool_trim(plan->host_pool);
    for (size_t i = 0; i < plan->loops.n; i++) {
        plan_trim(plan->loops.items[i]->condition);
        plan_trim(plan->loops.items[i]->body);
    }
}

static void start(struct plan *plan, const struct execution *execution)
{
    thread_take_up(plan->options.device);
    if (plan->is_static)
        static_start(plan, execution);
    else
        dynamic_start(plan, execution);
}

void plan_start(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct step_done *done)
{
    start(plan,
          &(struct execution){.step = step, .feeds = feeds, .fetches = fetches, .done = done});
}

void plan_start_part(struct plan *plan, struct step *step, const struct tensor *feeds,
                     struct tensor *fetches, struct step_done *done)
{
    start(plan,
          &(struct execution){
              .step = step, .feeds = feeds, .fetches = fetches, .done = done, .is_part = true});
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    static_free_instances(plan);
    dynamic_free_runs(plan);
    for (size_t i = 0; i < plan->loops.n; i++) {
        struct while_loop *loop = plan->loops.items[i];
        plan_free(loop->condition);
        plan_free(loop->body);
        loop->condition = loop->body = NULL;
    }
    plan_release(plan);
}
