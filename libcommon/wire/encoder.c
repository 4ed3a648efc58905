/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/encoder.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/header.h"
#include "wire/internal.h"

#define MAP_AT HEADER_PREFIX_BYTES /* a map with a two-byte count, filled in at the end */
#define KIND_FIELDS 2              /* kind and sum, in every header */
#define BIN_TAG_BYTES 5
#define SHORT_TEXT 32 /* bytes whose length fits into msgpack's tag */

static int append(void *header, const char *bytes, size_t n)
{
    str_append_bytes(header, bytes, n);
    return 0;
}

static void store_int(uint8_t *p, uint64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--, value >>= 8)
        p[i] = (uint8_t)value;
}

/* Packs a text of less than SHORT_TEXT bytes; a number. Each returns the end. */
static uint8_t *put_text(uint8_t *p, const char *text, size_t n)
{
    *p++ = (uint8_t)(0xa0 | n);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_int(uint8_t *p, uint64_t value)
{
    int size = value < 1 << 8 ? 0 : value < 1 << 16 ? 1 : value <= UINT32_MAX ? 2 : 3;
    if (value < 0x80) {
        *p++ = (uint8_t)value;
        return p;
    }
    *p++ = (uint8_t)(0xcc + size);
    store_int(p, value, 1 << size);
    return p + (1 << size);
}

void pack_begin(msgpack_packer *packer, struct str *out)
{
    msgpack_packer_init(packer, out, append);
}

/* Packs like msgpack's own function, but several times faster for the short texts of a header. */
void pack_text_of(msgpack_packer *packer, const char *text, size_t n)
{
    if (n < SHORT_TEXT) {
        put_text((uint8_t *)str_extend(packer->data, n + 1), text, n);
        return;
    }
    msgpack_pack_str(packer, n);
    msgpack_pack_str_body(packer, text, n);
}

msgpack_packer *encoder_begin(struct encoder *encoder, enum record_kind kind, int n_fields)
{
    static const char start[MAP_AT + 3] = {(char)0xce, 0, 0, 0, 0, (char)0xde, 0, 0};
    pack_begin(&encoder->packer, &encoder->header);
    str_clear(&encoder->header);
    str_append_bytes(&encoder->header, start, sizeof start);
    pack_key_text(&encoder->packer, "kind", record_kind_name(kind));
    encoder->kind = kind;
    encoder->n_fields = n_fields;
    return &encoder->packer;
}

void encoder_release(struct encoder *encoder)
{
    str_release(&encoder->header);
}

/* Returns the bytes of the first part: a string tensor's offsets have bins of their own. */
static size_t first_part(const struct tensor *t, size_t bytes)
{
    return t->type == STRING ? (size_t)(tensor_count(t) + 1) * sizeof(uint64_t) : bytes;
}

static size_t largest_bin(size_t bin_bytes)
{
    return bin_bytes ? bin_bytes : LIMIT_BIN_BYTES;
}

static size_t n_bins(const struct tensor *t, size_t bytes, size_t bin_bytes)
{
    size_t first = first_part(t, bytes), bin = largest_bin(bin_bytes);
    return (first + bin - 1) / bin + (bytes - first + bin - 1) / bin +
           (t->type == STRING && bytes == first);
}

int encoder_finish(struct encoder *encoder, const struct named_tensor *tensors, int n_tensors,
                   struct error *err)
{
    struct str *header = &encoder->header;
    uint8_t sum[SUM_BYTES] = {0xcf};
    if ((size_t)n_tensors > LIMIT_RECORD_TENSORS)
        return error_set(err, ERR_DATA, "%d tensors in a record are beyond the limit of %zu",
                         n_tensors, LIMIT_RECORD_TENSORS);
    for (int i = 0; i < n_tensors; i++) {
        const struct tensor *t = &tensors[i].tensor;
        BUG_ON(t->layout);
        if (!record_name_fits(tensors[i].name))
            return error_set(err, ERR_DATA, "a tensor's name is not fit to print: '%.40s'",
                             tensors[i].name);
        if (!record_carries(t->type))
            return error_set(err, ERR_DATA, "tensor '%s': type '%s' is not carried by streams",
                             tensors[i].name, dtype_name(t->type));
    }

    if (n_tensors) {
        pack_key_array(&encoder->packer, "tensors", (size_t)n_tensors);
        for (int i = 0; i < n_tensors; i++) {
            /* A map of five fields, packed by hand, as it is most of a small record's header. */
            const struct named_tensor *named = &tensors[i];

            const struct tensor *t = &named->tensor;
            const char *type = dtype_name(t->type);
            size_t bytes = tensor_bytes(t);
            uint8_t packed[SHORT_TEXT * 5 + 9 * (SHAPE_RANK_MAX + 2)], *p = packed;
            str_append_bytes(header, "\x85\xa4name", 6);
            pack_text(&encoder->packer, named->name);
            p = put_text(p, "type", 4);
            p = put_text(p, type, strlen(type));
            p = put_text(p, "shape", 5);
            *p++ = (uint8_t)(0x90 | t->shape.rank);
            for (int j = 0; j < t->shape.rank; j++)
                p = put_int(p, (uint64_t)t->shape.dims[j]);
            p = put_text(p, "bins", 4);
            p = put_int(p, n_bins(t, bytes, encoder->bin_bytes));
            p = put_text(p, "bytes", 5);
            p = put_int(p, bytes);
            str_append_bytes(header, packed, (size_t)(p - packed));
        }
    }
    pack_key(&encoder->packer, "sum");
    size_t length = header->n - MAP_AT + SUM_BYTES;
    if (length > LIMIT_HEADER_BYTES)
        return error_set(err, ERR_DATA, "a header of %zu bytes is beyond the limit of %zu", length,
                         LIMIT_HEADER_BYTES);
    store_int((uint8_t *)header->data + 1, length, 4);
    store_int((uint8_t *)header->data + MAP_AT + 1,
              (uint64_t)(encoder->n_fields + KIND_FIELDS + (n_tensors > 0)), 2);
    store_int(sum + 1, XXH3_64bits(header->data + MAP_AT, header->n - MAP_AT), 8);
    str_append_bytes(header, sum, sizeof sum);
    return 0;
}

uint64_t encoder_body_bytes(const struct named_tensor *tensors, int n_tensors, size_t bin_bytes)
{
    uint64_t total = 0;
    for (int i = 0; i < n_tensors; i++) {
        size_t bytes = tensor_bytes(&tensors[i].tensor);
        total += bytes + n_bins(&tensors[i].tensor, bytes, bin_bytes) * BIN_TAG_BYTES;
    }
    return total ? total + SUM_BYTES : 0;
}

static void measure(struct encoder_bodies *bodies)
{
    if (bodies->i == bodies->n_tensors)
        return;
    const struct tensor *t = &bodies->tensors[bodies->i].tensor;
    bodies->bytes = tensor_bytes(t);
    bodies->first = first_part(t, bodies->bytes);
    bodies->done = bodies->bin_end = 0;
    bodies->empty_bin = t->type == STRING && bodies->bytes == bodies->first;
}

/* Advances to the next tensor that has bins left. */
static void skip_done(struct encoder_bodies *bodies)
{
    while (bodies->i < bodies->n_tensors && bodies->done == bodies->bytes && !bodies->empty_bin) {
        bodies->i++;
        measure(bodies);
    }
}

void encoder_bodies(struct encoder_bodies *bodies, const struct named_tensor *tensors,
                    int n_tensors, bool sums)
{
    *bodies = (struct encoder_bodies){.bin_bytes = bodies->bin_bytes,
                                      .tensors = tensors,
                                      .n_tensors = n_tensors,
                                      .sums = sums,
                                      .sum = bodies->sum};
    if (sums && n_tensors) {
        if (!bodies->sum && !(bodies->sum = XXH3_createState()))
            mem_exhausted(sizeof(XXH3_state_t));
        XXH3_64bits_reset(bodies->sum);
    }
    measure(bodies);
    skip_done(bodies);
}

void encoder_bodies_release(struct encoder_bodies *bodies)
{
    if (bodies->sum)
        XXH3_freeState(bodies->sum);
    bodies->sum = NULL;
}

static bool give_tag(struct encoder_bodies *bodies, size_t n, struct encoder_piece *piece)
{
    piece->tag[0] = 0xc6;
    store_int(piece->tag + 1, n, 4);
    piece->bytes = NULL;
    piece->n = BIN_TAG_BYTES;
    bodies->any = true;
    bodies->bin_end = bodies->done + n;
    skip_done(bodies);
    return true;
}

bool encoder_next(struct encoder_bodies *bodies, size_t limit, struct encoder_piece *piece)
{
    size_t most = largest_bin(bodies->bin_bytes);
    if (bodies->i == bodies->n_tensors) {
        if (!bodies->any)
            return false;
        bodies->any = false;
        piece->tag[0] = 0xcf;
        store_int(piece->tag + 1, bodies->sums ? XXH3_64bits_digest(bodies->sum) : 0, 8);
        piece->bytes = NULL;
        piece->n = SUM_BYTES;
        return true;
    }
    if (bodies->done < bodies->bin_end) {
        size_t left = bodies->bin_end - bodies->done;
        piece->bytes = (const char *)bodies->tensors[bodies->i].tensor.data + bodies->done;
        piece->n = left < limit ? left : limit;
        if (bodies->sums)
            XXH3_64bits_update(bodies->sum, piece->bytes, piece->n);
        bodies->done += piece->n;
        skip_done(bodies);
        return true;
    }
    if (bodies->done < bodies->bytes) {
        size_t end = bodies->done < bodies->first ? bodies->first : bodies->bytes;
        size_t left = end - bodies->done;
        return give_tag(bodies, left < most ? left : most, piece);
    }
    bodies->empty_bin = false;
    return give_tag(bodies, 0, piece);
}

bool encoder_at_bin(const struct encoder_bodies *bodies)
{
    return bodies->i < bodies->n_tensors && bodies->done == bodies->bin_end;
}
