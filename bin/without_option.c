/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/without_option.h"

#include <string.h>

#include "exec/plan/fuse.h"

struct option_list without_option;

int without_option_read(unsigned *without, struct error *err)
{
    *without = 0;
    for (size_t i = 0; i < without_option.n; i++) {
        bool is_all = !strcmp(without_option.items[i], "all");
        int pass = is_all ? 0 : device_pass_find(without_option.items[i]);
        if (pass < 0)
            return error_set(err, ERR_USAGE,
                             "--without: there is no device pass '%s': pools, updates, sums, "
                             "products, chains, views or all",
                             without_option.items[i]);
        *without |= is_all ? DEVICE_PASSES_ALL : 1u << pass;
    }
    return 0;
}
