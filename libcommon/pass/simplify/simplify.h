/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes of tf-opt: make a graph with fewer nodes that computes the same.
 */
#ifndef TF_PASS_SIMPLIFY_H
#define TF_PASS_SIMPLIFY_H

#include "pass/pass.h"

/* prune, arith, fold, cse, in the order in which they run. */
extern const struct pass pass_list[];
extern const int pass_count;
const struct pass *pass_find(const char *name); /* NULL: none */

pass_run pass_prune, pass_arith, pass_fold, pass_cse;

#endif
