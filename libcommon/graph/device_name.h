/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names: "/job:worker/task:0/device:CPU:0". Any part may be missing, which leaves it open:
 * a name with open parts is a wish. `task:*` means one in each of the job's tasks. Values are plain
 * data; nothing is owned.
 *
 * Read, besides the canonical parts in any order: `/device:CPU` (any index), a part whose value is
 * `*` (open, but for the task), `/cpu:0` and `/gpu:0` in either case, `/` alone (all open).
 */
#ifndef TF_GRAPH_DEVICE_NAME_H
#define TF_GRAPH_DEVICE_NAME_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

#define DEVICE_OPEN (-1)  /* of task, replica, index: not said */
#define DEVICE_EVERY (-2) /* of task: one in each */
#define DEVICE_WORD_BYTES 64

struct device_name {
    char job[DEVICE_WORD_BYTES];  /* "": open */
    char type[DEVICE_WORD_BYTES]; /* "CPU", upper case; "": open */
    int replica, task, index;     /* index is open when the type is */
};

struct device_name device_name_open(void); /* nothing said */

/* ERR_DATA: "device '...': what". "" and "/" are all open. */
int device_name_parse(struct device_name *name, const char *text, struct error *err);

/* Canonical; "" when all is open. Parsing it gives the same name. */
void device_name_print(struct str *out, const struct device_name *name);

bool device_name_equal(const struct device_name *a, const struct device_name *b);
bool device_name_is_open(const struct device_name *name); /* all of it */
bool device_name_is_full(const struct device_name *name); /* job, task, type and index are set */

/* True when every part that `pattern` sets is set alike in `name`; `task:*` admits any task. */
bool device_name_specialises(const struct device_name *name, const struct device_name *pattern);

/* Takes from `other` what `name` leaves open. ERR_DATA when both set a part and differ (a task and
 * `task:*` agree on the task); `name` is as before then. */
int device_name_merge(struct device_name *name, const struct device_name *other, struct error *err);

/* Same job, replica and task, all set: tensors are handed over without copies between processes. */
bool device_name_same_task(const struct device_name *a, const struct device_name *b);

#endif
