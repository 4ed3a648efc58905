/* SPDX-License-Identifier: Apache-2.0
 *
 * Spatial model parallelism: one graph whose images are cut along their height and width into a
 * grid of tiles, each computed on a device of its own (Coates et al., Deep learning with COTS HPC
 * systems, ICML 2013). One driver runs all of it.
 *
 *   - A tensor of images, or one that ops with windows make of images, is there once for each cell
 *     of the grid: of `size` rows (columns) in n parts, part i begins with number i * size / n and
 *     ends before number (i + 1) * size / n.
 *   - What a cell computes of its windows needs the region that they look at: its own tile and, of
 *     its neighbours' tiles, the halo, which they send. Padding is what is outside of the image.
 *   - What windows give their regions in the backward pass is sent back, and a tile is the sum of
 *     what it gets, in the order of the cells.
 *   - Filters that all windows share are there once and sent to the cells; their gradient is the
 *     sum of the cells', in order. A filter for each window (LocallyConnected2D) is with its
 *     window: variables are cut as the images are, with their slots, and neither they nor their
 *     gradients are sent.
 *   - What goes element by element stays in its tile. What reduces height and width is reduced in
 *     each tile, and then once. Anything else has its inputs put together, and is there once.
 *
 * Which these are ops declare (graph/op.h: tiles, rows, reduction). The part of a variable NAME is
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
