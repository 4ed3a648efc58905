/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol buffers, as far as a bundle uses them.
 */
#include "checkpoint/formats/bundle_private.h"
#include "checkpoint/store/pages_private.h"

uint64_t wire_varint(struct wire_bytes *in)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && in->p < in->end; shift += 7) {
        uint8_t byte = *in->p++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    in->bad = true;
    return 0;
}

struct wire_bytes wire_take(struct wire_bytes *in, uint64_t n)
{
    struct wire_bytes part = {in->p, in->p, false};
    if (in->bad || n > (uint64_t)(in->end - in->p)) {
        in->bad = true;
        return part;
    }
    part.end = in->p += n;
    return part;
}

uint32_t wire_fixed32(struct wire_bytes *in)
{
    struct wire_bytes part = wire_take(in, 4);
    return in->bad ? 0 : page_u32(part.p);
}

bool wire_next(struct wire_bytes *in, struct wire_field *field)
{
    *field = (struct wire_field){0};
    if (in->p >= in->end || in->bad)
        return false;
    uint64_t tag = wire_varint(in);
    field->tag = tag >> 3;
    switch (tag & 7) {
    case WIRE_VARINT:
        field->number = wire_varint(in);
        break;
    case WIRE_FIXED64:
        wire_take(in, 8);
        break;
    case WIRE_BYTES:
        field->bytes = wire_take(in, wire_varint(in));
        break;
    case WIRE_FIXED32:
        field->number = wire_fixed32(in);
        break;
    default:
        in->bad = true;
    }
    return !in->bad;
}

/* ---- messages ---- */

static bool parse_shape(struct wire_bytes in, struct shape *shape)
{
    *shape = (struct shape){.rank = 0};
    for (struct wire_field dim, f; wire_next(&in, &dim);) {
        uint64_t size = 0;
        if (dim.tag != SHAPE_DIM)
            continue;
        while (wire_next(&dim.bytes, &f))
            size = f.tag == DIM_SIZE ? f.number : size;
        if (shape->rank == SHAPE_RANK_MAX || dim.bytes.bad || size > INT64_MAX)
            return false;
        shape->dims[shape->rank++] = (int64_t)size;
    }
    return !in.bad;
}

bool bundle_parse_entry(struct wire_bytes in, struct bundle_entry *e)
{
    uint64_t *const numbers[] = {[ENTRY_TYPE] = &e->type,
                                 [ENTRY_SHARD] = &e->shard,
                                 [ENTRY_OFFSET] = &e->offset,
                                 [ENTRY_SIZE] = &e->size};
    *e = (struct bundle_entry){.message = in};
    for (struct wire_field f; wire_next(&in, &f);) {
        if (f.tag < sizeof numbers / sizeof *numbers && numbers[f.tag])
            *numbers[f.tag] = f.number;
        else if (f.tag == ENTRY_CRC)
            e->crc = (uint32_t)f.number;
        else if (f.tag == ENTRY_SHAPE && !parse_shape(f.bytes, &e->shape))
            return false;
        e->has_slices |= f.tag == ENTRY_SLICES;
    }
    return !in.bad;
}
