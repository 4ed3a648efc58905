/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows unrolled into matrices and rolled up again on emulated CUDA, compared with plain loops:
 * random sizes, strides, dilations and paddings, groups, channels moved 16 bytes at once or singly.
 */
#include "lib/cuda_beside.h"
#include "ops/nn/launchers_cuda.h"

static uint64_t random_state = 41;

static int64_t below(int64_t n)
{
    return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

static struct window_axis pick_axis(void)
{
    struct window_axis a = {.in = 1 + below(9),
                            .size = 1 + below(4),
                            .stride = 1 + below(3),
                            .dilation = 1 + below(2),
                            .before = below(4)};
    a.out = (a.in + a.before + below(3)) / a.stride + 1;
    return a;
}

/* Finds, by loops, the place in the image of each element of the matrix, or -1. */
static void find_cells(const struct cuda_unroll *call, int64_t *at)
{
    const struct window_axis *y = &call->y, *x = &call->x;
    int64_t own = call->channels / call->groups;
    for (int64_t b = 0; b < call->batch; b++)
        for (int64_t oy = 0; oy < y->out; oy++)
            for (int64_t ox = 0; ox < x->out; ox++)
                for (int64_t i = 0; i < y->size * x->size * call->groups; i++)
                    for (int64_t c = i / (y->size * x->size) * own, n = c + own; c < n; c++) {
                        int64_t kx = i % x->size, ky = i / x->size % y->size;
                        int64_t iy = oy * y->stride + ky * y->dilation - y->before;
                        int64_t ix = ox * x->stride + kx * x->dilation - x->before;
                        bool inside = iy >= 0 && iy < y->in && ix >= 0 && ix < x->in;
                        int64_t cell = (b * y->in + iy) * x->in + ix;
                        *at++ = inside ? cell * call->channels + c : -1;
                    }
}

static struct tensor vector_of(enum dtype type, int64_t n)
{
    struct shape shape = shape_vector(n);
    struct tensor t = beside_random(type, &shape, &random_state);
    for (int64_t i = 0; i < n; i++) /* their sums are not rounded */
        tensor_set_float64(&t, i, (double)below(17) - 8);
    return t;
}

static void check(enum dtype type)
{
    static const int64_t channels[] = {1, 2, 3, 4, 8, 12, 16}, groups[] = {1, 2, 3, 4, 8};
    enum dtype wide = type == FLOAT64 ? FLOAT64 : FLOAT32;
    struct cuda_unroll call = {.type = beside_type(type),
                               .batch = 1 + below(3),
                               .channels = channels[below(7)],
                               .groups = groups[below(5)],
                               .y = pick_axis(),
                               .x = pick_axis()};
    if (call.channels % call.groups)
        call.groups = below(2) ? call.channels : 1;
    int64_t cells = call.batch * call.y.in * call.x.in * call.channels;
    int64_t n = call.batch * call.y.out * call.x.out * call.y.size * call.x.size * call.channels;
    int64_t *at = malloc((size_t)n * sizeof *at);
    struct tensor image = vector_of(type, cells), matrix = vector_of(type, n);
    struct tensor given = vector_of(wide, n), sum = vector_of(type, cells);
    find_cells(&call, at);
    for (int64_t i = 0; i < cells; i++)
        tensor_set_float64(&sum, i, 0);
    for (int64_t i = 0; i < n; i++) {
        tensor_set_float64(&matrix, i, at[i] < 0 ? 0 : tensor_get_float64(&image, at[i]));
        if (at[i] >= 0)
            tensor_set_float64(&sum, at[i],
                               tensor_get_float64(&sum, at[i]) + tensor_get_float64(&given, i));
    }
    struct guarded from = beside_place(&image, below(2)), to = beside_place(&given, below(2));
    struct guarded rows = guarded_new(tensor_bytes(&matrix), below(2));
    call.image = from.data;
    call.matrix = rows.data;
    beside_launched("unroll", cuda_unroll(&call, NULL));
    beside_compare("unroll", &matrix, rows.data);
    call.matrix = to.data;
    beside_launched("roll", cuda_roll(&call, NULL));
    beside_compare("roll", &sum, from.data);
    guarded_free(&from);
    guarded_free(&to);
    guarded_free(&rows);
    struct tensor *all[] = {&image, &matrix, &given, &sum};
    for (int i = 0; i < 4; i++)
        tensor_release(all[i]);
    free(at);
}

static void windows_are_those_of_loops(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        cuda_emulator_seed(i);
        check(types[i % 4]);
    }
}

static void integers_are_refused(void **state)
{
    struct cuda_unroll call = {.type = CUDA_INT32};
    (void)state;
    assert_int_equal(cuda_unroll(&call, NULL), CUDA_INVALID_VALUE);
    assert_int_equal(cuda_roll(&call, NULL), CUDA_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_those_of_loops),
        cmocka_unit_test(integers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
