/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as a record, to be looked at (tf-exec --dump-plan | tf-show).
 *
 * Fields: `run` (the request), `nodes` of `of` nodes of the graph that the plan runs, `static` (a
 * fixed order with planned memory), `regions`, `peak` bytes of the arena, `choice` of the device,
 * `feeds` ("x float32[64,64]"), and `items` in order, maps of `node`, `kernel`, `offset` (-1: not
 * in the arena), `bytes`, `from`, `to` (first and last item of its lifetime).
 */
#ifndef TF_EXEC_PLAN_IO_H
#define TF_EXEC_PLAN_IO_H

#include "exec/plan/plan.h"
#include "wire/record.h"

int plan_write(struct stream_writer *writer, const struct plan *plan, const char *run,
               struct error *err);

#endif
