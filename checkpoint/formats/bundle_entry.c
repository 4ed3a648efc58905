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

uint64_t wire_field(struct wire_bytes *in, uint64_t *number, struct wire_bytes *bytes)
{
    uint64_t tag = wire_varint(in);
    switch (tag & 7) {
    case WIRE_VARINT:
        *number = wire_varint(in);
        break;
    case WIRE_FIXED64:
        wire_take(in, 8);
        break;
    case WIRE_BYTES:
        *bytes = wire_take(in, wire_varint(in));
        break;
    case WIRE_FIXED32:
        *number = wire_fixed32(in);
        break;
    default:
        in->bad = true;
    }
    return tag >> 3;
}

/* ---- messages ---- */

static bool parse_shape(struct wire_bytes in, struct shape *shape)
{
    *shape = (struct shape){.rank = 0};
    while (in.p < in.end && !in.bad) {
        uint64_t number = 0;
        struct wire_bytes dim = {0};
        if (wire_field(&in, &number, &dim) != SHAPE_DIM)
            continue;
        if (shape->rank == SHAPE_RANK_MAX)
            return false;
        uint64_t size = 0;
        while (dim.p < dim.end && !dim.bad) {
            struct wire_bytes ignored;
            uint64_t value = 0;
            if (wire_field(&dim, &value, &ignored) == DIM_SIZE)
                size = value;
        }
        if (dim.bad || size > INT64_MAX)
            return false;
        shape->dims[shape->rank++] = (int64_t)size;
    }
    return !in.bad;
}

bool bundle_parse_entry(struct wire_bytes in, struct bundle_entry *e)
{
    *e = (struct bundle_entry){.message = in};
    while (in.p < in.end && !in.bad) {
        uint64_t number = 0;
        struct wire_bytes bytes = {0};
        switch (wire_field(&in, &number, &bytes)) {
        case ENTRY_TYPE:
            e->type = number;
            break;
        case ENTRY_SHAPE:
            if (!parse_shape(bytes, &e->shape))
                return false;
            break;
        case ENTRY_SHARD:
            e->shard = number;
            break;
        case ENTRY_OFFSET:
            e->offset = number;
            break;
        case ENTRY_SIZE:
            e->size = number;
            break;
        case ENTRY_CRC:
            e->crc = (uint32_t)number;
            break;
        case ENTRY_SLICES:
            e->has_slices = true;
            break;
        }
    }
    return !in.bad;
}
