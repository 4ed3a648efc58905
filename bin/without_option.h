/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --without of every program that makes plans: device passes to leave out.
 */
#ifndef TF_BIN_WITHOUT_OPTION_H
#define TF_BIN_WITHOUT_OPTION_H

#include "cli/tool.h"

extern struct option_list without_option;

#define WITHOUT_OPTION_ROW                                                                         \
    {                                                                                              \
        0, "without", OPTION_LIST, &without_option, "PASS,...",                                    \
            "device passes that plans leave out: pools, updates, sums, products, chains, views, "  \
            "or all"                                                                               \
    }

/* Parses the option into the form of plan_options.without. ERR_USAGE. */
int without_option_read(unsigned *without, struct error *err);

#endif
