/* SPDX-License-Identifier: Apache-2.0
 *
 * A record's description of a slice's whole comes back unchanged, and an impossible one is refused.
 */
#include <string.h>

#include "lib/unit.h"
#include "wire/slice.h"

#define BOXES 2000

/* Packs the slice, and reads it as a record's reader does. */
static bool comes_back(const struct variable_slice *slice, const struct shape *shape)
{
    struct str bytes = STR_INIT;
    struct arena arena = ARENA_INIT;
    struct variable_slice got;
    msgpack_packer packer;
    msgpack_unpacked unpacked;
    size_t end = 0;
    pack_begin(&packer, &bytes);
    msgpack_pack_map(&packer, slice_fields(slice));
    pack_slice(&packer, slice);
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, bytes.data, bytes.n, &end),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(end, bytes.n); /* as many fields as announced */
    bool ok = record_get_slice(&unpacked.data, &arena, shape, &got);
    if (ok)
        assert_true(variable_slice_equal(slice, &got));
    arena_release(&arena);
    msgpack_unpacked_destroy(&unpacked);
    str_release(&bytes);
    return ok;
}

/* Draws, along each axis, a part of [0, size) or all of it. */
static void draw(uint64_t *seed, struct variable_slice *slice, struct shape *shape)
{
    *slice = (struct variable_slice){.of = "layer/W"};
    *shape = (struct shape){.rank = 1 + (int)(unit_random(seed) % SHAPE_RANK_MAX)};
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = 1 + (int64_t)(unit_random(seed) % 6);
        int64_t first = (int64_t)(unit_random(seed) % (uint64_t)size);
        shape->dims[i] = 1 + (int64_t)(unit_random(seed) % (uint64_t)(size - first));
        if (!i)
            slice->rows = size, slice->first = first;
        else if (unit_random(seed) % 2)
            slice->axes[i] = (struct slice_axis){size, first};
    }
}

static void boxes_come_back(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int i = 0; i < BOXES; i++) {
        struct variable_slice slice;
        struct shape shape;
        draw(&seed, &slice, &shape);
        assert_true(comes_back(&slice, &shape));
    }
    assert_true(comes_back(&(struct variable_slice){.of = NULL}, &SHAPE_SCALAR));
}

/* A part must end within the whole along each axis. */
static void a_part_that_the_whole_has_not(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int i = 0; i < BOXES; i++) {
        struct variable_slice slice, wrong;
        struct shape shape;
        draw(&seed, &slice, &shape);
        int axis = (int)(unit_random(&seed) % (uint64_t)shape.rank);
        int64_t *size = axis ? &wrong.axes[axis].size : &wrong.rows;
        int64_t *first = axis ? &wrong.axes[axis].first : &wrong.first;
        wrong = slice;
        if (!axis || *size) {
            *first = *size - shape.dims[axis]; /* the last possible one */
            assert_true(comes_back(&wrong, &shape));
            (*first)++;
            assert_false(comes_back(&wrong, &shape));
            *first = -1;
            assert_false(comes_back(&wrong, &shape));
        } else if (axis < shape.rank - 1) { /* all along it: no other beginning is possible */
            *first = 1;
            wrong.axes[shape.rank - 1] = (struct slice_axis){shape.dims[shape.rank - 1], 0};
            assert_false(comes_back(&wrong, &shape));
        }
    }
}

static void wholes_that_cannot_be(void **state)
{
    struct variable_slice slice = {.of = "W", .rows = 4, .first = 0, .axes = {[2] = {8, 0}}};
    (void)state;
    assert_true(comes_back(&slice, &(struct shape){.rank = 3, .dims = {4, 2, 8}}));
    /* more axes than the part has, no axis at all, more than a tensor may hold, an empty name */
    assert_false(comes_back(&slice, &(struct shape){.rank = 2, .dims = {4, 2}}));
    assert_false(comes_back(&slice, &SHAPE_SCALAR));
    slice.rows = INT64_MAX;
    assert_false(comes_back(&slice, &(struct shape){.rank = 3, .dims = {4, 2, 8}}));
    slice = (struct variable_slice){.of = "W\n", .rows = 4};
    assert_false(comes_back(&slice, &(struct shape){.rank = 1, .dims = {4}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_come_back),
        cmocka_unit_test(a_part_that_the_whole_has_not),
        cmocka_unit_test(wholes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
