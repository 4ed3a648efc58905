/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_REDUCE_GRAD_H
#define TF_OPS_MATH_REDUCE_GRAD_H

#include "pass/gradient/grad.h"

int reduce_sum_gradient(struct grad *g);
int reduce_mean_gradient(struct grad *g);
int reduce_prod_gradient(struct grad *g);
int reduce_extremum_gradient(struct grad *g); /* Max and Min */

#endif
