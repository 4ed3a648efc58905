/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests, one by one, many at once and by threads, against the examples of FIPS 180-4 and OpenSSL.
 */
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/store/digest_lanes.h"
#include "lib/unit.h"

#define BYTES 200000

static uint8_t *bytes;

static int group_setup(void **state)
{
    uint64_t random = 5;
    (void)state;
    bytes = mem_alloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)unit_random(&random);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    mem_free(bytes);
    return 0;
}

static void must_be_right(const struct digest_item *item)
{
    struct digest wanted;
    unsigned n;
    assert_true(EVP_Digest(item->data, item->n, wanted.bytes, &n, EVP_sha256(), NULL));
    assert_memory_equal(item->digest.bytes, wanted.bytes, n);
}

static void the_examples_of_the_standard(void **state)
{
    static const char *const texts[] = {
        "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", ""};
    static const char *const wanted[] = {
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
    (void)state;
    for (int t = 0; t < 3; t++) {
        struct digest_item items[DIGEST_GROUP];
        char hex[2 * DIGEST_BYTES + 1];
        for (int i = 0; i < DIGEST_GROUP; i++)
            items[i] = (struct digest_item){.data = texts[t], .n = strlen(texts[t])};
        digest_many(items, DIGEST_GROUP);
        for (int i = 0; i < DIGEST_GROUP; i++) {
            digest_hex(&items[i].digest, hex);
            assert_string_equal(hex, wanted[t]);
        }
        struct digest one = digest_of(texts[t], strlen(texts[t]));
        assert_true(digest_equal(&one, &items[0].digest));
    }
}

/* The padding depends on the length of the last block: all of its lengths, after some whole blocks.
 */
static void all_lengths_of_the_last_block(void **state)
{
    struct digest_item items[DIGEST_GROUP];
    (void)state;
    for (size_t n = 0; n < 260; n++) {
        for (size_t i = 0; i < DIGEST_GROUP; i++)
            items[i] = (struct digest_item){.data = bytes + 1000 * i + n, .n = n};
        digest_many(items, DIGEST_GROUP);
        for (size_t i = 0; i < DIGEST_GROUP; i++)
            must_be_right(&items[i]);
    }
}

/* Any number of inputs, with sizes in any order. */
static void any_number_of_any_size(void **state)
{
    struct digest_item items[64];
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        size_t m = unit_random(&random) % 64, n = 0;
        for (size_t i = 0; i < m; i++) {
            if (unit_random(&random) % 16 == 0)
                n = unit_random(&random) % 5000;
            items[i] = (struct digest_item){.data = bytes + unit_random(&random) % 100000, .n = n};
        }
        digest_many(items, m);
        for (size_t i = 0; i < m; i++)
            must_be_right(&items[i]);
    }
}

/* Digests are asked for in order, with gaps, and not to the end. */
static void threads_give_what_is_asked_for(void **state)
{
    enum { MANY = 1000 };
    struct digest_item *items = mem_array(MANY, sizeof *items);
    (void)state;
    for (int threads = 0; threads < 6; threads++) {
        size_t stride = threads % 2 ? 1 : 37, n = threads == 5 ? MANY / 3 : MANY;
        for (size_t i = 0; i < MANY; i++)
            items[i] = (struct digest_item){.data = bytes + 100 * i, .n = i % 300 ? 3000 : 100};
        struct digest_pool *pool = digest_pool_new(items, MANY, threads);
        for (size_t i = 0; i < n; i += stride) {
            digest_pool_wait(pool, i);
            must_be_right(&items[i]);
        }
        digest_pool_free(pool);
    }
    digest_pool_free(digest_pool_new(items, 0, 2));
    mem_free(items);
}

/* When a save is held back, the threads must not hash all of it at once. */
static void threads_do_not_run_far_ahead(void **state)
{
    enum { MANY = 4000 };
    static const struct digest none;
    struct digest_item *items = mem_array(MANY, sizeof *items);
    size_t made = 0;
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        items[i] = (struct digest_item){.data = bytes, .n = 10};
    struct digest_pool *pool = digest_pool_new(items, MANY, 2);
    digest_pool_wait(pool, 99);
    usleep(20000);
    digest_pool_free(pool);
    for (size_t i = 0; i < MANY; i++)
        made += !digest_equal(&items[i].digest, &none);
    assert_true(made >= 100 && made < 400);
    mem_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard),
        cmocka_unit_test(all_lengths_of_the_last_block),
        cmocka_unit_test(any_number_of_any_size),
        cmocka_unit_test(threads_give_what_is_asked_for),
        cmocka_unit_test(threads_do_not_run_far_ahead),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
