/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/bundle_private.h"
#include "checkpoint/store/pages_private.h"

#define INDEX_BYTES_MAX ((uint64_t)1 << 31)
#define SHARDS_MAX 100000

struct whole {
    const char *name;
    struct bundle_entry entry;
};

struct bundle {
    const char *path;
    struct archive *archive;
    uint8_t *index;
    size_t index_bytes;
    uint64_t n_shards; /* 0: the header was not read yet */
    int fd;            /* of the shard read last */
    uint64_t shard;
    struct bundle_slices slices;
    VEC(struct whole) wholes; /* tensors with slices; they are read once all slices are known */
    struct arena blocks;      /* unpacked blocks: slice entries point into them */
    uint64_t unpacked;        /* bytes in these blocks */
};

static int damaged(const struct bundle *b, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: damaged: %s", b->path, what);
}

/* ---- data ---- */

const char *bundle_data_path(const char *path, int shard, int n_shards, struct arena *arena)
{
    if (!str_ends(path, ".index"))
        return NULL;
    return arena_printf(arena, "%.*s.data-%05d-of-%05d", (int)(strlen(path) - strlen(".index")),
                        path, shard, n_shards);
}

static int read_numbers(struct bundle *b, const struct bundle_entry *e, struct tensor *t,
                        struct error *err)
{
    if (shape_bytes(&e->shape, (enum dtype)e->type) != (int64_t)e->size)
        return error_set(err, ERR_DATA, "its size is not that of its shape");
    if (tensor_alloc(t, (enum dtype)e->type, &e->shape, err) ||
        pages_read(b->fd, t->data, e->size, e->offset, err))
        return err->code;
    if (bundle_crc_mask(bundle_crc(0, t->data, e->size)) != e->crc)
        return error_set(err, ERR_DATA, "its checksum differs");
    return 0;
}

/* Fills in the strings from `in`, the bytes that the writer wrote. */
static int take_strings(struct wire_bytes in, const struct bundle_entry *e, struct tensor *t,
                        struct error *err)
{
    int64_t n = shape_count(&e->shape);
    uint64_t *lengths = mem_array((size_t)n + 1, sizeof *lengths), total = 0;
    uint32_t crc = 0;
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = wire_varint(&in);
        uint32_t narrow = (uint32_t)lengths[i];
        crc = lengths[i] <= UINT32_MAX ? bundle_crc(crc, &narrow, sizeof narrow)
                                       : bundle_crc(crc, &lengths[i], sizeof *lengths);
        in.bad |= lengths[i] > e->size;
        total += in.bad ? 0 : lengths[i];
    }
    uint32_t sum = bundle_crc_mask(crc), stored = wire_fixed32(&in);
    crc = bundle_crc(crc, &stored, sizeof stored);
    if (in.bad || stored != sum || total != (uint64_t)(in.end - in.p) ||
        bundle_crc_mask(bundle_crc(crc, in.p, total)) != e->crc) {
        error_set(err, ERR_DATA, "its checksum differs");
    } else if (!tensor_alloc_strings(t, &e->shape, total, err)) {
        uint64_t *offsets = t->data;
        offsets[0] = 0;
        for (int64_t i = 0; i < n; i++)
            offsets[i + 1] = offsets[i] + lengths[i];
        memcpy(offsets + n + 1, in.p, total);
    }
    mem_free(lengths);
    return err->code;
}

static int read_strings(struct bundle *b, const struct bundle_entry *e, struct tensor *t,
                        struct error *err)
{
    int64_t n = shape_count(&e->shape);
    if (n < 0 || (uint64_t)n > e->size || e->size < 4) /* each has at least a byte of length */
        return error_set(err, ERR_DATA, "its size is not that of its shape");
    uint8_t *data = mem_try(e->size);
    if (!data)
        return error_set(err, ERR_OS, "no memory for %llu bytes", (unsigned long long)e->size);
    if (!pages_read(b->fd, data, e->size, e->offset, err))
        take_strings((struct wire_bytes){data, data + e->size, false}, e, t, err);
    mem_free(data);
    return err->code;
}

int bundle_find_data(struct bundle *b, const struct bundle_entry *e, struct error *err)
{
    if (e->type > 31 || !(DTYPE_BIT(e->type) & DTYPES_ANY) || e->type == RESOURCE)
        return error_set(err, ERR_DATA, "no tensor has TensorFlow's type %llu",
                         (unsigned long long)e->type);
    if (e->shard >= b->n_shards)
        return error_set(err, ERR_DATA, "lies in a shard that is none");
    if (b->fd < 0 || b->shard != e->shard) {
        close_if_open(b->fd);
        b->shard = e->shard;
        const char *path =
            bundle_data_path(b->path, (int)e->shard, (int)b->n_shards, &b->archive->arena);
        b->fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (b->fd < 0)
            return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s",
                                   path ? path : b->path);
    }
    /* Checks that the data exists, before memory is allocated for it. */
    struct stat status;
    if (fstat(b->fd, &status))
        return error_set_errno(err, ERR_IO, "stat");
    uint64_t there = (uint64_t)status.st_size;
    return e->size <= there && e->offset <= there - e->size
               ? 0
               : error_set(err, ERR_DATA, "truncated: its data is not there");
}

int bundle_read_numbers(struct bundle *b, const struct bundle_entry *e, struct tensor *t,
                        struct error *err)
{
    return bundle_find_data(b, e, err) ? err->code : read_numbers(b, e, t, err);
}

static int read_tensor(struct bundle *b, const char *name, const struct bundle_entry *e,
                       struct error *err)
{
    struct named_tensor t = {.name = name, .tensor = TENSOR_INIT};
    struct whole whole = {name, *e};
    if (e->has_slices) {
        vec_push(&b->wholes, whole);
        return 0;
    }
    if (bundle_find_data(b, e, err))
        return err->code;
    if (e->type == STRING ? read_strings(b, e, &t.tensor, err)
                          : read_numbers(b, e, &t.tensor, err)) {
        tensor_release(&t.tensor);
        return err->code;
    }
    vec_push(&b->archive->tensors, t);
    return 0;
}

/* ---- the table ---- */

static int take_item(struct bundle *b, const struct str *key, struct wire_bytes value,
                     struct error *err)
{
    struct bundle_entry entry;
    if (!key->n) {
        struct wire_bytes in = value;
        uint64_t endianness = 0;
        for (struct wire_field f; wire_next(&in, &f);) {
            if (f.tag == HEADER_SHARDS)
                b->n_shards = f.number;
            else if (f.tag == HEADER_ENDIANNESS)
                endianness = f.number;
        }
        if (in.bad || !b->n_shards || b->n_shards > SHARDS_MAX)
            return damaged(b, "its header", err);
        return endianness ? error_set(err, ERR_DATA, "%s: big-endian data", b->path) : 0;
    }
    if (!b->n_shards)
        return damaged(b, "it has no header", err);
    if (bundle_key_is_slice(key)) {
        if (!bundle_parse_entry(value, &entry))
            return damaged(b, "the entry of a slice", err);
        bundle_slices_add(&b->slices, key, &entry);
        return 0;
    }
    if (key->n > LIMIT_NAME_BYTES || !str_is_printable(key->data, key->n))
        return error_set(err, ERR_DATA, "%s: a tensor's name is not fit to print", b->path);
    const char *name = arena_strndup(&b->archive->arena, key->data, key->n);
    if (!bundle_parse_entry(value, &entry))
        return damaged(b, name, err);
    return read_tensor(b, name, &entry, err) ? error_prefix(err, "%s: '%s': ", b->path, name) : 0;
}

/* Finds a block's contents, if its checksum is right. */
static int find_block(struct bundle *b, struct wire_bytes *handle, struct wire_bytes *block,
                      struct error *err)
{
    uint64_t offset = wire_varint(handle), n = wire_varint(handle);
    if (handle->bad || b->index_bytes < BUNDLE_TRAILER_BYTES || offset > b->index_bytes ||
        n > b->index_bytes - offset || b->index_bytes - offset - n < BUNDLE_TRAILER_BYTES)
        return damaged(b, "a block outside the file", err);
    const uint8_t *p = b->index + offset;
    if (bundle_crc_mask(bundle_crc(0, p, n + 1)) != page_u32(p + n + 1))
        return damaged(b, "a block's checksum differs", err);
    *block = (struct wire_bytes){p, p + n, false};
    if (p[n] > BLOCK_SNAPPY)
        return error_set(err, ERR_DATA, "%s: its table is compressed in way %d", b->path, p[n]);
    if (p[n] == BLOCK_SNAPPY) {
        uint64_t bytes = 0;
        if (!snappy_length(*block, &bytes) ||
            (b->unpacked += bytes) / SNAPPY_RATIO_MAX > b->index_bytes)
            return damaged(b, "a compressed block", err);
        uint8_t *unpacked = arena_alloc(&b->blocks, bytes + 1);
        if (!snappy_unpack(*block, unpacked, bytes))
            return damaged(b, "a compressed block", err);
        *block = (struct wire_bytes){unpacked, unpacked + bytes, false};
    }
    n = (uint64_t)(block->end - block->p);
    uint32_t restarts = n >= 4 ? page_u32(block->end - 4) : UINT32_MAX;
    if (n < 4 || restarts > (n - 4) / 4)
        return damaged(b, "a block without its list", err);
    block->end -= 4 + 4 * (uint64_t)restarts;
    return 0;
}

static int walk_block(struct bundle *b, struct wire_bytes block,
                      int (*take)(struct bundle *b, const struct str *key, struct wire_bytes value,
                                  struct error *err),
                      struct error *err)
{
    struct str key = STR_INIT;
    while (block.p < block.end && !err->code) {
        uint64_t shared = wire_varint(&block), more = wire_varint(&block);
        uint64_t value_bytes = wire_varint(&block);
        struct wire_bytes rest = wire_take(&block, more), value = wire_take(&block, value_bytes);
        if (block.bad || shared > key.n) {
            damaged(b, "an entry that is none", err);
            break;
        }
        key.n = (size_t)shared;
        str_append_bytes(&key, rest.p, (size_t)more);
        take(b, &key, value, err);
    }
    str_release(&key);
    return err->code;
}

static int take_block(struct bundle *b, const struct str *key, struct wire_bytes handle,
                      struct error *err)
{
    struct wire_bytes block;
    (void)key;
    return find_block(b, &handle, &block, err) ? err->code : walk_block(b, block, take_item, err);
}

static int read_table(struct bundle *b, struct error *err)
{
    if (b->index_bytes < BUNDLE_FOOTER_BYTES)
        return error_set(err, ERR_DATA, "%s: not a TensorFlow checkpoint's index", b->path);
    const uint8_t *footer = b->index + b->index_bytes - BUNDLE_FOOTER_BYTES;
    struct wire_bytes handles = {footer, footer + BUNDLE_FOOTER_BYTES - 8, false}, block;
    if (page_u64(handles.end) != BUNDLE_MAGIC)
        return error_set(err, ERR_DATA, "%s: not a TensorFlow checkpoint's index, or truncated",
                         b->path);
    if (find_block(b, &handles, &block, err) || /* the block of filters, which is empty */
        find_block(b, &handles, &block, err))
        return err->code;
    return walk_block(b, block, take_block, err);
}

static int load_index(struct bundle *b, struct error *err)
{
    struct stat status;
    int fd = open(b->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s", b->path);
    if (fstat(fd, &status)) {
        error_set_errno(err, ERR_IO, "%s", b->path);
    } else if ((uint64_t)status.st_size > INDEX_BYTES_MAX) {
        error_set(err, ERR_DATA, "%s: is too large for an index", b->path);
    } else if (!(b->index = mem_try((size_t)status.st_size))) {
        error_set(err, ERR_OS, "%s: no memory for it", b->path);
    } else {
        b->index_bytes = (size_t)status.st_size;
        if (pages_read(fd, b->index, b->index_bytes, 0, err))
            error_prefix(err, "%s: ", b->path);
    }
    close(fd);
    return err->code;
}

int bundle_read(const char *path, struct archive *archive, struct error *err)
{
    struct bundle b = {.path = path, .archive = archive, .fd = -1};
    *archive = (struct archive){0};
    error_clear(err);
    if (!load_index(&b, err) && !read_table(&b, err)) {
        for (size_t i = 0; i < b.wholes.n && !err->code; i++) {
            const struct whole *whole = &b.wholes.items[i];
            struct named_tensor t = {.name = whole->name, .tensor = TENSOR_INIT};
            if (bundle_slices_join(&b, &b.slices, whole->name, &whole->entry, &t.tensor, err))
                error_prefix(err, "%s: '%s': ", b.path, whole->name);
            else
                vec_push(&b.archive->tensors, t);
        }
        if (!err->code && bundle_slices_check(&b.slices, err))
            error_prefix(err, "%s: damaged: ", b.path);
    }
    close_if_open(b.fd);
    mem_free(b.index);
    bundle_slices_release(&b.slices);
    vec_release(&b.wholes);
    arena_release(&b.blocks);
    if (err->code)
        archive_release(archive);
    return err->code;
}
