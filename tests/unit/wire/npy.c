/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading NumPy's files (tests/data/npy/make.py); run from the root of the source tree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/npy.h"
#include "wire/npz.h"

#define FOLDER "tests/data/npy/"

/* The file holds 0, 1, 2, ... in this type and shape (booleans: 1, 0, 1). */
static void check_file(const char *name, const char *typed)
{
    struct error err = ERROR_INIT;
    struct tensor t;
    char path[200];
    snprintf(path, sizeof path, FOLDER "%s.npy", name);
    if (npy_read(path, &t, &err))
        fail_msg("%s", err.text);
    assert_string_equal(shape_text_typed(t.type, &t.shape), typed);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        assert_int_equal(tensor_get_int64(&t, i), t.type == BOOL ? i % 2 == 0 : i);
    tensor_release(&t);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"f4", "float32[2,3]"},   {"f8", "float64[2,3]"}, {"f2", "float16[2,3]"},
        {"i8", "int64[2,3]"},     {"i4", "int32[2,3]"},   {"i2", "int16[2,3]"},
        {"u2", "uint16[2,3]"},    {"u4", "uint32[2,3]"},  {"u8", "uint64[2,3]"},
        {"c8", "complex64[2,3]"},
    };
    char name[40];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(name, sizeof name, "little-%s", rows[i][0]);
        check_file(name, rows[i][1]);
        snprintf(name, sizeof name, "big-%s", rows[i][0]);
        check_file(name, rows[i][1]);
    }
    check_file("byte-i1", "int8[2,3]");
    check_file("byte-u1", "uint8[2,3]");
    check_file("bool", "bool[3]");
}

static void test_shapes_and_orders(void **state)
{
    (void)state;
    check_file("empty", "float32[0,3]");
    check_file("vector", "int64[5]");
    check_file("rank8", "int32[1,2,1,2,1,2,1,3]");
    check_file("fortran", "float32[2,3,4]");
    check_file("fortran-big", "int32[2,3]");
    check_file("version2", "float32[2,3]");
    check_file("version3", "float32[2,3]");
    check_file("keys", "float32[2,3]");
    struct error err = ERROR_INIT;
    struct tensor t;
    assert_int_equal(npy_read(FOLDER "scalar.npy", &t, &err), 0);
    assert_true(t.shape.rank == 0 && *(float *)t.data == 7);
    tensor_release(&t);
}

static void test_texts(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct tensor t;
    static const char *const texts[] = {"a", "bcd"};
    if (npy_read(FOLDER "text.npy", &t, &err))
        fail_msg("%s", err.text);
    assert_string_equal(shape_text_typed(t.type, &t.shape), "string[2]");
    for (int64_t i = 0; i < 2; i++) {
        const char *text;
        size_t n;
        tensor_string(&t, i, &text, &n);
        assert_int_equal(n, strlen(texts[i]));
        assert_memory_equal(text, texts[i], n);
    }
    tensor_release(&t);
}

static void refuses(const char *name, int code, const char *message)
{
    struct error err = ERROR_INIT;
    struct tensor t;
    char path[200];
    snprintf(path, sizeof path, FOLDER "%s", name);
    assert_int_equal(npy_read(path, &t, &err), code);
    if (!strstr(err.text, message) || !str_starts(err.text, path))
        fail_msg("%s", err.text);
}

static void test_refused_files(void **state)
{
    (void)state;
    refuses("objects.npy", ERR_DATA, "arrays of type '|O' (Python objects) are not supported");
    refuses("records.npy", ERR_DATA, "arrays of records are not supported");
    refuses("dates.npy", ERR_DATA, "arrays of type '<M8[D]' are not supported");
    refuses("make.py", ERR_DATA, "not a .npy file");
    refuses("absent.npy", ERR_NOINPUT, "");
}

static void test_bad_headers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': Falsy, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<U', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<U-1', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<S9999999999', 'fortran_order': False, 'shape': (2,)}",
    };
    struct npy_header header;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = ERROR_INIT;
        char *copy = mem_alloc(strlen(bad[i])); /* without a terminator */
        memcpy(copy, bad[i], strlen(bad[i]));
        if (npy_parse_header(copy, strlen(bad[i]), &header, &err) != ERR_DATA)
            fail_msg("%s", bad[i]);
        mem_free(copy);
    }
}

static char *load(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *bytes = mem_alloc(1 << 16);
    assert_non_null(file);
    *n = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

/* Our files equal NumPy's byte for byte. */
static void test_same_bytes_as_numpy(void **state)
{
    (void)state;
    static const char *const names[] = {"little-f4", "little-c8", "bool",  "scalar",
                                        "empty",     "vector",    "rank8", "byte-u1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct error err = ERROR_INIT;
        struct tensor t;
        char path[200], *written = NULL;
        size_t n, n_written;
        snprintf(path, sizeof path, FOLDER "%s.npy", names[i]);
        char *bytes = load(path, &n);
        assert_int_equal(npy_read_memory(bytes, n, path, &t, &err), 0);
        FILE *file = open_memstream(&written, &n_written);
        assert_int_equal(npy_write(file, &t, &err), 0);
        fclose(file);
        assert_int_equal(n_written, n);
        assert_memory_equal(written, bytes, n);
        tensor_release(&t);
        free(written);
        mem_free(bytes);
    }
    struct error err = ERROR_INIT;
    uint16_t value = 0;
    struct tensor t = tensor_borrow(BFLOAT16, &SHAPE_SCALAR, &value);
    assert_int_equal(npy_write(stdout, &t, &err), ERR_DATA);
}

static void check_truncated(const char *path)
{
    size_t n;
    char *bytes = load(path, &n);
    for (size_t cut = 0; cut < n; cut++) {
        struct error err = ERROR_INIT;
        struct tensor t;
        char *copy = mem_alloc(cut);
        memcpy(copy, bytes, cut);
        assert_int_equal(npy_read_memory(copy, cut, "cut", &t, &err), ERR_DATA);
        mem_free(copy);
    }
    mem_free(bytes);
    static const char big[] = "\x93NUMPY\x01\x00\x45\x00{'descr': '<f8', 'fortran_order': False, "
                              "'shape': (1000000,1000000)}   \nx";
    struct error err = ERROR_INIT;
    struct tensor t;
    assert_int_equal(npy_read_memory(big, sizeof big - 1, "big", &t, &err), ERR_DATA);
    assert_string_equal(err.text, "big: truncated: 8000000000000 bytes of data are not there");
}

static void test_truncated_npy(void **state)
{
    (void)state;
    check_truncated(FOLDER "fortran.npy");
    check_truncated(FOLDER "text.npy");
}

static void check_archive(const char *path)
{
    struct error err = ERROR_INIT;
    struct npz npz;
    struct tensor x = TENSOR_INIT, label = TENSOR_INIT;
    int place;
    if (npz_open(path, &npz, &err))
        fail_msg("%s", err.text);
    assert_int_equal(npz.n, 2);
    assert_string_equal(npz_name(&npz, 0), "x");
    assert_int_equal(npz_find(&npz, "label", &place, &err), 0);
    assert_int_equal(place, 1);
    assert_int_equal(npz_read(&npz, 0, &x, &err), 0);
    assert_int_equal(npz_read(&npz, 1, &label, &err), 0);
    assert_string_equal(shape_text(&x.shape), "[2,3]");
    for (int i = 0; i < 6; i++)
        assert_int_equal(tensor_get_int64(&x, i), i);
    assert_int_equal(tensor_get_int64(&label, 1), 1);
    tensor_release(&x);
    tensor_release(&label);
    assert_int_equal(npz_find(&npz, "y", &place, &err), ERR_DATA);
    assert_true(str_ends(err.text, ": no array named 'y'"));
    npz_close(&npz);
}

static void test_archives(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct npz npz;
    struct tensor t;
    check_archive(FOLDER "stored.npz");
    check_archive(FOLDER "deflated.npz");
    assert_int_equal(npz_open(FOLDER "mixed.npz", &npz, &err), 0); /* its first array is text */
    assert_int_equal(npz.n, 0);
    npz_close(&npz);
    assert_int_equal(npz_open(FOLDER "folder.npz", &npz, &err), 0);
    assert_int_equal(npz.n, 1);
    assert_string_equal(npz_name(&npz, 0), "folder/a");
    npz_close(&npz);
    unit_assert_error(npz_open(FOLDER "twice.npz", &npz, &err), err, ERR_DATA,
                      FOLDER "twice.npz: array 'a' is in it twice");
    assert_int_equal(npz_open(FOLDER "bzip2.npz", &npz, &err), 0);
    unit_assert_error(npz_read(&npz, 0, &t, &err), err, ERR_DATA,
                      FOLDER "bzip2.npz: array 'a': zip compression 12 is not supported");
    npz_close(&npz);
    error_clear(&err);
    assert_int_equal(npz_open(FOLDER "vector.npy", &npz, &err), ERR_DATA);
}

/* Checks that array 0 counts 0, 1, 2, ... if it is read; returns the error's code, else 0. */
static int read_first(const void *bytes, size_t n, struct error *err)
{
    struct npz npz;
    struct tensor t = TENSOR_INIT;
    error_clear(err);
    if (npz_open_memory(bytes, n, "a", &npz, err))
        return err->code;
    if (npz.n > 0 && !npz_read(&npz, 0, &t, err))
        for (int64_t i = 0; i < tensor_count(&t); i++)
            assert_int_equal(tensor_get_int64(&t, i), i);
    tensor_release(&t);
    npz_close(&npz);
    return err->code;
}

/* Damage is found, or harmless (in names, times, attributes): arrays that can still be read have
 * the right values. */
static void test_damaged_archives(void **state)
{
    (void)state;
    static const char *const paths[] = {FOLDER "stored.npz", FOLDER "deflated.npz"};
    for (int i = 0; i < 2; i++) {
        size_t n;
        char *bytes = load(paths[i], &n);
        for (size_t bit = 0; bit < n * 8; bit++) {
            struct error err = ERROR_INIT;
            bytes[bit / 8] ^= (char)(1 << bit % 8);
            read_first(bytes, n, &err);
            bytes[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t cut = 0; cut < n; cut++) {
            struct error err = ERROR_INIT;
            char *copy = mem_alloc(cut);
            memcpy(copy, bytes, cut);
            assert_int_equal(read_first(copy, cut, &err), ERR_DATA);
            mem_free(copy);
        }
        mem_free(bytes);
    }
}

/* Finds the bytes for the nth time. */
static char *find(char *bytes, size_t n, const char *what, int nth)
{
    for (size_t i = 0; i + strlen(what) <= n; i++)
        if (!memcmp(bytes + i, what, strlen(what)) && !nth--)
            return bytes + i;
    fail_msg("%s", what);
    return NULL;
}

/* An archive has names of members twice, and their number in another place. */
static void test_archives_that_contradict_themselves(void **state)
{
    (void)state;
    static const char what[] = FOLDER "stored.npz";
    struct error err = ERROR_INIT;
    size_t n;
    char *bytes = load(what, &n), *end = find(bytes, n, "PK\5\6", 0);
    find(bytes, n, "x.npy", 0)[0] = 'y'; /* in the member's header */
    unit_assert_error(read_first(bytes, n, &err), err, ERR_DATA,
                      "a: array 'x': malformed zip archive: the member is another one than the "
                      "directory says");
    find(bytes, n, "x.npy", 0)[0] = 'y'; /* in the directory */
    assert_int_equal(read_first(bytes, n, &err), 0);
    for (int m = 0; m < 4; m++) {
        end[8] = end[10] = (char)m;
        assert_int_equal(read_first(bytes, n, &err), m == 2 ? 0 : ERR_DATA);
        if (m < 2)
            assert_string_equal(err.text,
                                "a: malformed zip archive: the number of its members is wrong");
    }
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_shapes_and_orders),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_same_bytes_as_numpy),
        cmocka_unit_test(test_truncated_npy),
        cmocka_unit_test(test_archives),
        cmocka_unit_test(test_damaged_archives),
        cmocka_unit_test(test_archives_that_contradict_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
