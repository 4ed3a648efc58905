/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/idx.h"

static const char *read_idx(const void *data, size_t n)
{
    static struct str out;
    struct error err = ERROR_INIT;
    struct tensor t;
    struct gzfile *file = gzfile_open_memory(data, n, "t.idx");
    str_clear(&out);
    if (idx_read(file, &t, &err)) {
        str_printf(&out, "%d %s", err.code, err.text);
    } else {
        shape_print_typed(&out, t.type, &t.shape);
        tensor_print(&out, &t, -1);
        tensor_release(&t);
    }
    gzfile_close(file);
    return str_text(&out);
}

#define READ(literal) read_idx(literal, sizeof literal - 1)

static void every_type(void **unused)
{
    (void)unused;
    assert_string_equal(READ("\0\0\x08\2\0\0\0\1\0\0\0\3\1\2\xff"), "uint8[1,3][[1,2,255]]");
    assert_string_equal(READ("\0\0\x09\1\0\0\0\2\1\xff"), "int8[2][1,-1]");
    assert_string_equal(READ("\0\0\x0b\1\0\0\0\2\1\2\xff\xfe"), "int16[2][258,-2]");
    assert_string_equal(READ("\0\0\x0c\1\0\0\0\1\xff\xff\xff\xfe"), "int32[1][-2]");
    assert_string_equal(READ("\0\0\x0d\1\0\0\0\2\x3f\x80\0\0\xc0\x20\0\0"), "float32[2][1,-2.5]");
    assert_string_equal(READ("\0\0\x0e\0\x3f\xe0\0\0\0\0\0\0"), "float64[]0.5");
    assert_string_equal(READ("\0\0\x08\2\0\0\0\0\0\0\0\3"), "uint8[0,3][]");
}

static void what_is_refused(void **unused)
{
    (void)unused;
    assert_string_equal(READ(""), "65 t.idx: truncated after 0 bytes");
    assert_string_equal(READ("\0\0\x08\1\0\0"), "65 t.idx: truncated after 6 bytes");
    assert_string_equal(READ("\0\0\x08\1\0\0\0\2\1"), "65 t.idx: truncated after 9 bytes");
    assert_string_equal(READ("1,2\n"), "65 t.idx: not an IDX file: it starts with 31 2c 32 0a");
    assert_string_equal(READ("\0\0\x0a\1"),
                        "65 t.idx: not an IDX file: it starts with 00 00 0a 01");
    assert_string_equal(READ("\0\0\x08\x09"), "65 t.idx: IDX of rank 9; at most 8");
    assert_string_equal(READ("\0\0\x08\1\0\0\0\1\1\2"),
                        "65 t.idx: data after the uint8[1] that the header announces");
    assert_non_null(
        strstr(READ("\0\0\x0e\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "is too large"));
    /* the header promises 4 GiB: memory is not taken before data arrives */
    assert_non_null(strstr(READ("\0\0\x08\1\xff\xff\xff\xff\1\2"), "truncated after 10 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
