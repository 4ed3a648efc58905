/* SPDX-License-Identifier: Apache-2.0
 *
 * Consistency policies: which pushes make up a clock's next round, and who may go on when.
 *
 * A policy is a row of functions. To add one, add a file with its row and a line in policies.def.
 * The texts about policies in tf-replicate, tf-run and the clock are made from the rows.
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
    const char *option; /* name of its number, as in "ssp,bound=3"; NULL: it has none */
    bool needs_option;  /* false: the number defaults to 0 */
    bool leaves_out;    /* the number is that of workers left out of each round */
    bool one_version;   /* variables do not change while a worker reads them for a step */
    const char *usage;  /* "ssp,bound=S"; several, separated by "; " */
    const char *doc;    /* a line, for --help */

    /* All are called with the clock locked. */

    /* Sets the members of the next round to PUSH_CHOSEN; false: there is no complete set. */
    bool (*choose)(struct clock *clock);
    /* Returns whether the member's waiting push, computed from its version, can never count. NULL:
     * none is late. */
    bool (*is_late)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether a worker whose last push is decided may go on. NULL: always. */
    bool (*may_go_on)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether a round, or a worker that waits in it, needs a push of this worker, which has
     * not left. NULL: never. */
    bool (*misses)(const struct clock *clock, const struct clock_member *member);
    /* Returns whether a worker may rest, before a checkpoint, after its last push: other workers,
     * which continue until they rest, must not need another of its pushes. NULL: always. */
    bool (*may_rest)(const struct clock *clock, const struct clock_member *member);
};

struct policy {
    const struct policy_kind *kind; /* NULL: none */
    int64_t number;
};

/* All kinds, in the order in which they are listed; ends with NULL. */
extern const struct policy_kind *const policy_kinds[];

/* Parses "sync", "sync,backup=2", "async" or "ssp,bound=3". ERR_DATA for others, naming all. */
int policy_parse(struct policy *policy, const char *text, struct error *err);
/* ERR_DATA if no push of this many workers would ever count under the policy. */
int policy_check_workers(const char *text, int64_t workers, struct error *err);
void policy_print(struct str *out, const struct policy *policy); /* the same text; "none" */

/* "sync; sync,backup=B; async; ssp,bound=S" */
void policy_print_usages(struct str *out);

#endif
