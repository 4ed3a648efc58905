/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory: the arrays of the block that runs, and who has used which element since which
 * barrier. A warp operation is no barrier for memory, but for __syncwarp of all lanes.
 */
#include "lib/cuda/emulator.h"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace cuda_emulator
{
const char dynamic_key = 0;

static std::vector<std::unique_ptr<shared_block>> arrays;
static size_t bytes_used;

void shared_reset()
{
    for (auto &array : arrays)
        free(array->data);
    arrays.clear();
    bytes_used = 0;
}

shared_block *shared_find(const void *key, const char *name, size_t n, size_t element_bytes)
{
    for (auto &array : arrays) {
        if (array->key != key)
            continue;
        if (array->element_bytes != element_bytes || array->n != n)
            fail("sees %s as %zu elements of %zu bytes, others as %zu of %zu", name, n,
                 element_bytes, array->n, array->element_bytes);
        return array.get();
    }
    bytes_used += n * element_bytes;
    if (bytes_used > shared_bytes_max)
        fail("has %zu bytes of shared memory with %s", bytes_used, name);
    arrays.emplace_back(new shared_block{key, name, n, element_bytes, nullptr, {}});
    shared_block *array = arrays.back().get();
    array->data = static_cast<char *>(malloc(n * element_bytes + 1));
    memset(array->data, 0xff, n * element_bytes);
    array->cells.assign(n, {-1, -1, 0, 0, 0, 0, 0});
    return array;
}

static uint32_t warp_epoch()
{
    return block.warps[static_cast<size_t>(current / warp_size)].epoch;
}

/* Whether an access of a thread came before what the current one does now. */
static bool is_before(int thread, uint32_t epoch, uint32_t in_warp)
{
    if (thread < 0 || thread == current || epoch < block.epoch)
        return true;
    return thread / warp_size == current / warp_size && in_warp < warp_epoch();
}

static shared_cell *cell_of(shared_block *array, ptrdiff_t index, const char *does)
{
    if (index < 0 || static_cast<size_t>(index) >= array->n)
        fail("%s %s[%td], which has %zu elements", does, array->name, index, array->n);
    return &array->cells[static_cast<size_t>(index)];
}

static void check_writer(const shared_block *array, ptrdiff_t index, const shared_cell *cell,
                         const char *does)
{
    if (!is_before(cell->writer, cell->write_epoch, cell->write_warp_epoch))
        fail("%s %s[%td], which thread %d writes, without a barrier between", does, array->name,
             index, cell->writer);
}

void *shared_read(shared_block *array, ptrdiff_t index)
{
    shared_cell *cell = cell_of(array, index, "reads");
    if (cell->writer < 0)
        fail("reads %s[%td], which nobody has written", array->name, index);
    check_writer(array, index, cell, "reads");
    bool fresh = cell->reader < 0 || cell->read_epoch < block.epoch;
    bool same_warp = !fresh && cell->reader / warp_size == current / warp_size;
    if (fresh || (cell->readers < 3 && same_warp && cell->read_warp_epoch < warp_epoch()))
        cell->readers = 1;
    else if (cell->reader != current && cell->readers < 3)
        cell->readers = same_warp ? 2 : 3;
    cell->reader = current;
    cell->read_epoch = block.epoch;
    cell->read_warp_epoch = warp_epoch();
    return array->data + static_cast<size_t>(index) * array->element_bytes;
}

void *shared_write(shared_block *array, ptrdiff_t index)
{
    shared_cell *cell = cell_of(array, index, "writes");
    check_writer(array, index, cell, "writes");
    bool alone = cell->readers < 2;
    bool past = cell->reader < 0 || cell->read_epoch < block.epoch ||
                (cell->readers == 2 && cell->reader / warp_size == current / warp_size &&
                 cell->read_warp_epoch < warp_epoch());
    if (!past && !(alone && is_before(cell->reader, cell->read_epoch, cell->read_warp_epoch)))
        fail("writes %s[%td], which thread %d reads, without a barrier between", array->name, index,
             cell->reader);
    cell->writer = current;
    cell->write_epoch = block.epoch;
    cell->write_warp_epoch = warp_epoch();
    return array->data + static_cast<size_t>(index) * array->element_bytes;
}
} // namespace cuda_emulator
