/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/marks.h"

#include "graph/join.h"
#include "graph/update_rows.h"
#include "graph/worker_attr.h"

static const char *const roles[] = {"indices", "values", NULL};
static const char *const totals[] = {TOTAL_SUM, TOTAL_ROWS, NULL};
static const char *const per_worker[] = {PER_WORKER_SUM, PER_WORKER_ROWS, PER_WORKER_SAME, NULL};

/* Offsets of slices are numbers or lists of them, as SLICE_SHAPE has one axis or more: their
 * readers check that. */
static const struct op_attr marks[] = {
    {.name = "_class", .kind = ATTR_LIST_STRING},
    {.name = "_trainable", .kind = ATTR_BOOL},
    {.name = "_update", .kind = ATTR_BOOL},
    {.name = "_partitions", .kind = ATTR_INT, .has_minimum = true, .minimum = 1},
    {.name = "_partition_axis", .kind = ATTR_INT, .has_minimum = true, .minimum = 0},
    {.name = "_gradient", .kind = ATTR_STRING},
    {.name = "_gradient_role", .kind = ATTR_STRING, .strings = roles},
    {.name = "_loss", .kind = ATTR_STRING},
    {.name = TOTAL, .kind = ATTR_STRING, .strings = totals},
    {.name = "_local", .kind = ATTR_BOOL},
    {.name = "_wire", .kind = ATTR_TYPE, .types = DTYPE_BIT(FLOAT16) | DTYPE_BIT(BFLOAT16)},
    {.name = "_priority", .kind = ATTR_INT},
    {.name = NODE_GROUP, .kind = ATTR_STRING},
    {.name = "_pass", .kind = ATTR_INT},
    {.name = "_after", .kind = ATTR_LIST_STRING},
    {.name = "_place", .kind = ATTR_LIST_INT},
    {.name = JOIN_ORDER, .kind = ATTR_LIST_STRING},
    {.name = UPDATE_FIRST_ROW, .kind = ATTR_INT, .has_minimum = true, .minimum = 0},
    {.name = SLICE_OF, .kind = ATTR_STRING},
    {.name = SLICE_SHAPE, .kind = ATTR_SHAPE},
    {.name = PER_WORKER, .kind = ATTR_STRING, .strings = per_worker},
    {.name = WORKER_PART_SHAPE, .kind = ATTR_SHAPE},
    {.name = WORKER_PART_AXIS, .kind = ATTR_INT, .has_minimum = true, .minimum = 0},
    {.name = WORKER_PART_INITIAL, .kind = ATTR_BOOL},
    {.name = ALL_WORKERS, .kind = ATTR_BOOL},
    {.name = WORKER_ASKED, .kind = ATTR_BOOL},
    {.name = DRAWS_ALIKE, .kind = ATTR_BOOL},
};

const struct op_attr *mark_find(const char *name)
{
    const size_t n = sizeof marks / sizeof *marks;
    size_t i = *name == '_' ? names_find(marks, n, name) : n;
    return i < n ? &marks[i] : NULL;
}
