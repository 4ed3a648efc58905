/* SPDX-License-Identifier: Apache-2.0
 *
 * How a record describes the whole that a tensor is a slice of.
 */
#include "wire/slice.h"

static int last_axis(const struct variable_slice *slice)
{
    int last = SHAPE_RANK_MAX - 1;
    while (last > 0 && !slice->axes[last].size)
        last--;
    return last;
}

uint32_t slice_fields(const struct variable_slice *slice)
{
    return !slice->of ? 0 : last_axis(slice) ? 5 : 3;
}

void pack_slice(msgpack_packer *packer, const struct variable_slice *slice)
{
    if (!slice->of)
        return;
    int last = last_axis(slice);
    pack_key_text(packer, "slice_of", slice->of);
    pack_key_int(packer, "slice_rows", slice->rows);
    pack_key_int(packer, "slice_first", slice->first);
    if (!last)
        return;
    pack_key_array(packer, "slice_sizes", (size_t)last);
    for (int i = 1; i <= last; i++)
        msgpack_pack_int64(packer, slice->axes[i].size);
    pack_key_array(packer, "slice_firsts", (size_t)last);
    for (int i = 1; i <= last; i++)
        msgpack_pack_int64(packer, slice->axes[i].first);
}

static bool is_within(struct slice_axis axis, int64_t size)
{
    return axis.first >= 0 && size >= 0 && axis.first <= axis.size &&
           size <= axis.size - axis.first;
}

/* Axes that are not cut have size 0. */
static bool read_axes(const msgpack_object *map, const struct shape *shape,
                      struct variable_slice *slice)
{
    const msgpack_object *sizes = record_field(map, "slice_sizes"),
                         *firsts = record_field(map, "slice_firsts");
    if (!sizes && !firsts)
        return true;
    if (!sizes || !firsts || sizes->type != MSGPACK_OBJECT_ARRAY ||
        firsts->type != MSGPACK_OBJECT_ARRAY || sizes->via.array.size != firsts->via.array.size ||
        (int64_t)sizes->via.array.size > shape->rank - 1)
        return false;
    for (uint32_t i = 0; i < sizes->via.array.size; i++) {
        struct slice_axis *axis = &slice->axes[i + 1];
        if (!record_read_int(&sizes->via.array.ptr[i], &axis->size) ||
            !record_read_int(&firsts->via.array.ptr[i], &axis->first) ||
            (axis->size ? !is_within(*axis, shape->dims[i + 1]) : axis->first != 0))
            return false;
    }
    return true;
}

bool record_get_slice(const msgpack_object *map, struct arena *arena, const struct shape *shape,
                      struct variable_slice *slice)
{
    struct shape whole;
    *slice = (struct variable_slice){.of = NULL};
    if (!record_field(map, "slice_of"))
        return true;
    if (!record_get_text(map, "slice_of", arena, &slice->of))
        return false;
    size_t n = strlen(slice->of);
    if (n > LIMIT_NAME_BYTES || !str_is_printable(slice->of, n) || shape->rank <= 0 ||
        !record_get_int(map, "slice_rows", &slice->rows) ||
        !record_get_int(map, "slice_first", &slice->first) ||
        !is_within((struct slice_axis){slice->rows, slice->first}, shape->dims[0]) ||
        !read_axes(map, shape, slice))
        return false;
    variable_slice_box(slice, shape, &whole);
    int64_t count = shape_count(&whole);
    return count >= 0 && count <= TENSOR_BYTES_MAX;
}
