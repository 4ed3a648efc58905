/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Variable that is a part of a larger one says of that.
 */
#ifndef TF_GRAPH_SLICE_ATTR_H
#define TF_GRAPH_SLICE_ATTR_H

#define SLICE_OF "_slice_of"       /* string: the name of the whole */
#define SLICE_SHAPE "_slice_shape" /* shape of the whole */
/* int: which row of the whole its first one is; list(int): of a box, its first place along each
 * axis. */
#define SLICE_OFFSET "_slice_offset"

#endif
