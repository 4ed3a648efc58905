/* SPDX-License-Identifier: Apache-2.0
 *
 * The consistency policies by name. What they mean is said in exec/state/aggregate.h; ps/policy.c
 * decides by them.
 */
#ifndef TF_EXEC_POLICY_H
#define TF_EXEC_POLICY_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum policy_kind { POLICY_NONE, POLICY_SYNC, POLICY_ASYNC, POLICY_SSP };

struct policy {
    enum policy_kind kind;
    int64_t backup, bound;
};

/* "sync", "sync,backup=2", "async" or "ssp,bound=3". ERR_DATA for anything else. */
int policy_parse(struct policy *policy, const char *text, struct error *err);
void policy_print(struct str *out, const struct policy *policy); /* the same text; "none" */

#endif
