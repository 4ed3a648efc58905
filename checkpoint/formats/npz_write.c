/* SPDX-License-Identifier: Apache-2.0
 *
 * ZIP as in PKWARE's APPNOTE 6.3; the numbers in brackets are its sections. Members are stored,
 * with ZIP64 sizes, as NumPy writes them. Checksums and sizes come before the data, so that the
 * output may be a pipe: a member is a header followed by the tensor's memory.
 */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint/formats/archive.h"
#include "wire/npy.h"

#define VERSION 45  /* [4.4.3] ZIP64 */
#define UTF8 0x0800 /* [4.4.4] names are UTF-8 */
#define DATE 0x0021 /* 1980-01-01, as NumPy has it: equal tensors make equal files */
#define MAX32 0xffffffffu

struct zip {
    FILE *file;
    uint64_t offset, n;
    struct str directory;
};

static void put(struct str *s, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_append_char(s, (char)(value >> 8 * i));
}

static int write_out(struct zip *zip, const void *data, size_t n, struct error *err)
{
    zip->offset += n;
    if (n && fwrite(data, 1, n, zip->file) != n)
        return error_set_errno(err, ERR_IO, "writing .npz");
    return 0;
}

/* Writes the fields that the local header and the directory share, [4.3.7] from the third on. */
static void put_member(struct str *s, uint32_t crc, size_t name_bytes, int extra_bytes)
{
    put(s, VERSION, 2);
    put(s, UTF8, 2);
    put(s, 0, 2); /* stored */
    put(s, 0, 2); /* midnight */
    put(s, DATE, 2);
    put(s, crc, 4);
    put(s, MAX32, 4); /* both sizes: in the extra field */
    put(s, MAX32, 4);
    put(s, name_bytes, 2);
    put(s, (uint64_t)extra_bytes, 2);
}

/* `npy` is the header before the value's data. */
static int add_member(struct zip *zip, const char *name, const struct str *npy,
                      const struct tensor *value, struct error *err)
{
    struct str header = STR_INIT;
    size_t name_bytes = strlen(name), value_bytes = tensor_bytes(value);
    uint64_t offset = zip->offset, n = npy->n + value_bytes;
    uint32_t crc = (uint32_t)crc32_z(0, (const Bytef *)npy->data, npy->n);
    if (value_bytes)
        crc = (uint32_t)crc32_z(crc, value->data, value_bytes);
    put(&header, 0x04034b50, 4); /* [4.3.7] */
    put_member(&header, crc, name_bytes, 20);
    str_append(&header, name);
    put(&header, 1, 2); /* [4.5.3] */
    put(&header, 16, 2);
    put(&header, n, 8);
    put(&header, n, 8);
    if (!write_out(zip, header.data, header.n, err) && !write_out(zip, npy->data, npy->n, err))
        write_out(zip, value->data, value_bytes, err);
    str_release(&header);
    put(&zip->directory, 0x02014b50, 4); /* [4.3.12] */
    put(&zip->directory, VERSION, 2);
    put_member(&zip->directory, crc, name_bytes, 28);
    put(&zip->directory, 0, 2); /* no comment */
    put(&zip->directory, 0, 2); /* disk */
    put(&zip->directory, 0, 2);
    put(&zip->directory, 0, 4);     /* attributes */
    put(&zip->directory, MAX32, 4); /* offset: in the extra field */
    str_append(&zip->directory, name);
    put(&zip->directory, 1, 2);
    put(&zip->directory, 24, 2);
    put(&zip->directory, n, 8);
    put(&zip->directory, n, 8);
    put(&zip->directory, offset, 8);
    zip->n++;
    return err->code;
}

int npz_write(FILE *file, const struct archive_input *input, struct error *err)
{
    struct zip zip = {.file = file};
    error_clear(err);
    for (size_t i = 0; i < input->n; i++)
        if (!dtype_npy(input->entries[i].type))
            return error_set(err, ERR_DATA, "'%s': .npy has no type %s", input->entries[i].name,
                             dtype_name(input->entries[i].type));
    for (size_t i = 0; i < input->n && !err->code; i++) {
        struct tensor value;
        if (input->read(input->context, i, &value, err))
            break;
        struct str name = STR_INIT, header = STR_INIT;
        str_printf(&name, "%s.npy", input->entries[i].name);
        npy_print_header(&header, &value);
        add_member(&zip, name.data, &header, &value, err);
        str_release(&header);
        str_release(&name);
        tensor_release(&value);
    }
    if (!err->code) {
        /* NumPy recognizes an archive without members only by the short end record. */
        struct str *s = &zip.directory;
        uint64_t start = zip.offset, bytes = s->n;
        if (zip.n) {
            put(s, 0x06064b50, 4); /* [4.3.14] */
            put(s, 44, 8);
            put(s, VERSION, 2);
            put(s, VERSION, 2);
            put(s, 0, 8); /* disks */
            put(s, zip.n, 8);
            put(s, zip.n, 8);
            put(s, bytes, 8);
            put(s, start, 8);
            put(s, 0x07064b50, 4); /* [4.3.15] */
            put(s, 0, 4);
            put(s, start + bytes, 8);
            put(s, 1, 4);
        }
        put(s, 0x06054b50, 4); /* [4.3.16] */
        put(s, 0, 4);
        put(s, zip.n < 0xffff ? zip.n : 0xffff, 2);
        put(s, zip.n < 0xffff ? zip.n : 0xffff, 2);
        put(s, bytes < MAX32 ? bytes : MAX32, 4);
        put(s, start < MAX32 ? start : MAX32, 4);
        put(s, 0, 2);
        write_out(&zip, s->data, s->n, err);
    }
    str_release(&zip.directory);
    return err->code;
}
