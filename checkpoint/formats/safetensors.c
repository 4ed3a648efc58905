/* SPDX-License-Identifier: Apache-2.0
 *
 * A safetensors file is a 64-bit length, as many bytes of JSON, and the data:
 * {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, ...}, with offsets from
 * the end of the JSON. The data of all tensors tile the rest of the file without holes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "checkpoint/formats/archive.h"
#include "show/show.h"

#define HEADER_BYTES_MAX 100000000
#define ALIGNMENT 8

static const struct {
    const char *name;
    enum dtype type;
} types[] = {{"BOOL", BOOL},  {"U8", UINT8},     {"I8", INT8},       {"I16", INT16},
             {"U16", UINT16}, {"F16", FLOAT16},  {"BF16", BFLOAT16}, {"I32", INT32},
             {"U32", UINT32}, {"F32", FLOAT32},  {"F64", FLOAT64},   {"I64", INT64},
             {"U64", UINT64}, {"C64", COMPLEX64}};
#define N_TYPES (sizeof types / sizeof *types)

static const char *dtype_text(enum dtype type)
{
    for (size_t i = 0; i < N_TYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    return NULL;
}

/* ---- writing ---- */

static int print_header(struct str *text, const struct archive_input *input, struct error *err)
{
    uint64_t at = 0;
    str_append_char(text, '{');
    for (size_t i = 0; i < input->n; i++) {
        const struct archive_entry *e = &input->entries[i];
        if (!dtype_text(e->type))
            return error_set(err, ERR_DATA, "'%s': safetensors has no type %s", e->name,
                             dtype_name(e->type));
        str_append(text, i ? "," : "");
        show_json_text(text, e->name, strlen(e->name));
        str_printf(text, ":{\"dtype\":\"%s\",\"shape\":[", dtype_text(e->type));
        for (int k = 0; k < e->shape.rank; k++)
            str_printf(text, "%s%" PRId64, k ? "," : "", e->shape.dims[k]);
        str_printf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + e->bytes);
        at += e->bytes;
    }
    str_append_char(text, '}');
    while (text->n % ALIGNMENT)
        str_append_char(text, ' ');
    return 0;
}

int safetensors_write(FILE *file, const struct archive_input *input, struct error *err)
{
    struct str text = STR_INIT;
    uint8_t length[8];
    error_clear(err);
    if (!print_header(&text, input, err)) {
        for (int i = 0; i < 8; i++)
            length[i] = (uint8_t)((uint64_t)text.n >> 8 * i);
        if (fwrite(length, 1, 8, file) != 8 || fwrite(text.data, 1, text.n, file) != text.n)
            error_set_errno(err, ERR_IO, "writing safetensors");
    }
    str_release(&text);
    for (size_t i = 0; i < input->n && !err->code; i++) {
        struct tensor value;
        if (input->read(input->context, i, &value, err))
            break;
        size_t n = tensor_bytes(&value);
        if (n && fwrite(value.data, 1, n, file) != n)
            error_set_errno(err, ERR_IO, "writing safetensors");
        tensor_release(&value);
    }
    return err->code;
}

/* ---- reading ---- */

struct byte_range {
    uint64_t begin, end;
};

/* Returns -1 for what is no whole number from 0 on. */
static int64_t whole(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : -1;
}

static int parse_tensor(const char *name, const json_t *value, struct archive_entry *entry,
                        struct byte_range *range, struct error *err)
{
    const char *type = json_string_value(json_object_get(value, "dtype"));
    if (strlen(name) > LIMIT_NAME_BYTES || !*name || !str_is_printable(name, strlen(name)))
        return error_set(err, ERR_DATA, "a tensor's name is not fit to print");
    size_t at = type ? names_find(types, N_TYPES, type) : N_TYPES;
    if (at == N_TYPES)
        return error_set(err, ERR_DATA, "'%s': no tensor has the type %.20s", name,
                         type ? type : "that is missing");
    entry->type = types[at].type;
    const json_t *dims = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    bool has_rank = json_is_array(dims) && json_array_size(dims) <= SHAPE_RANK_MAX;
    entry->shape = (struct shape){.rank = has_rank ? (int)json_array_size(dims) : SHAPE_UNKNOWN};
    for (int i = 0; i < entry->shape.rank; i++)
        entry->shape.dims[i] = whole(json_array_get(dims, (size_t)i));
    int64_t begin = whole(json_array_get(offsets, 0)), end = whole(json_array_get(offsets, 1));
    if (json_array_size(offsets) != 2 || begin < 0 || end < begin ||
        shape_bytes(&entry->shape, entry->type) != end - begin)
        return error_set(err, ERR_DATA, "'%s': shape and offsets make no tensor", name);
    *range = (struct byte_range){(uint64_t)begin, (uint64_t)end};
    return 0;
}

/* A file in memory: `loaded` owns it, unless the caller does. */
struct safetensors_file {
    const uint8_t *data;
    uint64_t n;
    struct buffer *loaded;
};

static int take_tensor(struct archive *archive, const char *name, const struct archive_entry *entry,
                       const struct safetensors_file *file, const uint8_t *data, struct error *err)
{
    struct named_tensor t = {.name = arena_strdup(&archive->arena, name)};
    /* Borrows the file's memory if `loaded` owns it and it is aligned for the type; else copies. */
    if (file->loaded && (uintptr_t)data % dtype_bytes(entry->type) == 0) {
        t.tensor = tensor_borrow(entry->type, &entry->shape, (void *)(uintptr_t)data);
        t.tensor.buffer = file->loaded;
        atomic_fetch_add(&file->loaded->holders, 1);
    } else if (tensor_alloc(&t.tensor, entry->type, &entry->shape, err)) {
        return error_prefix(err, "'%s': ", name);
    } else {
        memcpy(t.tensor.data, data, tensor_bytes(&t.tensor));
    }
    vec_push(&archive->tensors, t);
    for (size_t i = 0, n = tensor_bytes(&t.tensor); entry->type == BOOL && i < n; i++)
        if (data[i] > 1)
            return error_set(err, ERR_DATA, "'%s': data that is no bool", name);
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct byte_range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool ranges_tile(struct byte_range *ranges, size_t n, uint64_t bytes)
{
    uint64_t at = 0;
    if (n)
        qsort(ranges, n, sizeof *ranges, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].begin != at)
            return false;
        at = ranges[i].end;
    }
    return at == bytes;
}

/* `file` is the data after the header. */
static int parse_all(json_t *top, const struct safetensors_file *file, struct archive *archive,
                     struct error *err)
{
    const char *name;
    json_t *value;
    VEC(struct byte_range) ranges = VEC_INIT;
    json_object_foreach(top, name, value)
    {
        struct archive_entry entry = {0};
        struct byte_range range;
        if (!strcmp(name, "__metadata__"))
            continue;
        if (parse_tensor(name, value, &entry, &range, err))
            break;
        if (range.end > file->n) {
            error_set(err, ERR_DATA, "'%s': truncated: its data is not there", name);
            break;
        }
        vec_push(&ranges, range);
        if (take_tensor(archive, name, &entry, file, file->data + range.begin, err))
            break;
    }
    if (!err->code && !ranges_tile(ranges.items, ranges.n, file->n))
        error_set(err, ERR_DATA, "the tensors overlap, or leave holes");
    vec_release(&ranges);
    return err->code;
}

static int parse(const struct safetensors_file *file, const char *name, struct archive *archive,
                 struct error *err)
{
    uint64_t length = 0, n = file->n;
    json_error_t why;
    *archive = (struct archive){0};
    error_clear(err);
    for (int i = 7; i >= 0 && n >= 8; i--)
        length = length << 8 | file->data[i];
    if (n < 8 || length > HEADER_BYTES_MAX || length > n - 8)
        return error_set(err, ERR_DATA, "%s: not a safetensors file, or truncated", name);
    json_t *top =
        json_loadb((const char *)file->data + 8, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    const struct safetensors_file rest = {file->data + 8 + length, n - 8 - length, file->loaded};
    if (!json_is_object(top))
        error_set(err, ERR_DATA, "%s: its header is no JSON: %s", name, top ? "a list" : why.text);
    else if (parse_all(top, &rest, archive, err))
        error_prefix(err, "%s: ", name);
    json_decref(top);
    if (err->code)
        archive_release(archive);
    return err->code;
}

int safetensors_read_memory(const void *data, size_t n, const char *name, struct archive *archive,
                            struct error *err)
{
    return parse(&(struct safetensors_file){data, n, NULL}, name, archive, err);
}

int safetensors_read(const char *path, struct archive *archive, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status)) {
        error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s", path);
        close_if_open(fd);
        return err->code;
    }
    size_t n = (size_t)status.st_size, done = 0;
    struct buffer *loaded = buffer_new(n + 1);
    ssize_t got = 1;
    while (loaded && done < n && (got = read(fd, (char *)loaded->data + done, n - done)) > 0)
        done += (size_t)got;
    if (!loaded)
        error_set(err, ERR_OS, "%s: no memory for %zu bytes", path, n);
    else if (got < 0)
        error_set_errno(err, ERR_IO, "%s", path);
    else
        parse(&(struct safetensors_file){loaded->data, done, loaded}, path, archive, err);
    struct tensor hold = {.buffer = loaded};
    tensor_release(&hold);
    close(fd);
    return err->code;
}
