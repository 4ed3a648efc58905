/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan_internal.h"

int dynamic_new(struct plan *plan, struct error *err)
{
    (void)plan;
    return error_set(err, ERR_INTERNAL, "dynamic plans are not built in");
}

void dynamic_free(struct plan *plan)
{
    (void)plan;
}

int dynamic_run(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct error *err)
{
    (void)plan, (void)step, (void)feeds, (void)fetches;
    return error_set(err, ERR_INTERNAL, "dynamic plans are not built in");
}
