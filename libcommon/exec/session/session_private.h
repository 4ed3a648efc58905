/* SPDX-License-Identifier: Apache-2.0
 *
 * What is private to exec/session: plans that a session keeps.
 */
#ifndef TF_EXEC_SESSION_PRIVATE_H
#define TF_EXEC_SESSION_PRIVATE_H

#include <stdatomic.h>

#include "base/str.h"
#include "exec/run/plan_set.h"
#include "exec/session/session.h"

struct cached {
    struct str key; /* feeds with types and shapes, fetches, targets, as bytes */
    struct plan_set *set;
    uint64_t last_used;
    uint64_t uses;
    atomic_int users; /* steps that run it now: not to be dropped; more under the lock only */
    bool keep;        /* handed out by session_plan */
};

/* The plan for the call, with one more user. Beyond the limit of plans one serves all shapes. NULL
 * with the error set, ERR_CANCELLED if the step is while the plan is made. Step NULL: that of none.
 */
struct cached *session_acquire(struct session *session, const struct session_call *call,
                               struct step *step, struct error *err);
void session_give_back(struct cached *c);

#endif
