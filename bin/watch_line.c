/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/watch_line.h"

#include <inttypes.h>
#include <stdio.h>

void watch_line_draw(struct progress *progress, const struct watch_state *state)
{
    char detail[512];
    if (state->step < 0)
        return;
    snprintf(detail, sizeof detail, "%.300s%sworkers %d/%d  late %" PRId64 "  stale %" PRId64,
             state->values, *state->values ? "  " : "", state->workers_here, state->workers,
             state->late, state->stale);
    progress->total = state->total;
    progress_update(progress, state->step, detail);
}
