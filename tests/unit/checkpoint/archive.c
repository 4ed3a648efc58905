/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged files of other programs: each is refused, or read as it was.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/bundle_private.h"
#include "lib/random.h"
#include "lib/stores.h"

#define DATA "tests/data/checkpoint/"

static char *load(const char *path, size_t *n)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status))
        fail_msg("%s", path);
    *n = (size_t)status.st_size;
    char *bytes = malloc(*n + 1);
    assert_int_equal(read(fd, bytes, *n), *n);
    close(fd);
    return bytes;
}

static void put(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static void assert_same(const struct archive *a, const struct archive *b)
{
    assert_int_equal(a->tensors.n, b->tensors.n);
    for (size_t i = 0; i < a->tensors.n; i++) {
        assert_string_equal(a->tensors.items[i].name, b->tensors.items[i].name);
        if (!tensor_equal(&a->tensors.items[i].tensor, &b->tensors.items[i].tensor))
            fail_msg("%s differs", a->tensors.items[i].name);
    }
}

/* Sums of RFC 3720, B.4, and the masked form of the table's format. */
static void sums_are_those_of_the_standard(void **state)
{
    char zeros[32] = {0}, ones[32];
    (void)state;
    memset(ones, 0xff, sizeof ones);
    assert_int_equal(bundle_crc(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(bundle_crc(0, ones, 32), 0x62a8ab43);
    assert_int_equal(bundle_crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(bundle_crc(bundle_crc(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(bundle_crc_mask(0xe3069283), 0xc78ab0e5);
}

/* Sums cover every bit of the index and of the data, except for the footer's padding. */
static void flip_every_bit(const char *const names[2])
{
    const char *folder = stores_folder();
    char paths[2][STORES_PATH_BYTES + 64];
    struct archive sound, read;
    struct error err = ERROR_INIT;
    size_t n[2], refused = 0, tried = 0;
    char *bytes[2];
    if (bundle_read(names[0], &sound, &err))
        fail_msg("%s", err.text);
    for (int f = 0; f < 2; f++) {
        bytes[f] = load(names[f], &n[f]);
        snprintf(paths[f], sizeof paths[f], "%s/x.%s", folder, f ? "data-00000-of-00001" : "index");
        put(paths[f], bytes[f], n[f]);
    }
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < 8 * n[f]; i += 3) { /* 3: two or three bits of every byte */
            bytes[f][i / 8] ^= (char)(1 << i % 8);
            put(paths[f], bytes[f], n[f]);
            bytes[f][i / 8] ^= (char)(1 << i % 8);
            tried++;
            if (bundle_read(paths[0], &read, &err)) {
                refused++;
                continue;
            }
            assert_same(&sound, &read);
            archive_release(&read);
            if (f == 1 || i / 8 < n[0] - BUNDLE_FOOTER_BYTES)
                fail_msg("bit %zu of file %d was not missed", i, f);
        }
    for (size_t cut = 0; cut < n[0]; cut += 7) {
        put(paths[0], bytes[0], cut);
        put(paths[1], bytes[1], n[1]);
        assert_int_not_equal(bundle_read(paths[0], &read, &err), 0);
    }
    assert_true(refused > tried / 2);
    archive_release(&sound);
    free(bytes[0]);
    free(bytes[1]);
    stores_remove(folder);
}

static void every_bit_of_a_bundle_counts(void **state)
{
    static const char *const files[][2] = {
        {DATA "small-tf.index", DATA "small-tf.data-00000-of-00001"},
        {DATA "parts-tf.index", DATA "parts-tf.data-00000-of-00001"},
        {DATA "small-snappy.index", DATA "small-snappy.data-00000-of-00001"},
        {DATA "parts-snappy.index", DATA "parts-snappy.data-00000-of-00001"}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        flip_every_bit(files[i]);
}

/* Element i of the tensor is first + i * by. */
static void assert_counts(const struct archive *archive, const char *name, enum dtype type,
                          struct shape shape, double first, double by)
{
    const struct tensor *t = NULL;
    for (size_t i = 0; i < archive->tensors.n; i++)
        if (!strcmp(archive->tensors.items[i].name, name))
            t = &archive->tensors.items[i].tensor;
    assert_non_null(t);
    assert_int_equal(t->type, type);
    assert_true(shape_equal(&t->shape, &shape));
    for (int64_t i = 0; i < tensor_count(t); i++) {
        double wanted = first + (double)i * by;
        if (tensor_get_float64(t, i) != (type == UINT8 ? (double)(i % 251) : wanted))
            fail_msg("%s: element %lld is %g", name, (long long)i, tensor_get_float64(t, i));
    }
}

/* Slices as tests/data/checkpoint/make.py cut them: by rows, by columns, in a grid over two data
 * files, and with a number in a key that takes three bytes. */
static void slices_of_partitioned_variables_are_joined(void **state)
{
    struct archive archive;
    struct error err = ERROR_INIT;
    (void)state;
    if (bundle_read(DATA "parts-tf.index", &archive, &err))
        fail_msg("%s", err.text);
    assert_int_equal(archive.tensors.n, 4);
    assert_counts(&archive, "row", FLOAT32, shape_matrix(10, 3), 0, 1);
    assert_counts(&archive, "col", INT32, shape_matrix(2, 70), 100, 1);
    assert_counts(&archive, "whole", FLOAT64, shape_vector(3), 0, 1);
    archive_release(&archive);
    if (bundle_read(DATA "grid-tf.index", &archive, &err))
        fail_msg("%s", err.text);
    assert_int_equal(archive.tensors.n, 4);
    assert_counts(&archive, "grid", INT64, shape_matrix(5, 200), 0, 1000);
    assert_counts(&archive, "long", UINT8, shape_vector(8200), 0, 1);
    assert_counts(&archive, "second", INT32, shape_vector(2), 1, 1);
    archive_release(&archive);
}

/* The same tables, compressed by Snappy's own library. */
static void compressed_tables_are_read(void **state)
{
    static const char *const names[] = {"small", "parts"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct archive plain, packed;
        struct error err = ERROR_INIT;
        char path[100];
        snprintf(path, sizeof path, DATA "%s-tf.index", names[i]);
        assert_int_equal(bundle_read(path, &plain, &err), 0);
        snprintf(path, sizeof path, DATA "%s-snappy.index", names[i]);
        if (bundle_read(path, &packed, &err))
            fail_msg("%s", err.text);
        assert_same(&plain, &packed);
        archive_release(&plain);
        archive_release(&packed);
    }
}

static bool unpack(const void *data, size_t n, uint8_t *bytes, uint64_t *n_bytes)
{
    uint8_t *exact = malloc(n); /* so that a sanitizer sees a read beyond the end */
    memcpy(exact, data, n);
    const struct wire_bytes packed = {exact, exact + n, false};
    bool good = snappy_length(packed, n_bytes) && *n_bytes <= 4096 &&
                snappy_unpack(packed, bytes, *n_bytes);
    free(exact);
    return good;
}

/* Each kind of element, with each encoding of its length, and elements that are not allowed. */
static const struct {
    const char *data;
    size_t n;
    const char *unpacked; /* NULL: damaged */
} elements[] = {
#define ROW(data, unpacked)                                                                        \
    {                                                                                              \
        data, sizeof data - 1, unpacked                                                            \
    }
    ROW("\0", ""),
    ROW("\3\x08"
        "abc",
        "abc"),
    ROW("\3\xf0\2"
        "abc",
        "abc"),
    ROW("\3\xf4\2\0"
        "abc",
        "abc"),
    ROW("\3\xf8\2\0\0"
        "abc",
        "abc"),
    ROW("\3\xfc\2\0\0\0"
        "abc",
        "abc"),
    ROW("\7\x08"
        "abc\1\3",
        "abcabca"),
    ROW("\7\0a\x09\1", "aaaaaaa"),
    ROW("\7\x08"
        "abc\x0e\3\0",
        "abcabca"),
    ROW("\7\x08"
        "abc\x0f\3\0\0\0",
        "abcabca"),
    ROW("\4\x08"
        "abc",
        NULL), /* too short */
    ROW("\2\x08"
        "abc",
        NULL), /* too long */
    ROW("\7\x08"
        "abc\1\4",
        NULL), /* copies from before the beginning */
    ROW("\7\x08"
        "abc\1\0",
        NULL), /* copies from itself */
    ROW("\7\x08"
        "abc\1",
        NULL),               /* truncated */
    ROW("\3\xf8\2\0", NULL), /* truncated within a length */
    ROW("\3\xfc\xff\xff\xff\xff", NULL),
    ROW("\xff\xff\xff\xff\x0f\0a", NULL), /* longer than its bytes can encode */
    ROW("\x80", NULL),
#undef ROW
};

static void elements_of_snappy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        uint8_t bytes[4096];
        uint64_t n = 0;
        bool good = unpack(elements[i].data, elements[i].n, bytes, &n);
        if (good != (elements[i].unpacked != NULL))
            fail_msg("element %zu", i);
        if (good) {
            assert_int_equal(n, strlen(elements[i].unpacked));
            assert_memory_equal(bytes, elements[i].unpacked, n);
        }
    }
    uint64_t seed = 1, n;
    for (int i = 0; i < 20000; i++) { /* random bytes cause no access out of bounds */
        uint8_t data[40], bytes[4096];
        for (size_t k = 0; k < sizeof data; k++)
            data[k] = (uint8_t)unit_random(&seed);
        data[0] &= 127;
        unpack(data, 1 + unit_random(&seed) % (sizeof data - 1), bytes, &n);
    }
}

/* Nothing in safetensors reveals damaged data; but the header must be consistent. */
static void safetensors_headers_are_not_trusted(void **state)
{
    static const char *const wrong[] = {
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F9\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\\u001b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "[]",
        "{\"a\":",
        "{\"a\":7}",
    };
    static const char right[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    struct archive archive;
    struct error err = ERROR_INIT;
    char file[512] = {0};
    (void)state;
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        const char *header = i ? wrong[i - 1] : right;
        size_t n = strlen(header);
        memcpy(file, &n, 8);
        memcpy(file + 8, header, n);
        int code = safetensors_read_memory(file, 8 + n + 8, "x", &archive, &err);
        if (code != (i ? ERR_DATA : 0))
            fail_msg("%s: %d", header, code);
        if (!code)
            archive_release(&archive);
        assert_int_not_equal(safetensors_read_memory(file, 8 + n + 7, "x", &archive, &err), 0);
        assert_int_not_equal(safetensors_read_memory(file, 7 + n, "x", &archive, &err), 0);
    }
}

/* Types of 8 and 4 bits have names in safetensors, but no tensors here. */
static void types_that_tensors_lack_are_named(void **state)
{
    static const char *const types[] = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4"};
    struct archive archive;
    struct error err = ERROR_INIT;
    char file[512] = {0}, text[128];
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int n =
            snprintf(file + 8, sizeof file - 8,
                     "{\"w\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,8]}}", types[i]);
        file[0] = (char)n;
        snprintf(text, sizeof text, "x: 'w': no tensor has the type %s", types[i]);
        unit_assert_error(safetensors_read_memory(file, 8 + (size_t)n + 8, "x", &archive, &err),
                          err, ERR_DATA, text);
    }
}

static int give(void *context, size_t i, struct tensor *value, struct error *err)
{
    (void)i;
    return tensor_copy(value, context, err);
}

static void complex_numbers_go_there_and_back(void **state)
{
    float numbers[] = {1, -2, 0.5f, 3};
    struct shape shape = shape_vector(2);
    struct tensor value = tensor_borrow(COMPLEX64, &shape, numbers);
    const struct archive_entry entry = {"z", COMPLEX64, shape, sizeof numbers};
    const struct archive_input input = {&entry, 1, give, &value};
    struct archive archive;
    struct error err = ERROR_INIT;
    char *bytes;
    size_t n;
    (void)state;
    FILE *file = open_memstream(&bytes, &n);
    assert_int_equal(safetensors_write(file, &input, &err), 0);
    fclose(file);
    assert_non_null(strstr(bytes + 8, "\"C64\""));
    assert_int_equal(safetensors_read_memory(bytes, n, "x", &archive, &err), 0);
    assert_true(tensor_equal(&archive.tensors.items[0].tensor, &value));
    archive_release(&archive);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        cmocka_unit_test(every_bit_of_a_bundle_counts),
        cmocka_unit_test(slices_of_partitioned_variables_are_joined),
        cmocka_unit_test(compressed_tables_are_read),
        cmocka_unit_test(elements_of_snappy),
        cmocka_unit_test(types_that_tensors_lack_are_named),
        cmocka_unit_test(complex_numbers_go_there_and_back),
        cmocka_unit_test(safetensors_headers_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
