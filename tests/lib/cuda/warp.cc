/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of the lanes of a warp: who comes last gives each its result and wakes them.
 */
#include "lib/cuda/cuda_runtime.h"

namespace cuda_emulator
{
static int first_of_warp()
{
    return current / warp_size * warp_size;
}

static unsigned lanes_there()
{
    int n = block.n - first_of_warp();
    return n >= warp_size ? 0xffffffffu : (1u << n) - 1;
}

static emulated_warp *warp_of_current()
{
    return &block.warps[static_cast<size_t>(current / warp_size)];
}

/* Whether all lanes that wait are in the operation that is requested. */
static bool all_want(const emulated_warp *warp, const warp_request &request)
{
    return warp->alike && warp->line == request.line && warp->mask == request.mask &&
           warp->call == request.call;
}

static void join(emulated_warp *warp, const warp_request &request)
{
    if (!warp->waiting) {
        warp->alike = true;
        warp->call = request.call;
        warp->mask = request.mask;
        warp->line = request.line;
    }
    warp->alike = all_want(warp, request);
    warp->waiting |= 1u << current % warp_size;
}

/* Those lanes of the request that are there must want the same. */
static void check_others(const warp_request &request)
{
    int first = first_of_warp();
    unsigned there = request.mask & warp_of_current()->waiting;
    for (int lane = 0; lane < warp_size; lane++) {
        if (!(there >> lane & 1))
            continue;
        const emulated_thread *other = &block.threads[first + lane];
        if (other->line != request.line || other->mask != request.mask ||
            other->call != request.call)
            fail("calls %s of lanes %08x in line %d, thread %d %s of lanes %08x in line %d",
                 request.name, request.mask, request.line, first + lane, other->where, other->mask,
                 other->line);
    }
}

static bool is_complete(const warp_request &request)
{
    const emulated_warp *warp = warp_of_current();
    if (warp->waiting && !all_want(warp, request))
        check_others(request);
    return !(request.mask & ~(warp->waiting | 1u << current % warp_size));
}

static uint64_t ballot(unsigned mask)
{
    uint64_t lanes = 0;
    for (int lane = 0; lane < warp_size; lane++)
        if (mask >> lane & 1 && block.threads[first_of_warp() + lane].value)
            lanes |= uint64_t{1} << lane;
    return lanes;
}

static void finish(const warp_request &request)
{
    int first = first_of_warp();
    emulated_warp *warp = warp_of_current();
    uint64_t votes = request.call == WARP_BALLOT ? ballot(request.mask) : 0;
    if (request.call == WARP_SYNC && request.mask == lanes_there())
        warp->epoch++;
    warp->waiting &= ~request.mask;
    for (int lane = 0; lane < warp_size; lane++) {
        if (!(request.mask >> lane & 1))
            continue;
        emulated_thread *one = &block.threads[first + lane];
        one->result =
            request.call == WARP_SHUFFLE ? block.threads[first + one->source].value : votes;
    }
    for (int lane = 0; lane < warp_size; lane++)
        if (request.mask >> lane & 1)
            wake(first + lane);
}

uint64_t warp_operation(const warp_request &request)
{
    int lane = current % warp_size;
    emulated_thread *self = &block.threads[current];
    if (!(request.mask >> lane & 1))
        fail("calls %s of lanes %08x in line %d, which it is not one of", request.name,
             request.mask, request.line);
    if (request.call == WARP_SHUFFLE && !(request.mask >> request.source & 1))
        fail("calls %s of lanes %08x in line %d for the value of lane %d", request.name,
             request.mask, request.line, request.source);
    self->where = request.name;
    self->line = request.line;
    self->call = request.call;
    self->mask = request.mask;
    self->value = request.value;
    self->source = request.source;
    if (is_complete(request)) {
        finish(request);
        wait_as(THREAD_RUNS);
    } else {
        join(warp_of_current(), request);
        wait_as(THREAD_IN_WARP);
    }
    return self->result;
}
} // namespace cuda_emulator

/* The lane whose value is wanted; its own where that is none of its segment. */
int cuda_emulated_source(char direction, int by, int width)
{
    using namespace cuda_emulator;
    int lane = current % warp_size, segment = lane / width * width;
    int source = direction == '='   ? segment + (by & (width - 1))
                 : direction == '-' ? lane - by
                 : direction == '+' ? lane + by
                                    : lane ^ by;
    if (width < 1 || width > warp_size || (width & (width - 1)))
        fail("shuffles lanes in segments of %d", width);
    return source < segment || source >= segment + width ? lane : source;
}
