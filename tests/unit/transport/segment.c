/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory that two processes share: which may write, and when, and what is left when one
 * of them dies.
 */
#include "transport/value/segment.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#define LIMIT ((size_t)3 * N * sizeof(float))
#define N ((int64_t)1 << 20)
#define FOREVER 1e9
#define AT_ONCE (-1.0)

static const struct shape shape = {1, {N}};

static struct tensor filled(struct segments *segments, float value)
{
    struct tensor t;
    assert_true(segments_alloc(segments, &t, FLOAT32, &shape));
    for (int64_t i = 0; i < N; i++)
        ((float *)t.data)[i] = value;
    return t;
}

static float last(const struct tensor *t)
{
    return ((const float *)t->data)[N - 1];
}

static enum segment_reply map(struct segments *segments, const struct segment_offer *offer,
                              struct tensor *t)
{
    return segments_map(segments, offer, FLOAT32, &shape, t);
}

static void test_what_suits(void **state)
{
    (void)state;
    assert_true(segment_suits(FLOAT32, SEGMENT_LEAST_BYTES));
    assert_false(segment_suits(FLOAT32, SEGMENT_LEAST_BYTES - 1));
    assert_false(segment_suits(STRING, SEGMENT_LEAST_BYTES));
    assert_false(segment_suits(BOOL, SEGMENT_LEAST_BYTES));
    assert_false(segment_suits(FLOAT32, (size_t)-1));
}

/* Memory is reused when both processes have released it, in either order, and not before. */
static void test_memory_is_used_again(void **state)
{
    struct segments *own = segments_new(LIMIT), *others = segments_new(LIMIT);
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct tensor t = filled(own, 1), there, next;
        const void *at = t.data;
        struct segment_offer offer = segment_share(&t);
        assert_int_equal(map(others, &offer, &there), SEGMENT_TAKEN);
        assert_ptr_not_equal(there.data, at);
        tensor_release(first ? &there : &t);
        next = filled(own, 2);
        assert_ptr_not_equal(next.data, at);
        assert_float_equal(last(first ? &t : &there), 1, 0);
        tensor_release(first ? &t : &there);
        tensor_release(&next);
        struct tensor a = filled(own, 3), b = filled(own, 4); /* all that fit */
        assert_true(a.data == at || b.data == at);
        tensor_release(&a);
        tensor_release(&b);
    }
    segments_free(own);
    segments_free(others);
}

/* The limit has no room for more, so the memory of the others is reused. A process that had them
 * mapped sees the new values there. */
static void test_a_large_one_takes_what_others_left(void **state)
{
    struct shape shapes[3] = {shape_vector(2 * N), shape_vector(4 * N), shape_vector(6 * N)};
    struct segments *own = segments_new(6 * N * sizeof(float)), *others = segments_new(0);
    const char *at = NULL;
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct tensor t[3], there;
        for (int i = 0; i < 3; i++) {
            assert_true(segments_alloc(own, &t[i], FLOAT32, &shapes[i]));
            float *end = (float *)t[i].data + shapes[i].dims[0];
            end[-1] = (float)(10 * round + i);
            struct segment_offer offer = segment_share(&t[i]);
            assert_int_equal(segments_map(others, &offer, FLOAT32, &shapes[i], &there),
                             SEGMENT_TAKEN);
            assert_float_equal(((const float *)there.data)[shapes[i].dims[0] - 1], 10 * round + i,
                               0);
            tensor_release(&there);
            at = i || round ? at : t[0].data;
            if (i == 2)
                assert_ptr_equal(t[2].data, at);
            if (i)
                tensor_release(&t[i]);
            if (i == 1)
                tensor_release(&t[0]);
        }
    }
    segments_free(own);
    segments_free(others);
}

/* A received value is passed on in place: back to its sender, and to a third process. */
static void test_lent_on(void **state)
{
    struct segments *own = segments_new(LIMIT), *second = segments_new(LIMIT),
                    *third = segments_new(LIMIT);
    struct tensor t = filled(own, 5), there, back, on;
    const void *at = t.data;
    (void)state;
    struct segment_offer offer = segment_share(&t);
    assert_int_equal(map(second, &offer, &there), SEGMENT_TAKEN);
    tensor_release(&t);
    offer = segment_share(&there);
    assert_int_equal(map(own, &offer, &back), SEGMENT_TAKEN);
    assert_ptr_equal(back.data, at);
    offer = segment_share(&there);
    assert_int_equal(map(third, &offer, &on), SEGMENT_TAKEN);
    tensor_release(&there);
    segments_free(second); /* the third maps it by itself */
    tensor_release(&back);
    t = filled(own, 6);
    assert_ptr_not_equal(t.data, at);
    assert_float_equal(last(&on), 5, 0);
    tensor_release(&on);
    tensor_release(&t);
    segments_free(own);
    segments_free(third);
}

/* A part of a tensor in a segment is not the whole tensor. */
static void test_a_part_is_not_lent(void **state)
{
    struct segments *own = segments_new(LIMIT);
    struct tensor t = filled(own, 1), part = t;
    struct shape scalar = SHAPE_SCALAR;
    struct tensor other = tensor_borrow(FLOAT32, &scalar, t.data);
    (void)state;
    part.data = (float *)t.data + 1;
    assert_true(segment_has(&t));
    assert_false(segment_has(&part));
    assert_false(segment_has(&other));
    tensor_release(&t);
    segments_free(own);
}

/* An executor's values are put into a segment as soon as another process can map it. */
static void test_what_is_made_to_be_lent(void **state)
{
    struct segments *own = segments_new(LIMIT), *others = segments_new(LIMIT);
    struct outgoing_memory *outgoing = segments_outgoing(own);
    size_t bytes = N * sizeof(float);
    struct tensor there, more;
    (void)state;
    assert_null(outgoing_alloc(outgoing, FLOAT32, bytes));
    segments_have_reader(own);
    assert_null(outgoing_alloc(outgoing, FLOAT32, SEGMENT_LEAST_BYTES - 1));
    assert_null(outgoing_alloc(outgoing, STRING, bytes));
    struct buffer *buffer = outgoing_alloc(outgoing, FLOAT32, bytes);
    struct tensor t = {FLOAT32, shape, buffer->data, buffer, NULL};
    assert_true(segment_is_own(&t));
    ((float *)t.data)[N - 1] = 3;
    assert_true(buffer_is_sole(t.buffer));
    struct segment_offer offer = segment_share(&t);
    assert_false(segment_is_own(&t)); /* from now on the other may read it */
    assert_false(buffer_is_sole(t.buffer));
    assert_int_equal(map(others, &offer, &there), SEGMENT_TAKEN);
    assert_float_equal(last(&there), 3, 0);
    assert_false(segment_is_own(&there));
    assert_false(buffer_is_sole(there.buffer));
    tensor_release(&t);
    assert_false(segment_is_own(&there)); /* another's memory is never its own */
    tensor_release(&there);
    assert_true(segments_alloc(own, &t, FLOAT32, &shape));
    assert_true(segments_alloc(own, &there, FLOAT32, &shape));
    assert_true(segments_alloc(own, &more, FLOAT32, &shape));
    assert_null(outgoing_alloc(outgoing, FLOAT32, bytes)); /* beyond the limit */
    tensor_release(&t);
    tensor_release(&there);
    tensor_release(&more);
    segments_free(own);
    segments_free(others);
}

static void test_the_limit(void **state)
{
    struct segments *own = segments_new(LIMIT), *others = segments_new(LIMIT - 1);
    struct tensor t[4], there[3];
    struct segment_offer offer;
    (void)state;
    for (int i = 0; i < 3; i++)
        t[i] = filled(own, (float)i);
    assert_false(segments_alloc(own, &t[3], FLOAT32, &shape));
    for (int i = 0; i < 3; i++) {
        offer = segment_share(&t[i]);
        assert_int_equal(map(others, &offer, &there[i]), i < 2 ? SEGMENT_TAKEN : SEGMENT_FULL);
    }
    segment_take_back(&t[2]);
    tensor_release(&there[0]); /* makes room */
    offer = segment_share(&t[2]);
    assert_int_equal(map(others, &offer, &there[2]), SEGMENT_TAKEN);
    assert_float_equal(last(&there[1]) + last(&there[2]), 3, 0);
    tensor_release(&there[1]);
    tensor_release(&there[2]);
    for (int i = 0; i < 3; i++)
        tensor_release(&t[i]);
    struct shape half = shape_vector(N / 2); /* free memory that is too large makes room, too */
    assert_true(segments_alloc(own, &t[0], FLOAT32, &half));
    tensor_release(&t[0]);
    segments_free(own);
    segments_free(others);
}

/* A small part of a tensor is mapped in place, counts for no limit, and keeps the tensor's memory.
 */
static void test_a_part_is_mapped(void **state)
{
    struct segments *own = segments_new(LIMIT), *others = segments_new(4096);
    struct tensor t = filled(own, 1), part, there, whole;
    struct shape some = shape_vector(2000);
    (void)state;
    for (int64_t i = 0; i < N; i++)
        ((float *)t.data)[i] = (float)i;
    part = tensor_borrow(FLOAT32, &some, (float *)t.data + N - 2000);
    part.buffer = t.buffer;
    assert_true(segment_has(&t) && segment_has_part(&part) && !segment_has(&part));
    struct segment_offer offer = segment_share(&part), wrong = offer;
    assert_int_equal(offer.bytes, 8000);
    wrong.offset++;
    assert_int_equal(segments_map(others, &wrong, FLOAT32, &some, &there), SEGMENT_NOT_THERE);
    wrong.offset = UINT64_MAX - 3;
    assert_int_equal(segments_map(others, &wrong, FLOAT32, &some, &there), SEGMENT_NOT_THERE);
    assert_int_equal(segments_map(others, &offer, FLOAT32, &some, &there), SEGMENT_TAKEN);
    assert_true(((float *)there.data)[0] == (float)(N - 2000) && last(&t) == (float)(N - 1));
    assert_memory_equal(there.data, part.data, 8000);
    assert_false(segment_is_own(&t));
    offer = segment_share(&t);
    assert_int_equal(map(others, &offer, &whole), SEGMENT_FULL);
    segment_take_back(&t);
    tensor_release(&there);
    assert_true(segment_is_own(&t));
    tensor_release(&t);
    segments_free(own);
    segments_free(others);
}

static void test_what_is_not_there(void **state)
{
    struct segments *own = segments_new(LIMIT), *others = segments_new(LIMIT);
    struct tensor t = filled(own, 1), there;
    struct segment_offer good = segment_share(&t), wrong;
    struct shape larger = shape_vector(N + 1);
    (void)state;
    wrong = good;
    wrong.number++;
    assert_int_equal(map(others, &wrong, &there), SEGMENT_NOT_THERE);
    wrong = good;
    wrong.fd = 1;
    assert_int_equal(map(others, &wrong, &there), SEGMENT_NOT_THERE);
    wrong.fd = INT64_MAX;
    assert_int_equal(map(others, &wrong, &there), SEGMENT_NOT_THERE);
    assert_int_equal(segments_map(others, &good, FLOAT32, &larger, &there), SEGMENT_NOT_THERE);
    assert_int_equal(map(others, &good, &there), SEGMENT_TAKEN);
    tensor_release(&there);
    tensor_release(&t);
    segments_free(own);
    segments_free(others);
}

/* ---- two processes ---- */

/* Shares a tensor with a child, which acts on it; returns the child's status. */
static int in_child(const struct segment_offer *offer, void (*act)(struct tensor *t))
{
    int status;
    pid_t child = fork();
    if (!child) {
        struct segments *others = segments_new(LIMIT);
        struct tensor there;
        signal(SIGSEGV, SIG_DFL);
        if (map(others, offer, &there) == SEGMENT_TAKEN && last(&there) == 7)
            act(&there);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void die(struct tensor *t)
{
    (void)t;
    raise(SIGKILL);
}

static void scribble(struct tensor *t)
{
    *(volatile float *)t->data = 8;
    _exit(0);
}

/* Its memory is not reused at once, as its death is unknown; but in time it is given back. */
static void test_a_reader_dies(void **state)
{
    struct segments *own = segments_new(LIMIT);
    struct tensor t[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        t[i] = filled(own, 7);
        struct segment_offer offer = segment_share(&t[i]);
        int status = in_child(&offer, die);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    for (int i = 0; i < 3; i++)
        tensor_release(&t[i]);
    assert_false(segments_alloc(own, &t[0], FLOAT32, &shape));
    segments_trim(own, FOREVER);
    assert_false(segments_alloc(own, &t[0], FLOAT32, &shape));
    segments_trim(own, AT_ONCE);
    t[0] = filled(own, 1);
    segments_trim(own, AT_ONCE); /* must not free memory in use */
    assert_true(segment_has(&t[0]));
    tensor_release(&t[0]);
    segments_free(own);
}

/* Address space takes no memory, but counts as a file's size, which may be limited. */
static void test_small_files(void **state)
{
    int status;
    pid_t child = fork();
    (void)state;
    if (!child) {
        struct rlimit limit = {6 * N * sizeof(float), RLIM_INFINITY};
        struct shape small = shape_vector(2 * N), large = shape_vector(4 * N);
        struct segments *own = segments_new(0);
        struct tensor t;
        setrlimit(RLIMIT_FSIZE, &limit);
        bool good =
            segments_alloc(own, &t, FLOAT32, &small) && !segments_alloc(own, &t, FLOAT32, &large);
        limit.rlim_cur = 1000;
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(good && !segments_alloc(segments_new(0), &t, FLOAT32, &small) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A kernel that wrongly overwrites a received value cannot change memory that others read. */
static void test_a_reader_cannot_write(void **state)
{
    struct segments *own = segments_new(LIMIT);
    struct tensor t = filled(own, 7);
    struct segment_offer offer = segment_share(&t);
    (void)state;
    int status = in_child(&offer, scribble);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_float_equal(*(float *)t.data, 7, 0);
    tensor_release(&t);
    segments_free(own);
}

static void test_the_lender_dies(void **state)
{
    struct segments *others = segments_new(LIMIT), *third = segments_new(LIMIT);
    struct segment_offer offer;
    struct tensor there, on;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        struct segments *own = segments_new(LIMIT);
        struct tensor t = filled(own, 7);
        offer = segment_share(&t);
        _exit(write(ends[1], &offer, sizeof offer) < 0 || pause());
    }
    assert_int_equal(read(ends[0], &offer, sizeof offer), sizeof offer);
    assert_int_equal(map(others, &offer, &there), SEGMENT_TAKEN);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (int64_t i = 0; i < N; i += 512) /* one of each page */
        assert_float_equal(((const float *)there.data)[i], 7, 0);
    assert_int_equal(map(third, &offer, &on), SEGMENT_NOT_THERE);
    offer = segment_share(&there);
    assert_int_equal(map(third, &offer, &on), SEGMENT_TAKEN);
    tensor_release(&there);
    segments_free(others);
    assert_float_equal(last(&on), 7, 0);
    tensor_release(&on);
    segments_free(third);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_suits),
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_lent_on),
        cmocka_unit_test(test_a_part_is_not_lent),
        cmocka_unit_test(test_the_limit),
        cmocka_unit_test(test_small_files),
        cmocka_unit_test(test_a_part_is_mapped),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_a_reader_dies),
        cmocka_unit_test(test_a_reader_cannot_write),
        cmocka_unit_test(test_the_lender_dies),
        cmocka_unit_test(test_a_large_one_takes_what_others_left),
        cmocka_unit_test(test_what_is_made_to_be_lent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
