/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens before what on the TEST device. Each queue, and the host, has a clock of the work
 * that it knows to be over (C. Fidge, "Timestamps in Message-Passing Systems That Preserve the
 * Partial Ordering", 1988). Each range of bytes has a list of uses; a new use must know all those
 * to be over with which it conflicts.
 */
#include <string.h>

#include "lib/device_test_internal.h"

void test_clock_join(struct test_clock *clock, const struct test_clock *other)
{
    for (int i = 0; i <= TEST_LINES; i++)
        if (clock->at[i] < other->at[i])
            clock->at[i] = other->at[i];
}

/* ---- blocks ---- */

/* Finds the first block that ends behind the address. */
static size_t find_block(const struct test_order *order, uintptr_t at)
{
    size_t low = 0, high = order->blocks.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (order->blocks.items[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void test_order_alloc(struct test_order *order, const void *data, size_t bytes)
{
    uintptr_t begin = (uintptr_t)data;
    size_t at = find_block(order, begin);
    struct test_block block = {.begin = begin, .end = begin + (bytes ? bytes : 1)};
    vec_push(&order->blocks, block);
    memmove(order->blocks.items + at + 1, order->blocks.items + at,
            (order->blocks.n - 1 - at) * sizeof block);
    order->blocks.items[at] = block;
    order->bytes += bytes;
}

static struct test_block *block_of(const struct test_order *order, uintptr_t begin, uintptr_t end)
{
    size_t at = find_block(order, begin);
    struct test_block *block = order->blocks.items + at;
    return at < order->blocks.n && block->begin <= begin && end <= block->end ? block : NULL;
}

/* ---- uses ---- */

static const char *name_of(int line)
{
    static const char *const names[] = {"compute", "in", "out"};
    return line < N_QUEUES ? names[line] : "another";
}

static int check(const struct test_order *order, const struct test_block *block,
                 const struct test_use *use, struct error *err)
{
    const struct test_clock *known = &order->clocks[use->line];
    for (size_t i = 0; i < block->uses.n; i++) {
        const struct test_use *past = &block->uses.items[i];
        if (past->end <= use->begin || use->end <= past->begin || (!past->write && !use->write) ||
            past->tick <= known->at[past->line])
            continue;
        return error_set(err, ERR_INTERNAL,
                         "the TEST device: a %s of %zu bytes in queue '%s' does not wait for a %s "
                         "of them in queue '%s'",
                         use->write ? "write" : "read", (size_t)(use->end - use->begin),
                         name_of(use->line), past->write ? "write" : "read", name_of(past->line));
    }
    return 0;
}

/* Returns whether a later use that knows of `use` also knows of `past`, which can be forgotten. */
static bool stands_for(const struct test_use *use, const struct test_use *past)
{
    bool covers = use->begin <= past->begin && past->end <= use->end;
    return covers && (use->write || (!past->write && past->line == use->line));
}

static void add(struct test_block *block, const struct test_use *use)
{
    size_t n = 0;
    for (size_t i = 0; i < block->uses.n; i++)
        if (!stands_for(use, &block->uses.items[i]))
            block->uses.items[n++] = block->uses.items[i];
    block->uses.n = n;
    vec_push(&block->uses, *use);
}

int test_order_use(struct test_order *order, int line, const struct test_access *accesses, int n,
                   struct error *err)
{
    struct test_clock *clock = &order->clocks[line];
    test_clock_join(clock, &order->clocks[TEST_HOST]);
    uint64_t tick = ++clock->at[line];
    for (int i = 0; i < n; i++) {
        struct test_use use = {.begin = (uintptr_t)accesses[i].data,
                               .end = (uintptr_t)accesses[i].data + accesses[i].bytes,
                               .line = line,
                               .tick = tick,
                               .write = accesses[i].write};
        if (use.begin == use.end)
            continue;
        struct test_block *block = block_of(order, use.begin, use.end);
        if (!block)
            return error_set(err, ERR_INTERNAL,
                             "the TEST device: %zu bytes are not, or no longer, its memory",
                             accesses[i].bytes);
        if (check(order, block, &use, err))
            return err->code;
        add(block, &use);
    }
    return 0;
}

int test_order_free(struct test_order *order, int line, const void *data, struct error *err)
{
    size_t at = find_block(order, (uintptr_t)data);
    struct test_block *block = order->blocks.items + at;
    size_t bytes = (size_t)(block->end - block->begin);
    struct test_access all = {.data = data, .bytes = bytes, .write = true};
    int code = test_order_use(order, line, &all, 1, err);
    order->bytes -= bytes;
    vec_release(&block->uses);
    memmove(block, block + 1, (order->blocks.n - at - 1) * sizeof *block);
    order->blocks.n--;
    return code;
}

void test_order_release(struct test_order *order)
{
    for (size_t i = 0; i < order->blocks.n; i++)
        vec_release(&order->blocks.items[i].uses);
    vec_release(&order->blocks);
}
