/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that one process fills and another reads.
 */
#include "transport/value/shared_blocks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"

static void test_all_blocks_are_lent_once(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    bool seen[SHARED_BLOCKS] = {false};
    void *data;
    (void)state;
    assert_non_null(shared);
    for (int i = 0; i < SHARED_BLOCKS; i++) {
        int block = shared_blocks_grant(shared, SHARED_BLOCKS, 1, &data);
        assert_in_range(block, 0, SHARED_BLOCKS - 1);
        assert_false(seen[block]);
        seen[block] = true;
    }
    assert_int_equal(shared_blocks_grant(shared, SHARED_BLOCKS, 1, &data), -1);
    shared_blocks_free(shared);
}

static void test_only_the_first_blocks(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    void *data;
    (void)state;
    assert_int_equal(shared_blocks_grant(shared, 2, 1, &data), 0);
    assert_int_equal(shared_blocks_grant(shared, 2, 1, &data), 1);
    assert_int_equal(shared_blocks_grant(shared, 2, 1, &data), -1);
    assert_int_equal(shared_blocks_grant(shared, 3, 1, &data), 2);
    shared_blocks_free(shared);
}

static void test_every_reader_gives_back(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    struct shared_offer offer = shared_blocks_offer(shared);
    struct shared_view *view = shared_view_new(&offer);
    void *data, *again;
    (void)state;
    assert_non_null(view);
    int block = shared_blocks_grant(shared, SHARED_BLOCKS, 2, &data);
    memset(data, 7, SHARED_BLOCK_BYTES);
    const char *read = shared_view_block(view, (uint64_t)block);
    assert_int_equal(read[0] + read[SHARED_BLOCK_BYTES - 1], 14);
    shared_view_return(view, (uint64_t)block);
    assert_int_not_equal(shared_blocks_grant(shared, SHARED_BLOCKS, 1, &again), block);
    shared_view_return(view, (uint64_t)block);
    assert_int_equal(shared_blocks_grant(shared, SHARED_BLOCKS, 1, &again), block);
    assert_null(shared_view_block(view, SHARED_BLOCKS));
    shared_view_return(view, SHARED_BLOCKS); /* harmless */
    shared_view_free(view);
    shared_blocks_free(shared);
}

static void test_another_process_reads(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    struct shared_offer offer = shared_blocks_offer(shared);
    void *data;
    int status;
    (void)state;
    int block = shared_blocks_grant(shared, SHARED_BLOCKS, 1, &data);
    strcpy(data, "filled before the fork");
    pid_t child = fork();
    if (!child) {
        shared_blocks_free(shared);
        struct shared_view *view = shared_view_new(&offer);
        bool same =
            view && !strcmp(shared_view_block(view, (uint64_t)block), "filled before the fork");
        if (same)
            shared_view_return(view, (uint64_t)block);
        shared_view_free(view);
        _exit(!same);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(shared_blocks_grant(shared, SHARED_BLOCKS, 1, &data), block);
    shared_blocks_free(shared);
}

static size_t resident(void *data)
{
    unsigned char pages[SHARED_BLOCK_BYTES >> 12];
    size_t n = 0;
    assert_int_equal(mincore(data, SHARED_BLOCK_BYTES, pages), 0);
    for (size_t i = 0; i < SHARED_BLOCK_BYTES / (size_t)getpagesize(); i++)
        n += pages[i] & 1;
    return n;
}

/* Of two blocks, one of which is read. */
static void test_what_nobody_reads_goes_back(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    struct shared_offer offer = shared_blocks_offer(shared);
    struct shared_view *view = shared_view_new(&offer);
    void *data[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        int block = shared_blocks_grant(shared, SHARED_BLOCKS, 1, &data[i]);
        memset(data[i], 7, SHARED_BLOCK_BYTES);
        if (i)
            shared_view_return(view, (uint64_t)block);
    }
    shared_blocks_trim(shared);
    assert_int_equal(((const char *)data[0])[SHARED_BLOCK_BYTES - 1], 7);
    assert_int_equal(resident(data[1]), 0);
    assert_true(resident(data[0]) > 0);
    shared_view_return(view, 0);
    mem_relieve();
    assert_int_equal(resident(data[0]), 0);
    shared_view_free(view);
    shared_blocks_free(shared);
    mem_relieve(); /* they are not asked any more */
}

/* What is at that place is not what was offered. */
static void test_refused(void **state)
{
    struct shared_blocks *shared = shared_blocks_new();
    struct shared_offer good = shared_blocks_offer(shared), other = good;
    (void)state;
    other.number++;
    assert_null(shared_view_new(&other));
    other = good;
    other.fd = 0; /* a terminal, a file, nothing */
    assert_null(shared_view_new(&other));
    other.fd = -1;
    assert_null(shared_view_new(&other));
    other = good;
    other.pid = -1;
    assert_null(shared_view_new(&other));
    shared_blocks_free(shared);
    assert_null(shared_view_new(&good));
    shared_view_free(NULL);
    shared_blocks_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_blocks_are_lent_once),
        cmocka_unit_test(test_only_the_first_blocks),
        cmocka_unit_test(test_every_reader_gives_back),
        cmocka_unit_test(test_another_process_reads),
        cmocka_unit_test(test_what_nobody_reads_goes_back),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
