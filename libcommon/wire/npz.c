/* SPDX-License-Identifier: Apache-2.0
 *
 * The ZIP format is that of PKWARE's APPNOTE 6.3; the numbers in brackets are its sections.
 */
#include "wire/npz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/str.h"
#include "wire/npy.h"

enum {
    LOCAL_BYTES = 30,     /* [4.3.7] */
    CENTRAL_BYTES = 46,   /* [4.3.12] */
    END64_BYTES = 56,     /* [4.3.14] */
    LOCATOR64_BYTES = 20, /* [4.3.15] */
    END_BYTES = 22,       /* [4.3.16] */
    COMMENT_BYTES = 65535,
};

#define DEFLATE_RATIO_MAX 1032 /* no deflated byte stands for more */

struct npz_archive {
    const uint8_t *data;
    size_t n;
    const char *name; /* for messages */
    uint64_t directory, n_entries;
    uint64_t end;      /* of the directory */
    uint64_t unpacked; /* bytes so far, against archives that name the same data many times */
};

struct npz_member {
    const char *name;
    size_t name_n;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, bytes, offset;
};

static uint64_t get(const uint8_t *p, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

/* The n bytes at offset, if they are there and begin with the signature. */
static const uint8_t *at(const struct npz_archive *a, uint64_t offset, uint64_t n,
                         uint32_t signature)
{
    if (offset > a->n || n > a->n - offset || get(a->data + offset, 4) != signature)
        return NULL;
    return a->data + offset;
}

static int malformed(const struct npz_archive *a, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: malformed zip archive: %s", a->name, what);
}

static int find_directory(struct npz_archive *a, struct error *err)
{
    const uint8_t *end = NULL;
    size_t first = a->n > END_BYTES + COMMENT_BYTES ? a->n - END_BYTES - COMMENT_BYTES : 0, i;
    for (i = a->n; i-- > first && !end;)
        end = at(a, i, END_BYTES, 0x06054b50);
    if (!end)
        return error_set(err, ERR_DATA, "%s: not a .npz file, or truncated", a->name);
    i = (size_t)(end - a->data);
    a->end = i;
    a->n_entries = get(end + 10, 2);
    a->directory = get(end + 16, 4);
    bool is_short = a->n_entries != 0xffff && a->directory != 0xffffffff;
    if (i < LOCATOR64_BYTES || !(end = at(a, i - LOCATOR64_BYTES, LOCATOR64_BYTES, 0x07064b50)))
        return 0; /* 65,535 members are possible without ZIP64 */
    end = at(a, a->end = get(end + 8, 8), END64_BYTES, 0x06064b50);
    if (!end)
        return malformed(a, "no end of the directory", err);
    if (is_short) /* it is told twice */
        return 0;
    a->n_entries = get(end + 32, 8);
    a->directory = get(end + 48, 8);
    return 0;
}

/* [4.5.3]: holds, in this order, those of the fields that are all ones in the entry. */
static bool read_zip64(const uint8_t *extra, size_t n, struct npz_member *m)
{
    uint64_t *const fields[] = {&m->bytes, &m->packed, &m->offset};
    while (n >= 4) {
        size_t size = get(extra + 2, 2);
        if (size > n - 4)
            return false;
        if (get(extra, 2) == 1) {
            for (int i = 0, used = 0; i < 3; i++) {
                if (*fields[i] != 0xffffffff)
                    continue;
                if (size < (size_t)used + 8)
                    return false;
                *fields[i] = get(extra + 4 + used, 8);
                used += 8;
            }
            return true;
        }
        extra += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* Takes the directory's entry at a->directory and steps over it. */
static int read_entry(struct npz_archive *a, struct npz_member *m, struct error *err)
{
    const uint8_t *p = at(a, a->directory, CENTRAL_BYTES, 0x02014b50);
    if (!p)
        return malformed(a, "no entry where the directory says", err);
    size_t extra_n = get(p + 30, 2), total;
    *m = (struct npz_member){
        .name = (const char *)p + CENTRAL_BYTES,
        .name_n = get(p + 28, 2),
        .flags = (unsigned)get(p + 8, 2),
        .method = (unsigned)get(p + 10, 2),
        .crc = (uint32_t)get(p + 16, 4),
        .packed = get(p + 20, 4),
        .bytes = get(p + 24, 4),
        .offset = get(p + 42, 4),
    };
    total = CENTRAL_BYTES + m->name_n + extra_n + get(p + 32, 2);
    if (!at(a, a->directory, total, 0x02014b50) ||
        !read_zip64(p + CENTRAL_BYTES + m->name_n, extra_n, m))
        return malformed(a, "an entry is cut", err);
    if (memchr(m->name, 0, m->name_n))
        return malformed(a, "a name with a NUL", err);
    a->directory += total;
    return 0;
}

/* The member's packed bytes, or NULL with the error set. */
static const uint8_t *find_data(struct npz_archive *a, const struct npz_member *m,
                                struct error *err)
{
    const uint8_t *p = at(a, m->offset, LOCAL_BYTES, 0x04034b50);
    uint64_t start = p ? m->offset + LOCAL_BYTES + get(p + 26, 2) + get(p + 28, 2) : 0;
    if (!p || start > a->n || m->packed > a->n - start) {
        malformed(a, "a member lies outside", err);
        return NULL;
    }
    if (get(p + 26, 2) != m->name_n || memcmp(p + LOCAL_BYTES, m->name, m->name_n) != 0 ||
        get(p + 8, 2) != m->method) {
        malformed(a, "the member is another one than the directory says", err);
        return NULL;
    }
    a->unpacked += m->bytes < UINT64_MAX / 2 - a->unpacked ? m->bytes : UINT64_MAX / 2;
    bool bomb = a->unpacked / DEFLATE_RATIO_MAX > a->n;
    if (bomb || (!m->method && m->packed != m->bytes)) {
        malformed(a, "a member's size is wrong", err);
        return NULL;
    }
    return a->data + start;
}

/* zlib counts in 32 bits: feeds it in pieces. */
static bool inflate_all(z_stream *z, const uint8_t *in, uint64_t n, uint8_t *out, uint64_t room)
{
    int status = Z_OK;
    while (status == Z_OK) {
        unsigned in_n = n < 1u << 30 ? (unsigned)n : 1u << 30;
        unsigned out_n = room < 1u << 30 ? (unsigned)room : 1u << 30;
        z->next_in = (unsigned char *)(uintptr_t)in;
        z->avail_in = in_n;
        z->next_out = out;
        z->avail_out = out_n;
        status = inflate(z, Z_NO_FLUSH);
        in += in_n - z->avail_in;
        n -= in_n - z->avail_in;
        out += out_n - z->avail_out;
        room -= out_n - z->avail_out;
    }
    return status == Z_STREAM_END && !n && !room;
}

static uint8_t *unpack(const struct npz_archive *a, const struct npz_member *m, const uint8_t *data,
                       struct error *err)
{
    z_stream z = {0};
    uint8_t *bytes = mem_try(m->bytes);
    if (!bytes || inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        mem_free(bytes);
        error_set(err, ERR_OS, "%s: no memory to unpack %llu bytes", a->name,
                  (unsigned long long)m->bytes);
        return NULL;
    }
    bool good = inflate_all(&z, data, m->packed, bytes, m->bytes);
    inflateEnd(&z);
    if (good)
        return bytes;
    mem_free(bytes);
    malformed(a, "a deflated member is damaged", err);
    return NULL;
}

static int read_array(struct npz_archive *a, const struct npz_member *m, struct tensor *t,
                      struct error *err)
{
    uint8_t *unpacked = NULL;
    const uint8_t *data;
    if (m->flags & 1)
        return error_set(err, ERR_DATA, "%s: encrypted archives are not supported", a->name);
    if (m->method != 0 && m->method != 8)
        return error_set(err, ERR_DATA, "%s: zip compression %u is not supported", a->name,
                         m->method);
    if (!(data = find_data(a, m, err)))
        return err->code;
    if (m->method && !(data = unpacked = unpack(a, m, data, err)))
        return err->code;
    if (crc32_z(0, data, m->bytes) != m->crc)
        malformed(a, "the checksum of a member is wrong", err);
    else
        npy_read_memory(data, m->bytes, a->name, t, err);
    mem_free(unpacked);
    return err->code;
}

static bool ends_in(const struct npz_member *m, const char *ending)
{
    size_t n = strlen(ending);
    return m->name_n >= n && !memcmp(m->name + m->name_n - n, ending, n);
}

/* Takes what the member holds; a folder, which holds nothing, is none. */
static int read_member(struct npz_archive *a, const struct npz_member *m, struct npz *npz,
                       struct error *err)
{
    struct named_tensor *array = &npz->arrays[npz->n];
    const char *name = a->name;
    if (ends_in(m, "/") && !m->bytes)
        return 0;
    if (m->name_n == strlen(".npy") || !ends_in(m, ".npy")) {
        const char *other = arena_strndup(&npz->arena, m->name, m->name_n);
        return error_set(err, ERR_DATA, "%s: member '%s' is no .npy file", name,
                         str_is_printable(other, m->name_n) ? other : "?");
    }
    array->name = arena_strndup(&npz->arena, m->name, m->name_n - strlen(".npy"));
    a->name = arena_printf(&npz->arena, "%s: array '%s'", name, array->name);
    if (read_array(a, m, &array->tensor, err))
        return err->code;
    a->name = name;
    npz->n++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const struct npz_archive *a, struct npz *npz, struct error *err)
{
    const char **names = arena_array(&npz->arena, (size_t)npz->n + 1, sizeof *names);
    for (int i = 0; i < npz->n; i++)
        names[i] = npz->arrays[i].name;
    qsort(names, (size_t)npz->n, sizeof *names, by_name);
    for (int i = 1; i < npz->n; i++)
        if (!strcmp(names[i - 1], names[i]))
            return error_set(err, ERR_DATA, "%s: array '%s' is in it twice", a->name, names[i]);
    return 0;
}

static int read_members(struct npz_archive *a, struct npz *npz, struct error *err)
{
    struct npz_member m;
    if (find_directory(a, err))
        return err->code;
    if (a->n_entries > a->n / CENTRAL_BYTES)
        return malformed(a, "more members than bytes for them", err);
    npz->arrays = arena_array(&npz->arena, a->n_entries + 1, sizeof *npz->arrays);
    for (uint64_t i = 0; i < a->n_entries; i++)
        if (read_entry(a, &m, err) || read_member(a, &m, npz, err))
            return err->code;
    if (a->directory != a->end)
        return malformed(a, "the number of its members is wrong", err);
    return check_names(a, npz, err);
}

int npz_read_memory(const void *data, size_t n, const char *name, struct npz *npz,
                    struct error *err)
{
    struct npz_archive a = {.data = data, .n = n, .name = name};
    memset(npz, 0, sizeof *npz);
    error_clear(err);
    if (read_members(&a, npz, err))
        npz_release(npz);
    return err->code;
}

/* Everything that the file holds. */
static int load(struct gzfile *file, uint8_t **data, size_t *n, struct error *err)
{
    size_t capacity = 0, got = 1;
    for (*data = NULL, *n = 0; got; *n += got) {
        if (*n == capacity) {
            capacity = capacity ? capacity * 2 : (size_t)1 << 20;
            uint8_t *grown = mem_try(capacity);
            if (!grown)
                return error_set(err, ERR_OS, "%s: no memory for %zu bytes", gzfile_name(file),
                                 capacity);
            if (*n)
                memcpy(grown, *data, *n);
            mem_free(*data);
            *data = grown;
        }
        if (gzfile_read(file, *data + *n, capacity - *n, &got, err))
            return err->code;
    }
    return 0;
}

int npz_read(const char *path, struct npz *npz, struct error *err)
{
    struct gzfile *file;
    uint8_t *data;
    size_t n;
    memset(npz, 0, sizeof *npz);
    if (gzfile_open(path, &file, err))
        return err->code;
    int status = load(file, &data, &n, err);
    if (!status)
        status = npz_read_memory(data, n, gzfile_name(file), npz, err);
    mem_free(data);
    gzfile_close(file);
    return status;
}

void npz_release(struct npz *npz)
{
    for (int i = 0; i < npz->n; i++)
        tensor_release(&npz->arrays[i].tensor);
    arena_release(&npz->arena);
    memset(npz, 0, sizeof *npz);
}
