/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases cover, op by op, and what they lack: a value for each type of each kernel, an
 * error where the op can fail, a gradient check where it has a gradient, a line of documentation.
 */
#ifndef TF_TESTS_OPS_COVERAGE_H
#define TF_TESTS_OPS_COVERAGE_H

#include "base/str.h"
#include "graph/graph.h"

/* UNKNOWN: a shape that is not known before the inputs' values are. */
enum coverage_kind { COVERAGE_VALUE, COVERAGE_ERROR, COVERAGE_GRADIENT, COVERAGE_UNKNOWN };

struct coverage;

/* Processes that are forked later share it. */
struct coverage *coverage_new(void);
void coverage_free(struct coverage *coverage);

void coverage_note(struct coverage *coverage, const struct node *node, enum coverage_kind kind);
/* Ops by name, separated by spaces. */
void coverage_note_name(struct coverage *coverage, const char *ops, enum coverage_kind kind);

/* Appends what op number `index` of the registry lacks, nothing if it is complete. */
void coverage_missing(const struct coverage *coverage, size_t index, const char *device,
                      struct str *missing);

#endif
