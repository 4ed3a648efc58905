/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that one process fills and another reads.
 */
#include "transport/value/lend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

static void test_all_blocks_are_lent_once(void **state)
{
    struct lender *lender = lender_new();
    bool seen[LEND_BLOCKS] = {false};
    void *data;
    (void)state;
    assert_non_null(lender);
    for (int i = 0; i < LEND_BLOCKS; i++) {
        int block = lender_lend(lender, 1, &data);
        assert_in_range(block, 0, LEND_BLOCKS - 1);
        assert_false(seen[block]);
        seen[block] = true;
    }
    assert_int_equal(lender_lend(lender, 1, &data), -1);
    lender_free(lender);
}

static void test_every_reader_gives_back(void **state)
{
    struct lender *lender = lender_new();
    struct lend_offer offer = lender_offer(lender);
    struct borrower *borrower = borrower_new(&offer);
    void *data, *again;
    (void)state;
    assert_non_null(borrower);
    int block = lender_lend(lender, 2, &data);
    memset(data, 7, LEND_BYTES);
    const char *read = borrower_block(borrower, (uint64_t)block);
    assert_int_equal(read[0] + read[LEND_BYTES - 1], 14);
    borrower_return(borrower, (uint64_t)block);
    assert_int_not_equal(lender_lend(lender, 1, &again), block);
    borrower_return(borrower, (uint64_t)block);
    assert_int_equal(lender_lend(lender, 1, &again), block);
    assert_null(borrower_block(borrower, LEND_BLOCKS));
    borrower_return(borrower, LEND_BLOCKS); /* harmless */
    borrower_free(borrower);
    lender_free(lender);
}

static void test_another_process_reads(void **state)
{
    struct lender *lender = lender_new();
    struct lend_offer offer = lender_offer(lender);
    void *data;
    int status;
    (void)state;
    int block = lender_lend(lender, 1, &data);
    strcpy(data, "filled before the fork");
    pid_t child = fork();
    if (!child) {
        lender_free(lender);
        struct borrower *borrower = borrower_new(&offer);
        bool same = borrower &&
                    !strcmp(borrower_block(borrower, (uint64_t)block), "filled before the fork");
        if (same)
            borrower_return(borrower, (uint64_t)block);
        borrower_free(borrower);
        _exit(!same);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(lender_lend(lender, 1, &data), block);
    lender_free(lender);
}

/* What is at that place is not what was offered. */
static void test_refused(void **state)
{
    struct lender *lender = lender_new();
    struct lend_offer good = lender_offer(lender), other = good;
    (void)state;
    other.number++;
    assert_null(borrower_new(&other));
    other = good;
    other.fd = 0; /* a terminal, a file, nothing */
    assert_null(borrower_new(&other));
    other.fd = -1;
    assert_null(borrower_new(&other));
    other = good;
    other.pid = -1;
    assert_null(borrower_new(&other));
    lender_free(lender);
    assert_null(borrower_new(&good));
    borrower_free(NULL);
    lender_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_blocks_are_lent_once),
        cmocka_unit_test(test_every_reader_gives_back),
        cmocka_unit_test(test_another_process_reads),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
