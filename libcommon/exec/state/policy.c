/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/policy.h"

#include <inttypes.h>
#include <string.h>

static bool read_parameter(const char *text, const char *name, int64_t *value)
{
    size_t n = strlen(name);
    return !strncmp(text, name, n) && text[n] == '=' && str_to_int64(text + n + 1, value) &&
           *value >= 0 && *value <= INT32_MAX;
}

int policy_parse(struct policy *policy, const char *text, struct error *err)
{
    *policy = (struct policy){0};
    if (!strcmp(text, "sync"))
        policy->kind = POLICY_SYNC;
    else if (!strncmp(text, "sync,", 5) && read_parameter(text + 5, "backup", &policy->backup))
        policy->kind = POLICY_SYNC;
    else if (!strcmp(text, "async"))
        policy->kind = POLICY_ASYNC;
    else if (!strncmp(text, "ssp,", 4) && read_parameter(text + 4, "bound", &policy->bound))
        policy->kind = POLICY_SSP;
    else
        return error_set(err, ERR_DATA,
                         "policy '%s' is none of sync; sync,backup=B; async; ssp,bound=S", text);
    return 0;
}

void policy_print(struct str *out, const struct policy *policy)
{
    static const char *const names[] = {"none", "sync", "async", "ssp"};
    str_append(out, names[policy->kind]);
    if (policy->kind == POLICY_SYNC && policy->backup)
        str_printf(out, ",backup=%" PRId64, policy->backup);
    if (policy->kind == POLICY_SSP)
        str_printf(out, ",bound=%" PRId64, policy->bound);
}
