/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of a Variable that is a slice of a larger one.
 */
#ifndef TF_GRAPH_SLICE_ATTR_H
#define TF_GRAPH_SLICE_ATTR_H

#define SLICE_OF "_slice_of"       /* string: the name of the whole */
#define SLICE_SHAPE "_slice_shape" /* shape of the whole */
/* int: the slice's first row in the whole; list(int): for a box, its offset along each axis. */
#define SLICE_OFFSET "_slice_offset"

#endif
