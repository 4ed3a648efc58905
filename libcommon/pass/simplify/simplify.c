/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/simplify/simplify.h"

#include <string.h>

const struct pass pass_list[] = {
    {"prune", "removed", pass_prune},
    {"arith", "simplified", pass_arith},
    {"fold", "folded", pass_fold},
    {"cse", "merged", pass_cse},
};
const int pass_count = sizeof pass_list / sizeof *pass_list;

const struct pass *pass_find(const char *name)
{
    for (int i = 0; i < pass_count; i++)
        if (!strcmp(pass_list[i].name, name))
            return &pass_list[i];
    return NULL;
}
