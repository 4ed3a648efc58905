/* SPDX-License-Identifier: Apache-2.0
 *
 * The value: 8 bytes of magic, 32 of digest, and the map
 *
 *   {format: 1, minor: 1, step, sequence, time, producer, run: bin of 16, run_name, n_tensors,
 * bytes, new_bytes, scalars: {name: float}, blobs: {name: bin}, shards: {name: bin of 32}, tensors:
 * [{container, name, type, shape: [int], bytes, updates, chunks: bin of 32 for each}]}
 *
 * Programs of other minor formats can read it: they skip unknown keys, and `run`, which is new in
 * 1.1, and `run_name` may be missing.
 */
#include "checkpoint/store/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "wire/header.h"
#include "wire/limits.h"
#include "wire/slice.h"

#define MAGIC "TFCKPT\r\n"
#define MAGIC_BYTES 8
#define HEAD_BYTES (MAGIC_BYTES + DIGEST_BYTES)
#define FORMAT 1
#define FORMAT_MINOR 1
#define SHOWN_BYTES 60 /* shown of a refused name */

void ckpt_manifest_release(struct ckpt_manifest *manifest)
{
    vec_release(&manifest->tensors);
    vec_release(&manifest->scalars);
    vec_release(&manifest->blobs);
    vec_release(&manifest->shards);
    name_index_release(&manifest->by_name);
    arena_release(&manifest->arena);
}

/* ---- encoding ---- */

static void pack_bin(msgpack_packer *packer, const void *data, size_t n)
{
    msgpack_pack_bin(packer, n);
    msgpack_pack_bin_body(packer, data, n);
}

void ckpt_manifest_encode(struct ckpt_manifest *m, struct str *out)
{
    msgpack_packer packer;
    size_t start = out->n;
    str_append_bytes(out, MAGIC "                                ", HEAD_BYTES);
    pack_begin(&packer, out);
    msgpack_pack_map(&packer, 13 + (run_is_known(&m->run) ? 2 : 0));
    pack_key_int(&packer, "format", FORMAT);
    pack_key_int(&packer, "minor", FORMAT_MINOR);
    pack_key_int(&packer, "step", m->step);
    pack_key_int(&packer, "sequence", m->sequence);
    pack_key_int(&packer, "time", m->time);
    pack_key_text(&packer, "producer", m->producer ? m->producer : "");
    if (run_is_known(&m->run)) {
        pack_key(&packer, "run");
        pack_bin(&packer, m->run.id, RUN_BYTES);
        pack_key_text(&packer, "run_name", m->run.name);
    }
    pack_key_int(&packer, "n_tensors", (int64_t)m->n_tensors);
    pack_key_int(&packer, "bytes", (int64_t)m->bytes);
    pack_key_int(&packer, "new_bytes", (int64_t)m->new_bytes);
    pack_key_map(&packer, "scalars", m->scalars.n);
    for (size_t i = 0; i < m->scalars.n; i++) {
        pack_text(&packer, m->scalars.items[i].name);
        msgpack_pack_double(&packer, m->scalars.items[i].value);
    }
    pack_key_map(&packer, "blobs", m->blobs.n);
    for (size_t i = 0; i < m->blobs.n; i++) {
        pack_text(&packer, m->blobs.items[i].name);
        pack_bin(&packer, m->blobs.items[i].data, m->blobs.items[i].n);
    }
    pack_key_map(&packer, "shards", m->shards.n);
    for (size_t i = 0; i < m->shards.n; i++) {
        pack_text(&packer, m->shards.items[i].name);
        pack_bin(&packer, &m->shards.items[i].manifest, DIGEST_BYTES);
    }
    pack_key_array(&packer, "tensors", m->tensors.n);
    vec_each(t, &m->tensors) {
        msgpack_pack_map(&packer, 7 + slice_fields(&t->slice));
        pack_key_text(&packer, "container", t->container);
        pack_key_text(&packer, "name", t->name);
        pack_key_text(&packer, "type", dtype_name(t->type));
        pack_key_array(&packer, "shape", (size_t)t->shape.rank);
        for (int k = 0; k < t->shape.rank; k++)
            msgpack_pack_int64(&packer, t->shape.dims[k]);
        pack_key_uint(&packer, "bytes", t->bytes);
        pack_key_uint(&packer, "updates", t->updates);
        pack_slice(&packer, &t->slice);
        pack_key(&packer, "chunks");
        pack_bin(&packer, t->chunks, chunk_count(t->bytes) * DIGEST_BYTES);
    }
    m->digest = digest_of(out->data + start + HEAD_BYTES, out->n - start - HEAD_BYTES);
    memcpy(out->data + start + MAGIC_BYTES, &m->digest, DIGEST_BYTES);
}

/* ---- decoding ---- */

static int bad_manifest(struct error *err, const char *what)
{
    return error_set(err, ERR_DATA, "malformed manifest: %s", what);
}

static bool size_fits(const struct manifest_tensor *t)
{
    int64_t bytes = shape_bytes(&t->shape, t->type), count = shape_count(&t->shape);
    if (t->bytes > (uint64_t)TENSOR_BYTES_MAX || count < 0)
        return false;
    if (t->type == STRING)
        return (uint64_t)count < t->bytes / 8;
    return bytes >= 0 && (uint64_t)bytes == t->bytes && dtype_bytes(t->type) && t->type != RESOURCE;
}

static int decode_tensor(const msgpack_object *map, struct ckpt_manifest *m, struct error *err)
{
    struct manifest_tensor t = {0};
    const char *type;
    int64_t bytes, updates;
    const msgpack_object *chunks = record_field(map, "chunks");
    if (!record_get_text(map, "name", &m->arena, &t.name) || !ckpt_name_fits(t.name) ||
        !record_get_text(map, "container", &m->arena, &t.container) || !ckpt_name_fits(t.container))
        return bad_manifest(err, "a tensor without a name");
    if (!record_get_text(map, "type", &m->arena, &type) || !dtype_parse(type, &t.type) ||
        !record_read_shape(record_field(map, "shape"), 0, &t.shape))
        return bad_manifest(err, t.name);
    if (!record_get_int(map, "bytes", &bytes) || bytes < 0 ||
        !record_get_int(map, "updates", &updates) || updates < 0)
        return bad_manifest(err, t.name);
    t.bytes = (uint64_t)bytes;
    t.updates = (uint64_t)updates;
    if (!size_fits(&t) || !chunks || chunks->type != MSGPACK_OBJECT_BIN ||
        chunks->via.bin.size != chunk_count(t.bytes) * DIGEST_BYTES)
        return bad_manifest(err, t.name);
    if (!record_get_slice(map, &m->arena, &t.shape, &t.slice))
        return bad_manifest(err, t.name);
    t.chunks = arena_copy(&m->arena, chunks->via.bin.ptr, chunks->via.bin.size);
    vec_push(&m->tensors, t);
    return 0;
}

static int take_scalar(struct ckpt_manifest *m, const char *name, const msgpack_object *value)
{
    if (value->type != MSGPACK_OBJECT_FLOAT64)
        return -1;
    struct manifest_scalar scalar = {name, value->via.f64};
    vec_push(&m->scalars, scalar);
    return 0;
}

static int take_blob(struct ckpt_manifest *m, const char *name, const msgpack_object *value)
{
    if (value->type != MSGPACK_OBJECT_BIN)
        return -1;
    size_t n = value->via.bin.size;
    struct manifest_blob blob = {name, arena_copy(&m->arena, value->via.bin.ptr, n), n};
    vec_push(&m->blobs, blob);
    return 0;
}

static int take_shard(struct ckpt_manifest *m, const char *name, const msgpack_object *value)
{
    struct manifest_shard shard = {.name = name};
    if (value->type != MSGPACK_OBJECT_BIN || value->via.bin.size != DIGEST_BYTES ||
        strchr(name, '/') || *name == '.' || !*name) /* it is a folder's name */
        return -1;
    memcpy(&shard.manifest, value->via.bin.ptr, DIGEST_BYTES);
    vec_push(&m->shards, shard);
    return 0;
}

static int decode_map(struct ckpt_manifest *m, const msgpack_object *top, const char *key,
                      int (*take)(struct ckpt_manifest *, const char *, const msgpack_object *),
                      struct error *err)
{
    const msgpack_object *map = record_field(top, key);
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return bad_manifest(err, key);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *text = &map->via.map.ptr[i].key;
        if (text->type != MSGPACK_OBJECT_STR)
            return bad_manifest(err, key);
        const char *name = arena_strndup(&m->arena, text->via.str.ptr, text->via.str.size);
        if (!ckpt_name_fits(name) || take(m, name, &map->via.map.ptr[i].val))
            return bad_manifest(err, key);
    }
    return 0;
}

static int decode_run(struct ckpt_manifest *m, const msgpack_object *top, struct error *err)
{
    const msgpack_object *id = record_field(top, "run");
    const char *name;
    if (!id)
        return 0;
    if (id->type != MSGPACK_OBJECT_BIN || id->via.bin.size != RUN_BYTES)
        return bad_manifest(err, "run");
    memcpy(m->run.id, id->via.bin.ptr, RUN_BYTES);
    if (!record_get_text(top, "run_name", &m->arena, &name))
        return bad_manifest(err, "run_name");
    struct error ignored = ERROR_INIT;
    return *name && run_set_name(&m->run, name, &ignored) ? bad_manifest(err, "run_name") : 0;
}

static int decode_top(struct ckpt_manifest *m, const msgpack_object *top, struct error *err)
{
    int64_t format, bytes, new_bytes, n_tensors;
    if (!record_get_int(top, "format", &format))
        return bad_manifest(err, "format");
    if (format != FORMAT)
        return error_set(err, ERR_PROTOCOL, "format %lld is newer than this program",
                         (long long)format);
    if (!record_get_int(top, "step", &m->step) || m->step < 0 ||
        !record_get_int(top, "sequence", &m->sequence) || !record_get_int(top, "time", &m->time) ||
        !record_get_text(top, "producer", &m->arena, &m->producer) ||
        !record_get_int(top, "n_tensors", &n_tensors) || !record_get_int(top, "bytes", &bytes) ||
        !record_get_int(top, "new_bytes", &new_bytes))
        return bad_manifest(err, "a field is missing");
    if (m->sequence < 0 || n_tensors < 0 || bytes < 0 || new_bytes < 0)
        return bad_manifest(err, "a number is below 0");
    m->n_tensors = (uint64_t)n_tensors;
    m->bytes = (uint64_t)bytes;
    m->new_bytes = (uint64_t)new_bytes;
    if (decode_run(m, top, err))
        return err->code;
    const msgpack_object *tensors = record_field(top, "tensors");
    if (!tensors || tensors->type != MSGPACK_OBJECT_ARRAY)
        return bad_manifest(err, "tensors");
    for (uint32_t i = 0; i < tensors->via.array.size; i++)
        if (decode_tensor(&tensors->via.array.ptr[i], m, err))
            return err->code;
    if (decode_map(m, top, "scalars", take_scalar, err) ||
        decode_map(m, top, "blobs", take_blob, err) ||
        decode_map(m, top, "shards", take_shard, err))
        return err->code;
    return 0;
}

int ckpt_manifest_decode(const void *value, size_t n, struct ckpt_manifest *m, struct error *err)
{
    const uint8_t *body = (const uint8_t *)value + HEAD_BYTES;
    size_t n_objects;
    *m = (struct ckpt_manifest){0};
    if (n <= HEAD_BYTES || memcmp(value, MAGIC, MAGIC_BYTES))
        return bad_manifest(err, "wrong magic number");
    memcpy(&m->digest, (const char *)value + MAGIC_BYTES, DIGEST_BYTES);
    struct digest found = digest_of(body, n - HEAD_BYTES);
    if (!digest_equal(&found, &m->digest))
        return error_set(err, ERR_DATA, "the manifest's digest differs");
    if (header_measure(body, n - HEAD_BYTES, &n_objects, err))
        return error_prefix(err, "malformed manifest: ");
    msgpack_object *objects = mem_array(n_objects, sizeof *objects);
    header_unpack(body, objects);
    int code = decode_top(m, objects, err);
    mem_free(objects);
    if (code)
        ckpt_manifest_release(m);
    return code;
}

/* ---- looking up ---- */

const struct manifest_tensor *ckpt_manifest_find(struct ckpt_manifest *m, const char *container,
                                                 const char *name)
{
    for (size_t i = m->by_name.links.n ? 0 : m->tensors.n; i-- > 0;)
        name_index_add(&m->by_name, m->tensors.items[i].name, (int)i);
    for (const struct name_link *l = name_index_first(&m->by_name, name); l;
         l = name_index_next(&m->by_name, l))
        if (!strcmp(m->tensors.items[l->value].container, container))
            return &m->tensors.items[l->value];
    return NULL;
}

const struct manifest_blob *ckpt_manifest_find_blob(const struct ckpt_manifest *m, const char *name)
{
    size_t i = vec_find(&m->blobs, name);
    return i < m->blobs.n ? &m->blobs.items[i] : NULL;
}

bool ckpt_manifest_find_scalar(const struct ckpt_manifest *m, const char *name, double *value)
{
    size_t i = vec_find(&m->scalars, name);
    if (i < m->scalars.n)
        *value = m->scalars.items[i].value;
    return i < m->scalars.n;
}

/* ---- values ---- */

struct saved_part manifest_tensor_part(const struct manifest_tensor *t)
{
    return (struct saved_part){.container = t->container,
                               .name = t->name,
                               .type = t->type,
                               .shape = &t->shape,
                               .slice = &t->slice,
                               .updates = t->updates};
}

struct variable_record manifest_tensor_record(const struct manifest_tensor *t)
{
    return (struct variable_record){
        .container = t->container, .name = t->name, .updates = t->updates, .slice = t->slice};
}

struct manifest_tensor manifest_tensor_of(const struct variable_record *v)
{
    return (struct manifest_tensor){.container = v->container,
                                    .name = v->name,
                                    .type = v->value.type,
                                    .shape = v->value.shape,
                                    .bytes = tensor_bytes(&v->value),
                                    .updates = v->updates,
                                    .slice = v->slice};
}

int manifest_tensor_alloc(const struct manifest_tensor *t, struct tensor *value, struct error *err)
{
    uint64_t offsets = (uint64_t)(shape_count(&t->shape) + 1) * 8;
    return t->type == STRING
               ? tensor_alloc_strings(value, &t->shape, (size_t)(t->bytes - offsets), err)
               : tensor_alloc(value, t->type, &t->shape, err);
}

int manifest_tensor_check(const struct manifest_tensor *t, const struct tensor *value,
                          struct error *err)
{
    bool fits = t->type != STRING || tensor_strings_fit(value, t->bytes);
    return fits ? 0 : error_set(err, ERR_DATA, "data that is no string");
}

void manifest_tensor_discard(struct tensor *value)
{
    if (value->type == STRING) /* offsets that were not read must not be used */
        memset(value->data, 0, (size_t)(tensor_count(value) + 1) * 8);
    tensor_release(value);
}

int ckpt_manifest_by_sequence(const void *a, const void *b)
{
    const struct ckpt_manifest *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* ---- names ----
 *
 * As they are shown on terminals, unprintable names are refused when they are saved; when read
 * back, they would count as damage. */

bool ckpt_name_fits(const char *name)
{
    size_t n = strlen(name);
    return n <= LIMIT_NAME_BYTES && str_is_printable(name, n);
}

static int check_name(const char *what, const char *name, struct error *err)
{
    if (ckpt_name_fits(name))
        return 0;
    char shown[4 * SHOWN_BYTES + 1] = "";
    size_t n = strlen(name), used = 0;
    for (size_t i = 0; i < n && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c >= ' ' && c < 0x7f && c != '\\';
        used += (size_t)snprintf(shown + used, sizeof shown - used, plain ? "%c" : "\\x%02x", c);
    }
    if (n > LIMIT_NAME_BYTES)
        return error_set(err, ERR_DATA, "%s '%s...' has a name of %zu bytes; %zu are allowed", what,
                         shown, n, LIMIT_NAME_BYTES);
    return error_set(err, ERR_DATA, "%s '%s%s' has a name that cannot be printed", what, shown,
                     n > SHOWN_BYTES ? "..." : "");
}

int ckpt_manifest_check_names(const struct ckpt_manifest *m, struct error *err)
{
    vec_each(t, &m->tensors)
        if (check_name("tensor", t->name, err) || check_name("the container", t->container, err) ||
            (t->slice.of && check_name("the table", t->slice.of, err)))
            return err->code;
    for (size_t i = 0; i < m->scalars.n; i++)
        if (check_name("scalar", m->scalars.items[i].name, err))
            return err->code;
    for (size_t i = 0; i < m->blobs.n; i++)
        if (check_name("blob", m->blobs.items[i].name, err))
            return err->code;
    for (size_t i = 0; i < m->shards.n; i++)
        if (check_name("shard", m->shards.items[i].name, err))
            return err->code;
    return 0;
}
