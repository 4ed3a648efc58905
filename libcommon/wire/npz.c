/* SPDX-License-Identifier: Apache-2.0
 *
 * The ZIP format is that of PKWARE's APPNOTE 6.3; the numbers in brackets are its sections.
 */
#include "wire/npz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
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

#define DEFLATE_RATIO_MAX 1032 /* the largest ratio of deflate */

struct directory {
    uint64_t at, end, n_entries;
};

struct zip_member { /* an entry of the directory */
    const char *name;
    size_t name_n;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, bytes, offset;
};

struct npz_array {
    const char *name;
    struct zip_member member;
};

static uint64_t read_le(const uint8_t *p, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

/* Returns the n bytes at offset if they exist and begin with the signature, else NULL. */
static const uint8_t *at(const struct npz *a, uint64_t offset, uint64_t n, uint32_t signature)
{
    if (offset > a->n_data || n > a->n_data - offset || read_le(a->data + offset, 4) != signature)
        return NULL;
    return a->data + offset;
}

static int bad_archive(const struct npz *a, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: malformed zip archive: %s", a->name, what);
}

static int find_directory(const struct npz *a, struct directory *d, struct error *err)
{
    const uint8_t *end = NULL;
    size_t n = a->n_data, i;
    size_t first = n > END_BYTES + COMMENT_BYTES ? n - END_BYTES - COMMENT_BYTES : 0;
    for (i = n; i-- > first && !end;)
        end = at(a, i, END_BYTES, 0x06054b50);
    if (!end)
        return error_set(err, ERR_DATA, "%s: not a .npz file, or truncated", a->name);
    i = (size_t)(end - a->data);
    *d =
        (struct directory){.at = read_le(end + 16, 4), .end = i, .n_entries = read_le(end + 10, 2)};
    bool is_short = d->n_entries != 0xffff && d->at != 0xffffffff;
    if (i < LOCATOR64_BYTES || !(end = at(a, i - LOCATOR64_BYTES, LOCATOR64_BYTES, 0x07064b50)))
        return 0; /* 65,535 members are possible without ZIP64 */
    end = at(a, d->end = read_le(end + 8, 8), END64_BYTES, 0x06064b50);
    if (!end)
        return bad_archive(a, "no end of the directory", err);
    if (is_short) /* the ZIP64 record only repeats it */
        return 0;
    d->n_entries = read_le(end + 32, 8);
    d->at = read_le(end + 48, 8);
    return 0;
}

/* [4.5.3]: holds, in this order, the fields whose bits are all ones in the entry. */
static bool read_zip64(const uint8_t *extra, size_t n, struct zip_member *m)
{
    uint64_t *const fields[] = {&m->bytes, &m->packed, &m->offset};
    while (n >= 4) {
        size_t size = read_le(extra + 2, 2);
        if (size > n - 4)
            return false;
        if (read_le(extra, 2) == 1) {
            for (int i = 0, used = 0; i < 3; i++) {
                if (*fields[i] != 0xffffffff)
                    continue;
                if (size < (size_t)used + 8)
                    return false;
                *fields[i] = read_le(extra + 4 + used, 8);
                used += 8;
            }
            return true;
        }
        extra += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* Parses the entry at d->at and advances past it. */
static int read_entry(const struct npz *a, struct directory *d, struct zip_member *m,
                      struct error *err)
{
    const uint8_t *p = at(a, d->at, CENTRAL_BYTES, 0x02014b50);
    if (!p)
        return bad_archive(a, "no entry where the directory says", err);
    size_t extra_n = read_le(p + 30, 2), total;
    *m = (struct zip_member){
        .name = (const char *)p + CENTRAL_BYTES,
        .name_n = read_le(p + 28, 2),
        .flags = (unsigned)read_le(p + 8, 2),
        .method = (unsigned)read_le(p + 10, 2),
        .crc = (uint32_t)read_le(p + 16, 4),
        .packed = read_le(p + 20, 4),
        .bytes = read_le(p + 24, 4),
        .offset = read_le(p + 42, 4),
    };
    total = CENTRAL_BYTES + m->name_n + extra_n + read_le(p + 32, 2);
    if (!at(a, d->at, total, 0x02014b50) || !read_zip64(p + CENTRAL_BYTES + m->name_n, extra_n, m))
        return bad_archive(a, "an entry is cut", err);
    if (memchr(m->name, 0, m->name_n))
        return bad_archive(a, "a name with a NUL", err);
    d->at += total;
    return 0;
}

/* Returns the member's compressed bytes, or NULL with the error set. */
static const uint8_t *find_data(struct npz *a, const struct zip_member *m, struct error *err)
{
    const uint8_t *p = at(a, m->offset, LOCAL_BYTES, 0x04034b50);
    uint64_t start = p ? m->offset + LOCAL_BYTES + read_le(p + 26, 2) + read_le(p + 28, 2) : 0;
    if (!p || start > a->n_data || m->packed > a->n_data - start) {
        bad_archive(a, "a member lies outside", err);
        return NULL;
    }
    if (read_le(p + 26, 2) != m->name_n || memcmp(p + LOCAL_BYTES, m->name, m->name_n) != 0 ||
        read_le(p + 8, 2) != m->method) {
        bad_archive(a, "the member is another one than the directory says", err);
        return NULL;
    }
    a->unpacked += m->bytes < UINT64_MAX / 2 - a->unpacked ? m->bytes : UINT64_MAX / 2;
    bool bomb = a->unpacked / DEFLATE_RATIO_MAX > a->n_data;
    if (bomb || (!m->method && m->packed != m->bytes)) {
        bad_archive(a, "a member's size is wrong", err);
        return NULL;
    }
    return a->data + start;
}

static uint8_t *unpack(const struct npz *a, const struct zip_member *m, const uint8_t *data,
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
    /* zlib counts in 32 bits: feed it in pieces. */
    const uint8_t *in = data;
    uint64_t n = m->packed;
    uint8_t *out = bytes;
    uint64_t room = m->bytes;
    int status = Z_OK;
    while (status == Z_OK) {
        unsigned in_n = n < 1u << 30 ? (unsigned)n : 1u << 30;
        unsigned out_n = room < 1u << 30 ? (unsigned)room : 1u << 30;
        z.next_in = (unsigned char *)(uintptr_t)in;
        z.avail_in = in_n;
        z.next_out = out;
        z.avail_out = out_n;
        status = inflate(&z, Z_NO_FLUSH);
        in += in_n - z.avail_in;
        n -= in_n - z.avail_in;
        out += out_n - z.avail_out;
        room -= out_n - z.avail_out;
    }
    bool good = status == Z_STREAM_END && !n && !room;
    inflateEnd(&z);
    if (good)
        return bytes;
    mem_free(bytes);
    bad_archive(a, "a deflated member is damaged", err);
    return NULL;
}

static int read_array(struct npz *a, const struct zip_member *m, struct tensor *t,
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
        bad_archive(a, "the checksum of a member is wrong", err);
    else
        npy_read_memory(data, m->bytes, a->name, t, err);
    mem_free(unpacked);
    if (a->is_mapped) /* pages that were read would stay in memory */
        madvise((void *)(uintptr_t)a->data, a->n_data, MADV_DONTNEED);
    return err->code;
}

int npz_read(struct npz *npz, int i, struct tensor *t, struct error *err)
{
    const struct npz_array *array = &npz->arrays[i];
    const char *file = npz->name;
    npz->name = arena_printf(&npz->arena, "%s: array '%s'", file, array->name);
    int code = read_array(npz, &array->member, t, err);
    npz->name = file;
    return code;
}

/* ---- the list of arrays ---- */

static int read_directory(struct npz *npz, struct error *err)
{
    struct directory d = {0};
    struct zip_member m;
    if (find_directory(npz, &d, err))
        return err->code;
    if (d.n_entries > npz->n_data / CENTRAL_BYTES)
        return bad_archive(npz, "more members than bytes for them", err);
    npz->arrays = arena_array(&npz->arena, d.n_entries + 1, sizeof *npz->arrays);
    for (uint64_t i = 0; i < d.n_entries; i++) {
        struct npz_array *array = &npz->arrays[npz->n];
        int64_t other;
        if (read_entry(npz, &d, &m, err))
            return err->code;
        size_t ending = strlen(".npy");
        if (m.name_n <= ending || memcmp(m.name + m.name_n - ending, ".npy", ending) != 0)
            continue;
        *array = (struct npz_array){arena_strndup(&npz->arena, m.name, m.name_n - ending), m};
        if (map_get(&npz->places, array->name, &other))
            return error_set(err, ERR_DATA, "%s: array '%s' is in it twice", npz->name,
                             array->name);
        map_put(&npz->places, array->name, npz->n++);
    }
    return d.at == d.end ? 0 : bad_archive(npz, "the number of its members is wrong", err);
}

int npz_open_memory(const void *data, size_t n, const char *name, struct npz *npz,
                    struct error *err)
{
    *npz = (struct npz){.data = data, .n_data = n};
    npz->name = arena_strdup(&npz->arena, name);
    error_clear(err);
    if (read_directory(npz, err))
        npz_close(npz);
    return err->code;
}

const char *npz_name(const struct npz *npz, int i)
{
    return npz->arrays[i].name;
}

int npz_find(const struct npz *npz, const char *name, int *i, struct error *err)
{
    int64_t place;
    if (!map_get(&npz->places, name, &place)) {
        const char **names = mem_array((size_t)npz->n + 1, sizeof *names);
        for (int k = 0; k < npz->n; k++)
            names[k] = npz_name(npz, k);
        error_set(err, ERR_DATA, "%s: no array named '%s'%s", npz->name, name,
                  str_hint(name, names));
        mem_free(names);
        return err->code;
    }
    *i = (int)place;
    return 0;
}

/* Maps a regular file; false: it is none, or it has a fault that the ordinary way of reading will
 * report. */
static bool map(const char *path, struct npz *npz)
{
    struct stat status;
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    void *data = MAP_FAILED;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size)
        data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return false;
    *npz = (struct npz){.data = data, .n_data = (size_t)status.st_size, .is_mapped = true};
    if (*npz->data != 'P') /* but gzip, or nothing */
        npz_close(npz);
    return npz->is_mapped;
}

int npz_open(const char *path, struct npz *npz, struct error *err)
{
    struct gzfile *file;
    *npz = (struct npz){0};
    error_clear(err);
    if (!map(path, npz)) {
        if (gzfile_open(path, &file, err))
            return err->code;
        gzfile_read_all(file, SIZE_MAX, &npz->loaded, &npz->n_data, err);
        gzfile_close(file);
        npz->data = npz->loaded;
    }
    npz->name = arena_strdup(&npz->arena, strcmp(path, "-") ? path : "stdin");
    if (err->code || read_directory(npz, err))
        npz_close(npz);
    return err->code;
}

void npz_close(struct npz *npz)
{
    if (npz->is_mapped)
        munmap((void *)(uintptr_t)npz->data, npz->n_data);
    mem_free(npz->loaded);
    map_release(&npz->places);
    arena_release(&npz->arena);
    *npz = (struct npz){0};
}
