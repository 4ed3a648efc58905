/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by declarations and kernels of FusedMatMul and FusedConv2D.
 */
#ifndef TF_OPS_NN_FUSED_PRODUCT_H
#define TF_OPS_NN_FUSED_PRODUCT_H

#define FUSED_PRODUCT_INPUTS 2 /* of the product; then a bias for each BiasAdd */

#endif
