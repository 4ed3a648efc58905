/* SPDX-License-Identifier: Apache-2.0
 *
 * Reasons why a declaration allows less than TensorFlow's, for its `detail`.
 */
#ifndef TF_OPS_LACKING_H
#define TF_OPS_LACKING_H

#define NO_COMPLEX "Not of complex numbers, which are stored and moved, but not computed with."
#define NO_STRINGS "Not of strings or resources, which only ops that hand whole tensors on take."
#define NO_COMPLEX_OR_STRINGS                                                                      \
    "Not of complex numbers, strings or resources, which are stored and handed on only."

#endif
