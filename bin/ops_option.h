/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --ops of every program that reads graphs: loads users' custom ops.
 */
#ifndef TF_BIN_OPS_OPTION_H
#define TF_BIN_OPS_OPTION_H

#include "cli/tool.h"

extern struct option_list ops_option;

#define OPS_OPTION_ROW                                                                             \
    {                                                                                              \
        0, "ops", OPTION_REPEAT, &ops_option, "FILE.so",                                           \
            "ops of your own; also all in TF_OPS_PATH, files and folders: tf_op.h"                 \
    }

/* Loads the objects named by the option and by TF_OPS_PATH. Call before ops_registry(). */
int ops_option_load(struct error *err);

/* Loads the objects first, then does what tool_main does. */
int ops_tool_main(const struct option_table *table,
                  int (*run)(struct tool *tool, int n_operands, char **operands, struct error *err),
                  int argc, char **argv);

#endif
