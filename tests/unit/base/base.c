/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "lib/unit.h"

static void error_is_built_from_the_inside_out(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    assert_int_equal(error_set(&err, ERR_DATA, "dimensions %d and %d differ", 64, 32), ERR_DATA);
    assert_int_equal(error_prefix(&err, "node '%s': ", "h"), ERR_DATA);
    unit_assert_error(error_prefix(&err, "digits.tfg: "), err, ERR_DATA,
                      "digits.tfg: node 'h': dimensions 64 and 32 differ");
    assert_non_null(strstr(err.file, "base.c"));
    assert_in_range(err.line, 1, 60);
    error_clear(&err);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.text, "");
}

static void expect_span(const struct error *err, struct error_span span, const char *text)
{
    assert_int_equal(span.n, strlen(text));
    assert_int_equal(strncmp(err->text + span.at, text, span.n), 0);
}

static void error_knows_its_node_and_op(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    error_set(&err, ERR_DATA, "node 'x': Neg: is quoted");
    assert_int_equal(err.op.n, 0);
    assert_int_equal(error_drop_node(&err), ERR_DATA);
    assert_string_equal(err.text, "node 'x': Neg: is quoted");
    assert_int_equal(error_prefix_node(&err, "node 'h' (m.lua:2)", "MatMul"), ERR_DATA);
    error_prefix_node(&err, "node 'loop'", "While"); /* the innermost node is the one that failed */
    error_prefix(&err, "m.tfg: ");
    expect_span(&err, err.node, "node 'h' (m.lua:2)");
    expect_span(&err, err.op, "MatMul");
    struct error copy = err;
    unit_assert_error(error_drop_node(&copy), copy, ERR_DATA, "MatMul: node 'x': Neg: is quoted");
    error_prefix(&copy, "step 3: ");
    expect_span(&copy, copy.op, "MatMul");
    assert_int_equal(copy.node.n, 0);
    char text[ERROR_TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error_prefix(&err, "%s", text); /* it is cut to a quarter; the node after it stays */
    expect_span(&err, err.op, "MatMul");
    for (int i = 0; i < 3; i++)
        error_prefix(&err, "%.250s", text);
    assert_int_equal(err.op.n, 0); /* the op's name was cut away */
    error_set(&err, ERR_DATA, "%.900s", text);
    error_prefix_node(&err, text, "MatMul");
    assert_int_equal(err.op.n, 0);
    error_set(&err, ERR_DATA, "another");
    assert_int_equal(err.node.n, 0);
}

static void error_has_a_reason_until_it_is_set_anew(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    assert_int_equal(err.reason, ERROR_PLAIN);
    error_set(&err, ERR_UNAVAILABLE, "ps:0: closed");
    assert_int_equal(error_waited(&err, "'%s'", "W"), ERR_UNAVAILABLE);
    error_prefix(&err, "step 3: ");
    error_append(&err, "; %s", "nothing saved");
    unit_assert_error(err.code, err, ERR_UNAVAILABLE,
                      "step 3: ps:0: closed, waiting for 'W'; nothing saved");
    assert_int_equal(err.reason, ERROR_WAITED);
    for (int i = 1; i < ERROR_REASONS; i++)
        assert_int_equal(error_reason_parse(error_reason_name((enum error_reason)i)), i);
    assert_null(error_reason_name(ERROR_PLAIN));
    assert_int_equal(error_reason_parse("of a later version"), ERROR_PLAIN);
    assert_int_equal(error_reason_parse(NULL), ERROR_PLAIN);
    error_set_errno(&err, ERR_IO, "x");
    assert_int_equal(err.reason, ERROR_PLAIN);
    err.reason = ERROR_STOPPED;
    error_clear(&err);
    assert_int_equal(err.reason, ERROR_PLAIN);
}

static void error_tells_errno(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    errno = ENOENT;
    unit_assert_error(error_set_errno(&err, ERR_NOINPUT, "%s", "x.tfg"), err, ERR_NOINPUT,
                      "x.tfg: No such file or directory");
}

static void error_stays_on_one_line_and_is_cut(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    error_set(&err, ERR_DATA, "'a\nb\tc\x01'");
    assert_string_equal(err.text, "'a b c '");
    char text[3 * ERROR_TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    error_set(&err, ERR_DATA, "%s", text);
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
    assert_string_equal(err.text + ERROR_TEXT_BYTES - 4, "...");
    error_set(&err, ERR_DATA, "end");
    error_prefix(&err, "%s", text); /* a long prefix loses its end, never the cause */
    assert_string_equal(err.text + strlen(err.text) - 9, "x...: end");
    error_set(&err, ERR_DATA, "%.1000s", text);
    error_prefix(&err, "%.40s: ", "a prefix that still fits, but not all");
    assert_int_equal(strlen(err.text), ERROR_TEXT_BYTES - 1);
    assert_int_equal(strncmp(err.text, "a prefix that still fits", 24), 0);
    assert_string_equal(err.text + ERROR_TEXT_BYTES - 4, "...");
}

static void memory_is_zeroed_and_aligned(void **unused)
{
    (void)unused;
    char *p = mem_alloc(1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    p = mem_realloc(p, 5000);
    mem_free(p);
    mem_free(NULL);
    for (size_t n = 0; n < 9000000; n = n * 3 + 1) {
        char *q = mem_try(n);
        assert_non_null(q);
        assert_int_equal((uintptr_t)q % MEM_ALIGNMENT, 0);
        memset(q, 1, n);
        mem_free(q);
    }
}

static bool every_page_may_be_huge(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    bool always = file && fgets(text, sizeof text, file) && strstr(text, "[always]");
    if (file)
        fclose(file);
    return always;
}

/* A block of a little more than two huge pages does not take three. */
static void memory_is_hardly_rounded(void **unused)
{
    const size_t bytes = (4 << 20) + (64 << 10), rest = (2 << 20) - (64 << 10);
    unsigned char resident[512];
    (void)unused;
    if (every_page_may_be_huge())
        skip();
    char *q = mem_try(bytes);
    memset(q, 1, bytes);
    assert_int_equal(mincore(q + bytes, rest, resident), 0);
    for (size_t i = 0; i < rest / (size_t)getpagesize(); i++)
        assert_int_equal(resident[i] & 1, 0);
    mem_free(q);
}

static void memory_that_is_not_there_is_refused(void **unused)
{
    (void)unused;
    assert_null(mem_try(SIZE_MAX / 2));
    assert_null(mem_try(SIZE_MAX));
}

static jmp_buf out_of_memory;

static void on_out_of_memory(size_t bytes)
{
    assert_true(bytes >= SIZE_MAX / 2);
    longjmp(out_of_memory, 1);
}

static void array_overflow_is_no_memory(void **unused)
{
    (void)unused;
    mem_set_handler(on_out_of_memory);
    if (!setjmp(out_of_memory)) {
        mem_array(SIZE_MAX / 4, 8);
        fail_msg("an array of %zu bytes was given", SIZE_MAX);
    }
}

static void arena_keeps_what_it_gave(void **unused)
{
    (void)unused;
    struct arena arena = ARENA_INIT;
    enum { N = 2000 };
    static uint32_t *blocks[N];
    static size_t sizes[N];
    uint64_t state = 1;
    for (uint32_t i = 0; i < N; i++) {
        sizes[i] = unit_random(&state) % (i % 100 ? 60 : 100000);
        blocks[i] = arena_array(&arena, sizes[i], sizeof *blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(blocks[i][k], 0);
            blocks[i][k] = i;
        }
    }
    for (uint32_t i = 0; i < N; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], i);
    arena_release(&arena);
    assert_int_equal(arena.total, 0);
}

static void arena_texts(void **unused)
{
    (void)unused;
    struct arena arena = ARENA_INIT;
    char *copy = arena_strdup(&arena, "hidden/W");
    char *part = arena_strndup(&arena, "hidden/W", 6);
    char *print = arena_printf(&arena, "%0*d", 5000, 7);
    assert_string_equal(copy, "hidden/W");
    assert_string_equal(part, "hidden");
    assert_int_equal(strlen(print), 5000);
    assert_memory_equal(arena_copy(&arena, "ab", 2), "ab", 2);
    arena_release(&arena);
    assert_string_equal(arena_strdup(&arena, "again"), "again");
    arena_release(&arena);
}

static void vector_grows(void **unused)
{
    (void)unused;
    VEC(int) v = VEC_INIT;
    for (int i = 0; i < 10000; i++)
        vec_push(&v, i * i);
    assert_int_equal(v.n, 10000);
    for (int i = 9999; i >= 0; i--)
        assert_int_equal(vec_pop(&v), i * i);
    assert_int_equal(v.n, 0);
    vec_release(&v);
    assert_null(v.items);
    vec_push(&v, 3);
    assert_int_equal(v.items[0], 3);
    vec_release(&v);
}

/* Compares the map with an array of values by key number. */
static void map_agrees_with_a_model(void **unused)
{
    (void)unused;
    enum { KEYS = 500 };
    static char keys[KEYS][8];
    static int64_t model[KEYS];
    static bool present[KEYS];
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "k%d", i);
    struct map map = MAP_INIT;
    uint64_t state = 3;
    size_t n = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t draw = unit_random(&state);
        int k = (int)((draw >> 8) % KEYS);
        int64_t value;
        switch (draw % 4) {
        case 0:
        case 1:
            map_put(&map, keys[k], (int64_t)draw);
            n += !present[k];
            present[k] = true;
            model[k] = (int64_t)draw;
            break;
        case 2:
            assert_int_equal(map_remove(&map, keys[k]), present[k]);
            n -= present[k];
            present[k] = false;
            break;
        default:
            assert_int_equal(map_get(&map, keys[k], &value), present[k]);
            if (present[k])
                assert_true(value == model[k]);
        }
        assert_int_equal(map.n, n);
    }
    map_release(&map);
    assert_false(map_get(&map, "k1", &model[0]));
}

static void hashes_are_xxh3(void **unused)
{
    (void)unused;
    /* the published value for no bytes and seed 0 */
    assert_true(hash_bytes("", 0, 0) == 0x2d06800538d394c2);
    assert_true(hash_text("ab") == hash_bytes("ab", 2, 0));
    assert_true(hash_bytes("ab", 2, 1) != hash_bytes("ab", 2, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_is_built_from_the_inside_out),
        cmocka_unit_test(error_knows_its_node_and_op),
        cmocka_unit_test(error_has_a_reason_until_it_is_set_anew),
        cmocka_unit_test(error_tells_errno),
        cmocka_unit_test(error_stays_on_one_line_and_is_cut),
        cmocka_unit_test(memory_is_hardly_rounded), /* first: freed memory may be resident */
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(memory_that_is_not_there_is_refused),
        cmocka_unit_test(array_overflow_is_no_memory),
        cmocka_unit_test(arena_keeps_what_it_gave),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(vector_grows),
        cmocka_unit_test(map_agrees_with_a_model),
        cmocka_unit_test(hashes_are_xxh3),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
