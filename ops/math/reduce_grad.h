/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_MATH_REDUCE_GRAD_H
#define TF_OPS_MATH_REDUCE_GRAD_H

#include "pass/gradient/grad.h"

void reduce_sum_gradient(struct grad *g);
void reduce_mean_gradient(struct grad *g);
void reduce_prod_gradient(struct grad *g);
void reduce_extremum_gradient(struct grad *g); /* Max and Min */

#endif
