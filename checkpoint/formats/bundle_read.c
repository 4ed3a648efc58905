/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/bundle_private.h"
#include "checkpoint/store/pages_private.h"
#include "tensor/box.h"

#define INDEX_BYTES_MAX ((uint64_t)1 << 31)
#define SHARDS_MAX 100000
#define CRC_BYTES ((size_t)1 << 30) /* the library counts in int */
#define NUMBER_BYTES 10             /* of a signed number in ordered code */

struct bundle_entry { /* BundleEntryProto */
    uint64_t type, shard, offset, size;
    struct shape shape;
    uint32_t crc;
    bool has_slices;
    struct wire_bytes message; /* the bytes it was parsed from */
};

/* A variable that was partitioned has an entry with its whole shape and the extents of its slices,
 * and no data. Each slice has an entry of its own, whose key is a number 0, the name, and the
 * extents, in LevelDB's ordered code. No name begins with a zero byte. */
struct slice_entry {
    struct str key;
    struct bundle_entry entry;
    bool used;
};

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
    VEC(struct slice_entry) slices; /* sorted by their keys, once all are known */
    VEC(struct whole) wholes; /* tensors with slices; they are read once all slices are known */
    struct arena blocks;      /* unpacked blocks: slice entries point into them */
    uint64_t unpacked;        /* bytes in these blocks */
};

/* ---- checksums and messages ---- */

uint32_t bundle_crc(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t done = 0; done < n;) {
        size_t part = n - done < CRC_BYTES ? n - done : CRC_BYTES;
        crc = crc32_iscsi((unsigned char *)(uintptr_t)p + done, (int)part, crc);
        done += part;
    }
    return ~crc;
}

uint32_t bundle_crc_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

struct wire_field { /* its tag, and its value as a number or as bytes */
    uint64_t tag, number;
    struct wire_bytes bytes;
};

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

static uint32_t wire_fixed32(struct wire_bytes *in)
{
    struct wire_bytes part = wire_take(in, 4);
    return in->bad ? 0 : page_u32(part.p);
}

/* Reads the next field of a message; false at its end, or if it is damaged. */
static bool wire_next(struct wire_bytes *in, struct wire_field *field)
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

/* False if the bytes are not an entry. */
static bool parse_entry(struct wire_bytes in, struct bundle_entry *e)
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

static int check_type(const struct bundle_entry *e, struct error *err)
{
    bool is_carried = e->type <= 31 && (DTYPE_BIT(e->type) & DTYPES_ANY) && e->type != RESOURCE;
    return is_carried ? 0
                      : error_set(err, ERR_DATA, "no tensor has TensorFlow's type %llu",
                                  (unsigned long long)e->type);
}

/* Opens the file that has the entry's data, and checks that it is there, before memory is allocated
 * for it. */
static int find_data(struct bundle *b, const struct bundle_entry *e, struct error *err)
{
    if (check_type(e, err))
        return err->code;
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
    struct stat status;
    if (fstat(b->fd, &status))
        return error_set_errno(err, ERR_IO, "stat");
    uint64_t there = (uint64_t)status.st_size;
    return e->size <= there && e->offset <= there - e->size
               ? 0
               : error_set(err, ERR_DATA, "truncated: its data is not there");
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
    if (find_data(b, e, err))
        return err->code;
    if (e->type == STRING ? read_strings(b, e, &t.tensor, err)
                          : read_numbers(b, e, &t.tensor, err)) {
        tensor_release(&t.tensor);
        return err->code;
    }
    vec_push(&b->archive->tensors, t);
    return 0;
}

/* ---- slices ---- */

/* The first bits give the number of bytes: one byte holds 6 bits and the sign, each further byte 7
 * more bits. A negative number is the complement. */
static void put_signed(struct str *key, int64_t value)
{
    static const uint8_t headers[NUMBER_BYTES + 1][2] = {
        {0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},   {0xf8, 0},
        {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    uint8_t bytes[NUMBER_BYTES];
    int n = 1;
    while (n < NUMBER_BYTES && 7 * n - 1 < 64 && magnitude >> (7 * n - 1))
        n++;
    for (int i = 0; i < NUMBER_BYTES; i++) {
        int shift = 8 * (NUMBER_BYTES - 1 - i);
        bytes[i] = shift < 64 ? (uint8_t)((uint64_t)value >> shift) : value < 0 ? 0xff : 0;
    }
    uint8_t *first = bytes + NUMBER_BYTES - n;
    first[0] ^= headers[n][0];
    if (n > 1)
        first[1] ^= headers[n][1];
    str_append_bytes(key, first, (size_t)n);
}

/* A slice's part of the whole tensor. */
struct slice_extents {
    struct box box;
    bool is_all[SHAPE_RANK_MAX]; /* written as the whole extent of this axis */
};

static int by_key(const void *a, const void *b)
{
    const struct str *x = &((const struct slice_entry *)a)->key;
    const struct str *y = &((const struct slice_entry *)b)->key;
    int order = memcmp(x->data, y->data, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* NULL: there is no such slice, or it was already used. */
static struct slice_entry *find_slice(const struct bundle *b, const char *name,
                                      const struct slice_extents *extents)
{
    struct slice_entry wanted = {.used = false};
    if (!b->slices.n)
        return NULL;
    /* A printable name has none of the bytes that ordered code would escape. */
    str_append_char(&wanted.key, 0);
    str_append(&wanted.key, name);
    str_append_bytes(&wanted.key, "\0\1", 2); /* ends a text */
    if (extents->box.rank)
        str_append_char(&wanted.key, 1); /* a number of one byte */
    str_append_char(&wanted.key, (char)extents->box.rank);
    for (int i = 0; i < extents->box.rank; i++) {
        put_signed(&wanted.key, extents->is_all[i] ? 0 : extents->box.first[i]);
        put_signed(&wanted.key, extents->is_all[i] ? -1 : extents->box.size[i]);
    }
    struct slice_entry *found =
        bsearch(&wanted, b->slices.items, b->slices.n, sizeof *b->slices.items, by_key);
    str_release(&wanted.key);
    return found && !found->used ? found : NULL;
}

struct piece {
    struct slice_extents extents;
    struct slice_entry *slice;
};

/* Adds the extent along the next axis of the whole. */
static bool parse_extent(struct wire_bytes in, const struct shape *whole,
                         struct slice_extents *extents)
{
    int axis = extents->box.rank++;
    if (axis >= whole->rank)
        return false;
    int64_t first = 0, size = whole->dims[axis];
    extents->is_all[axis] = true;
    for (struct wire_field f; wire_next(&in, &f);) {
        if (f.tag == EXTENT_START)
            first = (int64_t)f.number;
        if (f.tag == EXTENT_LENGTH) {
            size = (int64_t)f.number;
            extents->is_all[axis] = false;
        }
    }
    extents->box.first[axis] = first;
    extents->box.size[axis] = size;
    return !in.bad && first >= 0 && size >= 0 && first <= whole->dims[axis] &&
           size <= whole->dims[axis] - first;
}

struct slice_joiner {
    struct bundle *bundle;
    const struct bundle_entry *whole;
    VEC(struct piece) pieces;
    uint64_t bytes; /* of all pieces */
};

static int take_piece(struct slice_joiner *j, const char *name, struct wire_bytes in,
                      struct error *err)
{
    const struct bundle_entry *whole = j->whole;
    struct piece piece = {.slice = NULL};
    bool fits = true;
    for (struct wire_field f; wire_next(&in, &f);)
        if (f.tag == SLICE_EXTENT)
            fits = fits && parse_extent(f.bytes, &whole->shape, &piece.extents);
    if (in.bad || !fits || piece.extents.box.rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "a slice that is none of its shape");
    piece.slice = find_slice(j->bundle, name, &piece.extents);
    if (!piece.slice)
        return error_set(err, ERR_DATA, "one of its slices is missing");
    const struct bundle_entry *e = &piece.slice->entry;
    piece.slice->used = true;
    if (e->has_slices || e->type != whole->type || e->shape.rank != whole->shape.rank)
        return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    for (int i = 0; i < e->shape.rank; i++)
        if (e->shape.dims[i] != piece.extents.box.size[i])
            return error_set(err, ERR_DATA, "one of its slices has another type or shape");
    j->bytes += e->size;
    vec_push(&j->pieces, piece);
    return find_data(j->bundle, e, err);
}

/* Reads the pieces into the whole. Together they have as many elements as the whole; so if two
 * overlapped, some element would be in none. */
static int fill_whole(struct slice_joiner *j, struct tensor *value, struct error *err)
{
    size_t count = (size_t)tensor_count(value);
    uint8_t *filled = mem_try(count);
    if (!filled)
        return error_set(err, ERR_OS, "no memory to join its slices");
    memset(filled, 0, count);
    struct box all = {.rank = value->shape.rank};
    memcpy(all.size, value->shape.dims, sizeof all.size);
    for (size_t i = 0; i < j->pieces.n && !err->code; i++) {
        const struct piece *piece = &j->pieces.items[i];
        struct tensor part = TENSOR_INIT;
        if (!find_data(j->bundle, &piece->slice->entry, err) &&
            !read_numbers(j->bundle, &piece->slice->entry, &part, err)) {
            box_copy(value->data, &all, part.data, &piece->extents.box, dtype_bytes(value->type));
            memset(part.data, 1, (size_t)tensor_count(&part)); /* of no use any more */
            box_copy(filled, &all, part.data, &piece->extents.box, 1);
        }
        tensor_release(&part);
    }
    if (!err->code && memchr(filled, 0, count))
        error_set(err, ERR_DATA, "its slices overlap");
    mem_free(filled);
    return err->code;
}

/* Reads the tensor of an entry that has slices: ERR_DATA unless each element is in exactly one
 * slice. */
static int join_slices(struct bundle *b, const struct whole *w, struct tensor *value,
                       struct error *err)
{
    const struct bundle_entry *whole = &w->entry;
    struct slice_joiner j = {.bundle = b, .whole = whole};
    if (whole->type == STRING)
        return error_set(err, ERR_DATA, "strings that are cut into slices");
    if (check_type(whole, err))
        return err->code;
    struct wire_bytes in = whole->message;
    for (struct wire_field f; !err->code && wire_next(&in, &f);)
        if (f.tag == ENTRY_SLICES)
            take_piece(&j, w->name, f.bytes, err);
    if (!err->code && (int64_t)j.bytes != shape_bytes(&whole->shape, (enum dtype)whole->type))
        error_set(err, ERR_DATA, "its slices are not all of it");
    if (!err->code && !tensor_alloc(value, (enum dtype)whole->type, &whole->shape, err) &&
        fill_whole(&j, value, err))
        tensor_release(value);
    vec_release(&j.pieces);
    return err->code;
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
    if (!key->data[0]) {
        struct slice_entry slice = {.key = STR_INIT};
        if (!parse_entry(value, &slice.entry))
            return damaged(b, "the entry of a slice", err);
        str_append_bytes(&slice.key, key->data, key->n);
        vec_push(&b->slices, slice);
        return 0;
    }
    if (key->n > LIMIT_NAME_BYTES || !str_is_printable(key->data, key->n))
        return error_set(err, ERR_DATA, "%s: a tensor's name is not fit to print", b->path);
    const char *name = arena_strndup(&b->archive->arena, key->data, key->n);
    if (!parse_entry(value, &entry))
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
        if (b.slices.n)
            qsort(b.slices.items, b.slices.n, sizeof *b.slices.items, by_key);
        for (size_t i = 0; i < b.wholes.n && !err->code; i++) {
            const struct whole *whole = &b.wholes.items[i];
            struct named_tensor t = {.name = whole->name, .tensor = TENSOR_INIT};
            if (join_slices(&b, whole, &t.tensor, err))
                error_prefix(err, "%s: '%s': ", b.path, whole->name);
            else
                vec_push(&b.archive->tensors, t);
        }
        for (size_t i = 0; i < b.slices.n && !err->code; i++)
            if (!b.slices.items[i].used)
                damaged(&b, "a slice of no tensor", err);
    }
    close_if_open(b.fd);
    mem_free(b.index);
    vec_each(slice, &b.slices) {
        str_release(&slice->key);
    }
    vec_release(&b.slices);
    vec_release(&b.wholes);
    arena_release(&b.blocks);
    if (err->code)
        archive_release(archive);
    return err->code;
}
