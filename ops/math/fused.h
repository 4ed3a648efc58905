/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the declaration and kernels of FusedElementwise.
 */
#ifndef TF_OPS_MATH_FUSED_H
#define TF_OPS_MATH_FUSED_H

#define FUSED_OPERANDS 2 /* per op; -1: it has one operand less */

#endif
