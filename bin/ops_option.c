/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/ops_option.h"

#include <stdlib.h>

#include "ops/user/user.h"

struct option_list ops_option;

int ops_option_load(struct error *err)
{
    const char *path = getenv("TF_OPS_PATH");
    int code = 0;
    for (size_t i = 0; !code && i < ops_option.n; i++)
        if (user_ops_load(ops_option.items[i], err))
            code = error_prefix(err, "--ops ");
    if (!code && path && user_ops_load_path(path, err))
        code = error_prefix(err, "TF_OPS_PATH: ");
    return code;
}

static int (*run_after)(struct tool *tool, int n, char **operands, struct error *err);

static int load_and_run(struct tool *tool, int n, char **operands, struct error *err)
{
    int code = ops_option_load(err);
    return code ? code : run_after(tool, n, operands, err);
}

int ops_tool_main(const struct option_table *table,
                  int (*run)(struct tool *tool, int n_operands, char **operands, struct error *err),
                  int argc, char **argv)
{
    run_after = run;
    return tool_main(table, load_and_run, argc, argv);
}
