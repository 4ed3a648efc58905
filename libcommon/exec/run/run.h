/* SPDX-License-Identifier: Apache-2.0
 *
 * What both executors do before and after a step. Private to exec/run.
 */
#ifndef TF_EXEC_RUN_H
#define TF_EXEC_RUN_H

#include "exec/plan/plan_private.h"
#include "exec/step/device_step.h"
#include "exec/step/step.h"

/* What a run of a plan was given, and who is told how it ended. */
struct execution {
    struct step *step;
    const struct tensor *feeds;
    struct tensor *fetches;
    struct step_done *done; /* NULL: the thread that runs it waits for the end */
    bool is_part;           /* of a step that others end */
    struct step_waiter
        waiter; /* aborts the rendezvous when the step stops; registered if `waits` */
    bool waits;
};

/* Clears fetches and checks feeds. execution_close follows in any case; it stops the step if the
 * run failed, and ends it. In between *execution must not move. */
int execution_open(struct execution *execution, const struct plan *plan, struct error *err);
void execution_close(struct execution *execution, int code, const struct error *err);
/* How a run has ended, all that it enqueued included: as the device's failure says (NULL or no
 * error: none), or what a kernel has left in the step block, which comes before what the run itself
 * met with (`own`; NULL: nothing). */
int execution_result(struct step *step, struct device_step *on_device, const struct error *own,
                     const struct error *devices, struct error *err);

/* Of a run that was to fetch what is dead: ERR_DATA. */
int execution_fail_dead(struct error *err);

/* static.c */
int static_run(struct plan *plan, struct execution *execution, struct error *err);
void static_start(struct plan *plan, const struct execution *execution);
/* Those that no step uses. */
void static_free_instances(struct plan *plan);

/* dynamic_step.c */
void dynamic_free_runs(struct plan *plan);
int dynamic_run(struct plan *plan, struct execution *execution, struct error *err);
void dynamic_start(struct plan *plan, const struct execution *execution);

#endif
