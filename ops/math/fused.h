/* SPDX-License-Identifier: Apache-2.0
 *
 * How FusedElementwise writes down what it computes.
 */
#ifndef TF_OPS_MATH_FUSED_H
#define TF_OPS_MATH_FUSED_H

#define FUSED_OPERANDS 2 /* of each op; -1: it has one less */

#endif
