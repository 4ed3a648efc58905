/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/evaluate.h"

#include "exec/session/session.h"

int evaluator_run(void *evaluator, const struct graph *graph, const struct edge *edges, int n,
                  struct tensor *values, struct error *err)
{
    struct evaluator *e = evaluator;
    struct device_options device = {.exact = true};
    if (!e->device && !(e->device = device_open("CPU", 0, &device, err)))
        return err->code;
    struct session_options options = {.plan = {.kernels = e->kernels, .device = e->device}};
    struct plan_request call = {.fetches = edges, .n_fetches = n};
    struct step step = {.number = 1};
    struct session *session = session_new(graph, &options);
    int code = session_run(session, &call, &step, values, err);
    session_free(session);
    return code;
}

void evaluator_release(struct evaluator *evaluator)
{
    if (evaluator->device)
        device_free(evaluator->device);
    evaluator->device = NULL;
}
