/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace adds up to: the time of steps, and per op the time of its kernels.
 */
#ifndef TF_SHOW_TRACE_H
#define TF_SHOW_TRACE_H

#include "base/str.h"
#include "wire/record.h"

struct trace_summary;

struct trace_summary *trace_summary_new(void);
void trace_summary_free(struct trace_summary *summary); /* NULL is harmless */

/* ERR_DATA for events without the fields that they must have. */
int trace_summary_add(struct trace_summary *summary, const struct record *record,
                      struct error *err);

/* `trace   460 steps  median 0.31 ms  p90 0.38 ms  in kernels 91%  2 threads`, and a table of ops,
 * the one with most time first. Nothing if nothing was added. */
void trace_summary_print(const struct trace_summary *summary, struct str *out);

/* The same for the placer (docs/costs.md): `device TYPE memory=BYTES` of devices with memory of
 * their own, what the smallest of a type has; then `node NAME NS` with the mean time in a step, and
 * `op NAME NS` with that of a call; each sorted by name. */
void trace_summary_print_costs(const struct trace_summary *summary, struct str *out);

#endif
