/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "lib/random.h"
#include "wire/csv.h"

/* Reads every row as "LINE:field|field;" and appends the error, if any. */
static const char *read_all(const char *data, size_t n, char separator)
{
    static struct str out;
    struct error err = ERROR_INIT;
    struct gzfile *file = gzfile_open_memory(data, n, "t.csv");
    struct csv_reader *reader = csv_reader_new(file, separator, '#');
    struct csv_row row;
    bool more;
    str_clear(&out);
    while (!csv_read(reader, &row, &more, &err) && more) {
        str_printf(&out, "%d:", (int)row.line);
        for (size_t i = 0; i < row.n_fields; i++)
            str_printf(&out, "%s%.*s", i ? "|" : "", (int)row.fields[i].n, row.fields[i].text);
        str_append(&out, ";");
    }
    if (err.code)
        str_printf(&out, " %d %s", err.code, err.text);
    csv_reader_free(reader);
    gzfile_close(file);
    return str_text(&out);
}

static const char *rows(const char *text)
{
    return read_all(text, strlen(text), CSV_DETECT);
}

static void lines_of_all_kinds(void **unused)
{
    (void)unused;
    assert_string_equal(rows("1,2\n3,4\n"), "1:1|2;2:3|4;");
    assert_string_equal(rows("1,2\r\n3,4\r\n"), "1:1|2;2:3|4;");
    assert_string_equal(rows("1,2\n3,4"), "1:1|2;2:3|4;");
    assert_string_equal(rows("1,2\r3,4\r5,6"), "1:1|2;2:3|4;3:5|6;");
    assert_string_equal(rows("1,2\r3,4\n5,6\r\n7,8\r"), "1:1|2;2:3|4;3:5|6;4:7|8;");
    assert_string_equal(rows("1\r\r\n2\n\r3"), "1:1;3:2;5:3;");
    assert_string_equal(rows("#a\r1\r#b \"\r2\r"), "2:1;4:2;");
    assert_string_equal(rows("\xef\xbb\xbf"
                             "1,2\n\n  \n# no, \"row\n3,\n"),
                        "1:1|2;5:3|;");
    assert_string_equal(rows(""), "");
    assert_string_equal(rows("\n\n"), "");
    assert_string_equal(rows("# only"), "");
    assert_string_equal(rows("7"), "1:7;");
    assert_string_equal(rows(","), "1:|;");
}

static void quotes_as_in_rfc_4180(void **unused)
{
    (void)unused;
    assert_string_equal(rows("\"a\",\"b,c\"\n"), "1:a|b,c;");
    assert_string_equal(rows("\"a \"\"b\"\"\",\"\"\n5,6\n"), "1:a \"b\"|;2:5|6;");
    assert_string_equal(rows("\"two\r\nlines\",2\n3,4\n"), "1:two\r\nlines|2;3:3|4;");
    assert_string_equal(rows("\"\"\"\n\",1\n2,3"), "1:\"\n|1;3:2|3;");
    assert_string_equal(rows("5\" disk,1\n6,\"7\"\n"), "1:5\" disk|1;2:6|7;");
    assert_string_equal(rows("\"1\" ,\"2\"\t \r\"a\rb\" \r3"), "1:1 |2\t ;2:a\rb ;4:3;");
    assert_string_equal(rows("1,\"2\n3\n"), " 65 t.csv:1: a quote is never closed");
    assert_string_equal(rows("1,2\n1,\"2\"3\n"),
                        "1:1|2; 65 t.csv:2: column 2: text after a closing quote");
}

static void separators(void **unused)
{
    (void)unused;
    assert_string_equal(rows("1;2,5\n3;4\n"), "1:1|2,5;2:3|4;");
    assert_string_equal(rows("1\t\t3\n"), "1:1||3;");
    assert_string_equal(rows("  1  2\t3 \n 4 5 6\n"), "1:1|2|3;2:4|5|6;");
    assert_string_equal(rows("1, 2\n"), "1:1| 2;");
    assert_string_equal(read_all("1 2|3", 5, '|'), "1:1 2|3;");
}

/* Random fields and line ends, with the rows that must be read. */
static void random_tables(void **unused)
{
    (void)unused;
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    static const char *const fields[][2] = {
        {"1.5", "1.5"},   {"", ""},         {"\"a\"\"b\"", "a\"b"}, {"\"x\ny\rz\"", "x\ny\rz"},
        {"\"q\" ", "q "}, {"b\"c", "b\"c"}, {" 7\t", " 7\t"},       {"\"\"", ""}};
    uint64_t state = 1;
    for (int round = 0; round < 2000; round++) {
        struct str text = STR_INIT, expected = STR_INIT;
        int line = 1, kind = (int)(unit_random(&state) % 4);
        for (int r = 0, n = (int)(unit_random(&state) % 6); r < n; r++) {
            str_printf(&expected, "%d:", line++);
            for (int c = 0; c < 3; c++) {
                const char *const *field = fields[unit_random(&state) % 8];
                str_printf(&text, "%s%s", c ? "," : "", field[0]);
                str_printf(&expected, "%s%s", c ? "|" : "", field[1]);
                line += strchr(field[0], '\n') ? 2 : 0;
            }
            str_append(&text, ends[kind < 3 ? (size_t)kind : unit_random(&state) % 3]);
            str_append_char(&expected, ';');
        }
        assert_string_equal(read_all(str_text(&text), text.n, ','), str_text(&expected));
        str_release(&text);
        str_release(&expected);
    }
}

/* A row must come whole however the bytes are cut into reads. */
static void a_pipe_in_small_pieces(void **unused)
{
    (void)unused;
    static const char text[] = "\xef\xbb\xbf\"a\"\"\nb\",1\r\n#x\n22,\"3\"\r\n";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int old = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    struct error err = ERROR_INIT;
    struct gzfile *file;
    assert_int_equal(gzfile_open("-", &file, &err), 0);
    assert_string_equal(gzfile_name(file), "stdin");
    struct csv_reader *reader = csv_reader_new(file, CSV_DETECT, '#');
    struct csv_row row;
    bool more;
    assert_int_equal(write(ends[1], text, 14), 14); /* only up to the first row's end */
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_true(more && row.n_fields == 2 && row.fields[0].n == 4);
    assert_memory_equal(row.fields[0].text, "a\"\nb", 4);
    assert_true(write(ends[1], text + 14, sizeof text - 15) > 0);
    close(ends[1]);
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_true(more && row.line == 4 && row.fields[1].n == 1 && row.fields[1].text[0] == '3');
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_false(more);
    csv_reader_free(reader);
    gzfile_close(file);
    dup2(old, STDIN_FILENO);
    close(old);
    close(ends[0]);
}

static size_t pack(const char *text, unsigned char *packed, size_t room)
{
    z_stream zlib = {0};
    deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    zlib.next_in = (unsigned char *)text;
    zlib.avail_in = (unsigned)strlen(text);
    zlib.next_out = packed;
    zlib.avail_out = (unsigned)room;
    deflate(&zlib, Z_FINISH);
    deflateEnd(&zlib);
    return zlib.total_out;
}

static void gzip_is_seen_by_its_content(void **unused)
{
    (void)unused;
    unsigned char packed[256];
    size_t n = pack("1,2\n3,4\n", packed, sizeof packed);
    assert_string_equal(read_all((char *)packed, n, CSV_DETECT), "1:1|2;2:3|4;");
    size_t m = n + pack("5,6\n", packed + n, sizeof packed - n);
    assert_string_equal(read_all((char *)packed, m, CSV_DETECT), "1:1|2;2:3|4;3:5|6;");
    for (size_t cut = 2; cut < n; cut++)
        assert_non_null(strstr(read_all((char *)packed, cut, CSV_DETECT), "truncated gzip data"));
    packed[n] = 'x';
    assert_non_null(strstr(read_all((char *)packed, n + 1, CSV_DETECT), "garbage after the gzip"));
    packed[n - 6] ^= 1;
    assert_non_null(strstr(read_all((char *)packed, n, CSV_DETECT), "damaged gzip data"));
}

static void rows_larger_than_a_read(void **unused)
{
    (void)unused;
    struct str text = STR_INIT;
    for (int i = 0; i < 50000; i++)
        str_append(&text, "12345,");
    str_append(&text, "6\n7,\"");
    for (int i = 0; i < 30000; i++)
        str_append(&text, "line\n");
    str_append(&text, "\"\n8,9\n");
    struct error err = ERROR_INIT;
    struct gzfile *file = gzfile_open_memory(text.data, text.n, "t.csv");
    struct csv_reader *reader = csv_reader_new(file, ',', '\0');
    struct csv_row row;
    bool more;
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_int_equal(row.n_fields, 50001);
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_int_equal(row.fields[1].n, 150000);
    assert_int_equal(csv_read(reader, &row, &more, &err), 0);
    assert_int_equal(row.line, 30003);
    csv_reader_free(reader);
    gzfile_close(file);
    str_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_all_kinds),
        cmocka_unit_test(quotes_as_in_rfc_4180),
        cmocka_unit_test(separators),
        cmocka_unit_test(random_tables),
        cmocka_unit_test(a_pipe_in_small_pieces),
        cmocka_unit_test(gzip_is_seen_by_its_content),
        cmocka_unit_test(rows_larger_than_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
