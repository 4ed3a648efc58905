/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/policy.h"

#include <inttypes.h>
#include <string.h>

#define POLICY(name) extern const struct policy_kind policy_##name;
#include "resource/policies.def"
#undef POLICY

const struct policy_kind *const policy_kinds[] = {
#define POLICY(name) &policy_##name,
#include "resource/policies.def"
#undef POLICY
    NULL,
};

static bool parse_as(const struct policy_kind *kind, const char *text, struct policy *policy)
{
    size_t n = strlen(kind->name), n_option = kind->option ? strlen(kind->option) : 0;
    *policy = (struct policy){kind, 0};
    if (strncmp(text, kind->name, n) != 0)
        return false;
    if (!text[n])
        return !kind->needs_option;
    text += n + 1;
    return text[-1] == ',' && kind->option && !strncmp(text, kind->option, n_option) &&
           text[n_option] == '=' && str_to_int64(text + n_option + 1, &policy->number) &&
           policy->number >= 0 && policy->number <= INT32_MAX;
}

int policy_parse(struct policy *policy, const char *text, struct error *err)
{
    struct str usages = STR_INIT;
    for (const struct policy_kind *const *kind = policy_kinds; *kind; kind++)
        if (parse_as(*kind, text, policy))
            return 0;
    *policy = (struct policy){0};
    policy_print_usages(&usages);
    error_set(err, ERR_DATA, "policy '%s' is none of %s", text, str_text(&usages));
    str_release(&usages);
    return err->code;
}

int policy_check_workers(const char *text, int64_t workers, struct error *err)
{
    struct policy policy;
    if (policy_parse(&policy, text, err))
        return err->code;
    if (!policy.kind->leaves_out || policy.number < workers)
        return 0;
    return error_set(err, ERR_DATA,
                     "%s: of %" PRId64 " worker%s none would count: %s is at most %" PRId64, text,
                     workers, workers == 1 ? "" : "s", policy.kind->option, workers - 1);
}

void policy_print(struct str *out, const struct policy *policy)
{
    str_append(out, policy->kind ? policy->kind->name : "none");
    if (policy->kind && policy->kind->option && (policy->kind->needs_option || policy->number))
        str_printf(out, ",%s=%" PRId64, policy->kind->option, policy->number);
}

void policy_print_usages(struct str *out)
{
    for (const struct policy_kind *const *kind = policy_kinds; *kind; kind++)
        str_printf(out, "%s%s", kind == policy_kinds ? "" : "; ", (*kind)->usage);
}
