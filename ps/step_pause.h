/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments between two steps: the thread that runs steps stands still at one for as long as other
 * threads read what the steps change. So a worker that has the variables of its job shows all of
 * them as of one step.
 */
#ifndef TF_PS_STEP_PAUSE_H
#define TF_PS_STEP_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct step_pause;

struct step_pause *step_pause_new(void);
/* No thread is in a call. NULL is harmless. */
void step_pause_free(struct step_pause *pause);

/* ---- for threads that read ---- */

/* Waits for the end of a step. Then no other begins until step_pause_end. *step: the last step that
 * was run. ERR_RETRY: none ended within `seconds`; ERR_UNAVAILABLE: no other will. */
int step_pause_begin(struct step_pause *pause, double seconds, int64_t *step, struct error *err);
void step_pause_end(struct step_pause *pause);

/* ---- for the thread that runs steps ---- */

bool step_pause_is_wanted(const struct step_pause *pause);
/* Called between two steps, or while the next may be far off: stands still as long as another
 * thread wants it. */
void step_pause_hold(struct step_pause *pause, int64_t step);
/* No step follows: from now on nobody waits for one. */
void step_pause_close(struct step_pause *pause);

#endif
