/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial model parallelism: one graph whose images are cut along their height and width into a
 * grid of tiles, each computed on a device of its own (Coates et al., Deep learning with COTS HPC
 * systems, ICML 2013). One driver runs all of it.
 *
 *   - A tensor of images, and what ops with windows make of it, is cut into tiles, one a cell: of
 *     `size` rows (columns) in n parts, part i begins with number i * size / n and ends before
 *     number (i + 1) * size / n.
 *   - An op with windows needs the region that its windows see: the cell's own tile and the halo,
 *     which the neighbours send from theirs. Outside of the image is padding.
 *   - In the backward pass the gradients of a halo are sent back, and a tile is the sum of all that
 *     it gets, in the order of the cells.
 *   - The graph has filters that all windows share once, and sends them to the cells. Their
 *     gradient is the sum of the cells', in order. Where each window has its own filter
 *     (LocallyConnected2D), the filters are cut as the images are, with their slots, and neither
 *     they nor their gradients are sent.
 *   - Element-wise ops stay in their tile. A reduction of height and width reduces each tile, and
 *     then the results. For any other op the tiles are put together, and one device computes it.
 *
 * The rules of ops say which is which (graph/index_rule.h). The part of a variable NAME is
 * NAME/part_K, with attributes as of pass/slice, where the offset is a list, one number an axis:
 *
 *     _slice_of "NAME", _slice_shape [8,8,3,3,1,4], _slice_offset [4,0,0,0,0,0]
 */
#ifndef TF_PASS_GRID_H
#define TF_PASS_GRID_H

#include "pass/pass.h"

#define GRID_CELLS_MAX 1024

struct grid_options {
    int rows, columns;  /* of cells; cell k is at row k / columns, column k % columns */
    const char *device; /* of the cells, with a '*' for the cell's number; NULL:
                         * /job:worker/task:*. What is there once is with cell 0, unless the graph
                         * says another device. */
    const struct pass_options *pass; /* told of each node that is cut, and of what is put together;
                                      * NULL: nobody */
};

/* "2x3": two rows of three cells. False: the text is no grid of 2 to GRID_CELLS_MAX cells. */
bool grid_parse(struct grid_options *options, const char *text);

/* The new graph, which borrows from `from`. ERR_USAGE: a device without a '*'; ERR_DATA: nothing
 * can be cut into that grid, or naming a variable that cannot. */
int grid_graph(const struct graph *from, const struct grid_options *options, struct graph **to,
               struct error *err);

#endif
