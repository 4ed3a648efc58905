/* SPDX-License-Identifier: Apache-2.0
 *
 * Summary of a trace: the time of steps, and the time of kernels by op.
 */
#ifndef TF_SHOW_TRACE_H
#define TF_SHOW_TRACE_H

#include "base/str.h"
#include "wire/record.h"

struct trace_summary;

struct trace_summary *trace_summary_new(void);
void trace_summary_free(struct trace_summary *summary); /* NULL is harmless */

/* ERR_DATA for events that lack a required field. */
int trace_summary_add(struct trace_summary *summary, const struct record *record,
                      struct error *err);

/* `trace   460 steps  median 0.31 ms  p90 0.38 ms  in kernels 91%  2 threads`, and a table of ops
 * by decreasing time. Prints nothing if nothing was added. */
void trace_summary_print(const struct trace_summary *summary, struct str *out);

/* The same for the placer (docs/costs.md): `device TYPE memory=BYTES`, for devices with their own
 * memory, where BYTES is the smallest of the type; then `node NAME NS` with the mean time per step,
 * and `op NAME NS` with the mean time per call; each sorted by name. */
void trace_summary_print_costs(const struct trace_summary *summary, struct str *out);

#endif
