/* SPDX-License-Identifier: Apache-2.0
 *
 * header_unpack compared with msgpack-c's own unpacker: random maps of every kind of object in
 * every encoding.
 */
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "lib/unit.h"
#include "wire/header.h"

static void put_int(struct str *out, uint64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--)
        str_append_char(out, (char)(value >> (8 * i)));
}

/* Puts a tag, a length in 1 << size bytes, and as many random bytes. */
static void put_bytes(struct str *out, int tag, int size, uint64_t *seed)
{
    size_t n = unit_random(seed) % 70;
    str_append_char(out, (char)tag);
    put_int(out, n, 1 << size);
    for (size_t i = 0; i < n + (tag >= 0xc7 && tag <= 0xc9); i++)
        str_append_char(out, (char)unit_random(seed));
}

static void put_object(struct str *out, int depth, uint64_t *seed);

static void put_elements(struct str *out, size_t n, int depth, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        put_object(out, depth + 1, seed);
}

static void put_container(struct str *out, int tag, int depth, uint64_t *seed)
{
    size_t n = unit_random(seed) % 15;
    bool map = tag == 0x80 || tag >= 0xde;
    if (tag < 0xc0) {
        str_append_char(out, (char)(tag | (int)n));
    } else {
        str_append_char(out, (char)tag);
        put_int(out, n, tag & 1 ? 4 : 2);
    }
    put_elements(out, map ? 2 * n : n, depth, seed);
}

static void put_float(struct str *out, uint64_t *seed)
{
    double value = (double)(int64_t)unit_random(seed) * 1e-7;
    float single = (float)value;
    uint64_t bits;
    uint32_t low;
    memcpy(&bits, &value, 8);
    memcpy(&low, &single, 4);
    bool is_double = unit_random(seed) % 2;
    str_append_char(out, (char)(is_double ? 0xcb : 0xca));
    put_int(out, is_double ? bits : low, is_double ? 8 : 4);
}

static void put_fixed(struct str *out, int tag, size_t n, uint64_t *seed)
{
    str_append_char(out, (char)tag);
    for (size_t i = 0; i < n; i++)
        str_append_char(out, (char)unit_random(seed));
}

static void put_tagged(struct str *out, int tag, int depth, uint64_t *seed)
{
    if (tag <= 0xc3)
        str_append_char(out, (char)(tag == 0xc1 ? 0xc0 : tag));
    else if (tag <= 0xc6)
        put_bytes(out, tag, tag - 0xc4, seed);
    else if (tag <= 0xc9)
        put_bytes(out, tag, tag - 0xc7, seed);
    else if (tag <= 0xcb)
        put_float(out, seed);
    else if (tag <= 0xd3)
        put_fixed(out, tag, (size_t)1 << (tag & 3), seed);
    else if (tag <= 0xd8)
        put_fixed(out, tag, 1 + ((size_t)1 << (tag - 0xd4)), seed);
    else if (tag <= 0xdb)
        put_bytes(out, tag, tag - 0xd9, seed);
    else
        put_container(out, tag, depth, seed);
}

static void put_object(struct str *out, int depth, uint64_t *seed)
{
    int tag = (int)(unit_random(seed) % 256);
    bool container = (tag >= 0x80 && tag < 0xa0) || (tag >= 0xdc && tag < 0xe0);
    if (container && depth > 6)
        tag = 0x11;
    if (tag < 0x80 || tag >= 0xe0)
        str_append_char(out, (char)tag);
    else if (tag < 0xa0)
        put_container(out, tag & 0xf0, depth, seed);
    else if (tag < 0xc0)
        put_fixed(out, tag, (size_t)(tag & 0x1f), seed);
    else
        put_tagged(out, tag, depth, seed);
}

static void test_random_maps(void **state)
{
    (void)state;
    uint64_t seed = 3;
    size_t most = 0;
    for (int round = 0; round < 20000; round++) {
        struct error err = ERROR_INIT;
        struct str bytes = STR_INIT;
        size_t n_objects, offset = 0;
        msgpack_unpacked wanted;
        str_append_char(&bytes, (char)0x84);
        put_elements(&bytes, 8, 1, &seed);
        const uint8_t *data = (const uint8_t *)bytes.data;
        if (header_measure(data, bytes.n, &n_objects, &err))
            fail_msg("round %d: %s", round, err.text);
        msgpack_object *objects = mem_array(n_objects, sizeof *objects);
        header_unpack(data, objects);
        msgpack_unpacked_init(&wanted);
        assert_int_equal(msgpack_unpack_next(&wanted, bytes.data, bytes.n, &offset),
                         MSGPACK_UNPACK_SUCCESS);
        if (!msgpack_object_equal(objects[0], wanted.data))
            fail_msg("round %d: the objects differ", round);
        most = n_objects > most ? n_objects : most;
        msgpack_unpacked_destroy(&wanted);
        mem_free(objects);
        str_release(&bytes);
    }
    assert_true(most > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_maps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
