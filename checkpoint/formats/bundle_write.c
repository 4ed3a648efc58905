/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/bundle_private.h"

#define BLOCK_BYTES 262144
#define RESTART_INTERVAL 16
#define ONE_SHARD_HEADER "\x08\x01\x1a\x02\x08\x01" /* one shard, little-endian, version 1 */

static void put_fixed(struct str *s, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_append_char(s, (char)(value >> 8 * i));
}

static void put_varint(struct str *s, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        str_append_char(s, (char)(value | 128));
    str_append_char(s, (char)value);
}

static void put_tag(struct str *s, int field, int wire)
{
    put_varint(s, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_number(struct str *s, int field, uint64_t value)
{
    if (!value) /* defaults are not written */
        return;
    put_tag(s, field, WIRE_VARINT);
    put_varint(s, value);
}

/* ---- blocks ---- */

struct block_builder {
    struct str bytes, last_key;
    VEC(uint32_t) restarts;
    int n, interval;
};

static void block_add(struct block_builder *b, const char *key, size_t key_bytes,
                      const struct str *value)
{
    size_t shared = 0;
    if (b->n % b->interval == 0)
        vec_push(&b->restarts, (uint32_t)b->bytes.n);
    else
        while (shared < key_bytes && shared < b->last_key.n &&
               key[shared] == b->last_key.data[shared])
            shared++;
    put_varint(&b->bytes, shared);
    put_varint(&b->bytes, key_bytes - shared);
    put_varint(&b->bytes, value->n);
    str_append_bytes(&b->bytes, key + shared, key_bytes - shared);
    str_append_bytes(&b->bytes, str_text(value), value->n);
    str_clear(&b->last_key);
    str_append_bytes(&b->last_key, key, key_bytes);
    b->n++;
}

struct table_builder {
    FILE *file;
    uint64_t offset;
    struct block_builder block, index;
};

static int write_out(struct table_builder *t, const void *data, size_t n, struct error *err)
{
    t->offset += n;
    return !n || fwrite(data, 1, n, t->file) == n
               ? 0
               : error_set_errno(err, ERR_IO, "writing a TensorFlow checkpoint");
}

/* Writes the block with its trailer; `handle` tells where it lies. */
static int flush_block(struct table_builder *t, struct block_builder *b, struct str *handle,
                       struct error *err)
{
    if (!b->restarts.n)
        vec_push(&b->restarts, 0);
    for (size_t i = 0; i < b->restarts.n; i++)
        put_fixed(&b->bytes, b->restarts.items[i], 4);
    put_fixed(&b->bytes, b->restarts.n, 4);
    put_varint(handle, t->offset);
    put_varint(handle, b->bytes.n);
    str_append_char(&b->bytes, 0); /* not compressed */
    put_fixed(&b->bytes, bundle_crc_mask(bundle_crc(0, b->bytes.data, b->bytes.n)), 4);
    int code = write_out(t, b->bytes.data, b->bytes.n, err);
    str_clear(&b->bytes);
    b->restarts.n = 0;
    b->n = 0;
    return code;
}

static void block_release(struct block_builder *b)
{
    str_release(&b->bytes);
    str_release(&b->last_key);
    vec_release(&b->restarts);
}

static int end_block(struct table_builder *t, struct error *err)
{
    struct str handle = STR_INIT;
    if (!t->block.n)
        return 0;
    int code = flush_block(t, &t->block, &handle, err);
    if (!code)
        block_add(&t->index, str_text(&t->block.last_key), t->block.last_key.n, &handle);
    str_release(&handle);
    return code;
}

static int table_add(struct table_builder *t, const char *key, const struct str *value,
                     struct error *err)
{
    block_add(&t->block, key, strlen(key), value);
    return t->block.bytes.n < BLOCK_BYTES ? 0 : end_block(t, err);
}

/* ---- tensors ---- */

struct written {
    uint64_t offset, size;
    uint32_t crc;
};

static int put_data(FILE *file, const void *data, size_t n, struct written *w, struct error *err)
{
    w->crc = bundle_crc(w->crc, data, n);
    w->size += n;
    return !n || fwrite(data, 1, n, file) == n
               ? 0
               : error_set_errno(err, ERR_IO, "writing a TensorFlow checkpoint");
}

/* Writes the lengths as varints, a checksum of the lengths as fixed-size numbers, then the bytes.
 * The tensor's checksum covers those numbers, their checksum and the bytes. */
static int write_strings(FILE *file, const struct tensor *t, struct written *w, struct error *err)
{
    struct str lengths = STR_INIT;
    int64_t n = tensor_count(t);
    const char *text;
    size_t length;
    for (int64_t i = 0; i < n; i++) {
        tensor_string(t, i, &text, &length);
        uint64_t wide = length;
        uint32_t narrow = (uint32_t)length;
        put_varint(&lengths, length);
        w->crc = length <= UINT32_MAX ? bundle_crc(w->crc, &narrow, sizeof narrow)
                                      : bundle_crc(w->crc, &wide, sizeof wide);
    }
    uint32_t sum = bundle_crc_mask(w->crc), crc = w->crc;
    put_data(file, str_text(&lengths), lengths.n, w, err);
    w->crc = crc;
    str_release(&lengths);
    if (!err->code)
        put_data(file, &sum, sizeof sum, w, err);
    for (int64_t i = 0; i < n && !err->code; i++) {
        tensor_string(t, i, &text, &length);
        put_data(file, text, length, w, err);
    }
    return err->code;
}

static int add_tensor(struct table_builder *t, FILE *data, const struct archive_input *input,
                      size_t i, uint64_t *offset, struct error *err)
{
    struct written w = {.offset = *offset};
    struct str value = STR_INIT;
    struct tensor tensor;
    if (input->read(input->context, i, &tensor, err))
        return err->code;
    if (tensor.type == STRING)
        write_strings(data, &tensor, &w, err);
    else
        put_data(data, tensor.data, tensor_bytes(&tensor), &w, err);
    tensor_release(&tensor);
    *offset += w.size;
    const struct archive_entry *e = &input->entries[i];
    struct str shape = STR_INIT;
    for (int k = 0; k < e->shape.rank; k++) {
        struct str dim = STR_INIT;
        put_number(&dim, DIM_SIZE, (uint64_t)e->shape.dims[k]);
        put_tag(&shape, SHAPE_DIM, WIRE_BYTES);
        put_varint(&shape, dim.n);
        str_append_bytes(&shape, str_text(&dim), dim.n);
        str_release(&dim);
    }
    put_number(&value, ENTRY_TYPE, (uint64_t)e->type);
    put_tag(&value, ENTRY_SHAPE, WIRE_BYTES);
    put_varint(&value, shape.n);
    str_append_bytes(&value, str_text(&shape), shape.n);
    put_number(&value, ENTRY_OFFSET, w.offset);
    put_number(&value, ENTRY_SIZE, w.size);
    put_tag(&value, ENTRY_CRC, WIRE_FIXED32);
    put_fixed(&value, bundle_crc_mask(w.crc), 4);
    str_release(&shape);
    if (!err->code)
        table_add(t, input->entries[i].name, &value, err);
    str_release(&value);
    return err->code;
}

struct by_name {
    const char *name;
    size_t i;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct by_name *)a)->name, ((const struct by_name *)b)->name);
}

int bundle_write(FILE *index, FILE *data, const struct archive_input *input, struct error *err)
{
    struct table_builder t = {
        .file = index, .block.interval = RESTART_INTERVAL, .index.interval = 1};
    struct by_name *order = mem_array(input->n + 1, sizeof *order);
    struct str header = STR_INIT;
    uint64_t offset = 0;
    error_clear(err);
    for (size_t i = 0; i < input->n; i++)
        order[i] = (struct by_name){input->entries[i].name, i};
    qsort(order, input->n, sizeof *order, compare_names);
    str_append_bytes(&header, ONE_SHARD_HEADER, sizeof ONE_SHARD_HEADER - 1);
    table_add(&t, "", &header, err);
    for (size_t i = 0; i < input->n && !err->code; i++)
        add_tensor(&t, data, input, order[i].i, &offset, err);
    if (!err->code) {
        struct block_builder none = {.interval = 1};
        struct str footer = STR_INIT;
        if (!end_block(&t, err) && !flush_block(&t, &none, &footer, err) &&
            !flush_block(&t, &t.index, &footer, err)) {
            while (footer.n < BUNDLE_FOOTER_BYTES - 8)
                str_append_char(&footer, 0);
            put_fixed(&footer, BUNDLE_MAGIC, 8);
            write_out(&t, footer.data, footer.n, err);
        }
        block_release(&none);
        str_release(&footer);
    }
    block_release(&t.block);
    block_release(&t.index);
    str_release(&header);
    mem_free(order);
    return err->code;
}
