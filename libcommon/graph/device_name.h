/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names: "/job:worker/task:0/device:CPU:0". A missing part is open; a name with open parts
 * is a request. `task:*` stands for one device in each of the job's tasks. Values are plain data;
 * nothing is owned.
 *
 * A replica may be a group of consecutive tasks: with groups of G, `task:k%G` stands for the k-th
 * task of each group, that is, for tasks n with n % G = k. `task:*%G` leaves open which member.
 *
 * Also parsed, besides the canonical parts in any order: `/device:CPU` (any index), `*` as a value
 * (open, except for the task), `/cpu:0` and `/gpu:0` in either case, `/` alone (all open).
 */
#ifndef TF_GRAPH_DEVICE_NAME_H
#define TF_GRAPH_DEVICE_NAME_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define DEVICE_OPEN (-1)  /* of task, replica, index: open */
#define DEVICE_EVERY (-2) /* of task: one in each task; values below: one in each group */
#define DEVICE_GROUP_MAX 1024
#define DEVICE_WORD_BYTES 64

struct device_name {
    char job[DEVICE_WORD_BYTES];  /* "": open */
    char type[DEVICE_WORD_BYTES]; /* "CPU", upper case; "": open */
    int replica, task, index;     /* index is open when the type is */
};

struct device_name device_name_open(void); /* all parts open */

/* Returns whether a name's task stands for many: one in each task or group. */
static inline bool device_task_is_many(int task)
{
    return task <= DEVICE_EVERY;
}

/* Returns the task of a name: member `member` of each group of `size`, 1 to DEVICE_GROUP_MAX;
 * DEVICE_OPEN leaves the member open. For groups of one it is DEVICE_EVERY. */
int device_group_task(int size, int member);
/* The inverse: the group size, and the member, of a task that stands for many. */
int device_group_size(int task);
int device_group_member(int task);

/* ERR_DATA: "device '...': what". "" and "/" are all open. */
int device_name_parse(struct device_name *name, const char *text, struct error *err);

/* Canonical; "" when all is open. Parsing it gives the same name. */
void device_name_print(struct str *out, const struct device_name *name);
const char *device_name_text(struct arena *arena, const struct device_name *name);

/* Returns a pattern with the number in place of its only '*', in the arena; the pattern itself if
 * it has no '*'; NULL if it has several. */
const char *device_pattern_text(struct arena *arena, const char *pattern, int number);

bool device_name_equal(const struct device_name *a, const struct device_name *b);
bool device_name_is_open(const struct device_name *name); /* all of it */
bool device_name_is_full(const struct device_name *name); /* job, task, type and index are set */

/* Returns whether `name` equals `pattern` in every part that `pattern` sets; `task:*` matches any
 * task, and `task:*%G` any member of groups of G. */
bool device_name_specialises(const struct device_name *name, const struct device_name *pattern);

/* Takes the parts that `name` leaves open from `other`. ERR_DATA, with `name` unchanged, if both
 * set a part and differ (a task and `task:*` merge to the task). */
int device_name_merge(struct device_name *name, const struct device_name *other, struct error *err);

/* Returns whether job, replica and task are set and equal: one process then shares tensors
 * uncopied. */
bool device_name_same_task(const struct device_name *a, const struct device_name *b);

#endif
