/* SPDX-License-Identifier: Apache-2.0
 *
 * Consistency policies: which pushes make up the next round of a clock, and who may go on when.
 *
 * A policy is a row of functions. To add one: a file with its row, a line in policies.def. The
 * texts of tf-replicate, tf-run and the clock about policies follow from the rows.
 */
#ifndef TF_RESOURCE_POLICY_H
#define TF_RESOURCE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct clock;
struct clock_member;

struct policy_kind {
    const char *name;   /* "ssp" */
    const char *option; /* its number, as in "ssp,bound=3"; NULL: it has none */
    bool needs_option;  /* false: 0 if it is not said */
    bool leaves_out;    /* the number is of workers that do not count in a round */
    bool one_version;   /* variables do not change while a worker reads them for a step */
    const char *usage;  /* "ssp,bound=S"; several are separated by "; " */
    const char *doc;    /* a line, for --help */

    /* All are called with the clock locked. */

    /* Puts the members of the next round into PUSH_CHOSEN, if there is a set. */
    bool (*choose)(struct clock *clock);
    /* Returns whether a push, computed from the member's version, can never count. NULL: none is
     * late. */
    bool (*is_late)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether a worker whose last push is decided may go on. NULL: at once. */
    bool (*may_go_on)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether the rounds, or who waits in them, want something of this worker, which has
     * not left. NULL: of none. */
    bool (*misses)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether a worker may rest, before a checkpoint, after its last push: the others,
     * which go on until they rest, must not need another one. NULL: at once. */
    bool (*may_rest)(const struct clock *clock, const struct clock_member *member);
};

struct policy {
    const struct policy_kind *kind; /* NULL: none */
    int64_t number;
};

/* All kinds, in the order in which they are listed; ends with NULL. */
extern const struct policy_kind *const policy_kinds[];

/* "sync", "sync,backup=2", "async" or "ssp,bound=3". ERR_DATA for anything else, naming all. */
int policy_parse(struct policy *policy, const char *text, struct error *err);
/* ERR_DATA for one by which none of so many workers would count. */
int policy_check_workers(const char *text, int64_t workers, struct error *err);
void policy_print(struct str *out, const struct policy *policy); /* the same text; "none" */
bool policy_equal(const struct policy *a, const struct policy *b);

/* "sync; sync,backup=B; async; ssp,bound=S" */
void policy_print_usages(struct str *out);

#endif
