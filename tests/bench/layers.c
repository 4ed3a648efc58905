/* SPDX-License-Identifier: Apache-2.0
 *
 * Milliseconds that oneDNN alone takes for a convolution, in the layouts that it likes best, and
 * OpenBLAS for a product: the shortest of some runs.
 *
 * usage: layers RUNS < LAYERS    (layers.sh)
 * A line of LAYERS: conv NAME batch size channels filters window stride pad
 *                or dense NAME batch inputs outputs
 * A line of the output: NAME KIND MS; KIND is forward, input or filter: what is computed.
 */
#include <cblas.h>
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void check(dnnl_status_t status, const char *what)
{
    if (status) {
        fprintf(stderr, "layers: oneDNN fails with %d: %s\n", (int)status, what);
        exit(70);
    }
}

static float *values(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
    for (size_t i = 0; v && i < n; i++)
        v[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    if (!v)
        exit(71);
    return v;
}

/* ---- convolutions ---- */

enum kind { FORWARD, INPUT, FILTER, N_KINDS };
static const char *const names[N_KINDS] = {"forward", "input", "filter"};

struct conv {
    dnnl_memory_desc_t image, filter, output;
    dnnl_dims_t strides, pads;
};

static dnnl_memory_desc_t any(int64_t a, int64_t b, int64_t size)
{
    const dnnl_dims_t dims = {a, b, size, size};
    dnnl_memory_desc_t desc;
    check(dnnl_memory_desc_init_by_tag(&desc, 4, dims, dnnl_f32, dnnl_format_tag_any), "a shape");
    return desc;
}

static dnnl_primitive_desc_t describe(const struct conv *c, enum kind kind, dnnl_engine_t engine)
{
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t forward, desc;
    check(dnnl_convolution_forward_desc_init(&op, dnnl_forward_training, dnnl_convolution_auto,
                                             &c->image, &c->filter, NULL, &c->output, c->strides,
                                             c->pads, c->pads),
          "a convolution");
    check(dnnl_primitive_desc_create(&forward, &op, NULL, engine, NULL), "a convolution");
    if (kind == FORWARD)
        return forward;
    if (kind == INPUT)
        check(dnnl_convolution_backward_data_desc_init(&op, dnnl_convolution_auto, &c->image,
                                                       &c->filter, &c->output, c->strides, c->pads,
                                                       c->pads),
              "a gradient of images");
    else
        check(dnnl_convolution_backward_weights_desc_init(&op, dnnl_convolution_auto, &c->image,
                                                          &c->filter, NULL, &c->output, c->strides,
                                                          c->pads, c->pads),
              "a gradient of filters");
    check(dnnl_primitive_desc_create(&desc, &op, NULL, engine, forward), "a gradient");
    dnnl_primitive_desc_destroy(forward);
    return desc;
}

static dnnl_memory_t memory(const_dnnl_primitive_desc_t desc, int arg, dnnl_engine_t engine)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg);
    dnnl_memory_t made;
    check(dnnl_memory_create(&made, md, engine, values(dnnl_memory_desc_get_size(md) / 4 + 1)),
          "memory");
    return made;
}

static double time_conv(const struct conv *c, enum kind kind, int runs, dnnl_engine_t engine)
{
    static const int args[N_KINDS][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                         {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                         {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    dnnl_primitive_desc_t desc = describe(c, kind, engine);
    dnnl_exec_arg_t list[3];
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    double best = 1e30;
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "a stream");
    check(dnnl_primitive_create(&primitive, desc), "a primitive");
    for (int i = 0; i < 3; i++)
        list[i] = (dnnl_exec_arg_t){args[kind][i], memory(desc, args[kind][i], engine)};
    for (int i = 0; i <= runs; i++) {
        double from = now();
        check(dnnl_primitive_execute(primitive, stream, 3, list), "a run");
        check(dnnl_stream_wait(stream), "a run");
        double took = now() - from;
        best = i && took < best ? took : best; /* the first run warms up */
    }
    for (int i = 0; i < 3; i++) {
        void *data = NULL;
        dnnl_memory_get_data_handle(list[i].memory, &data);
        dnnl_memory_destroy(list[i].memory);
        free(data);
    }
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    dnnl_stream_destroy(stream);
    return best;
}

static void conv(const char *name, const int64_t v[7], int runs)
{
    static dnnl_engine_t engine;
    int64_t n = v[0], size = v[1], channels = v[2], filters = v[3], window = v[4], stride = v[5];
    int64_t pad = v[6], out = (size + 2 * pad - window) / stride + 1;
    struct conv c = {.image = any(n, channels, size),
                     .filter = any(filters, channels, window),
                     .output = any(n, filters, out),
                     .strides = {stride, stride},
                     .pads = {pad, pad}};
    if (!engine)
        check(dnnl_engine_create(&engine, dnnl_cpu, 0), "no CPU");
    for (enum kind kind = FORWARD; kind < N_KINDS; kind++)
        printf("%s %s %.3f\n", name, names[kind], time_conv(&c, kind, runs, engine));
}

/* ---- products ---- */

static void dense(const char *name, const int64_t v[3], int runs)
{
    int n = (int)v[0], in = (int)v[1], out = (int)v[2];
    float *x = values((size_t)(n * in)), *w = values((size_t)in * (size_t)out);
    float *y = values((size_t)(n * out));
    for (enum kind kind = FORWARD; kind < N_KINDS; kind++) {
        double best = 1e30;
        for (int i = 0; i <= runs; i++) {
            double from = now();
            if (kind == FORWARD)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, out, in, 1, x, in, w, out,
                            0, y, out);
            else if (kind == INPUT)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, in, out, 1, y, out, w, out,
                            0, x, in);
            else
                cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, out, n, 1, x, in, y, out,
                            0, w, out);
            double took = now() - from;
            best = i && took < best ? took : best;
        }
        printf("%s %s %.3f\n", name, names[kind], best);
    }
    free(x);
    free(w);
    free(y);
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 10;
    char kind[16], name[32];
    int64_t v[7] = {0};
    while (scanf("%15s %31s", kind, name) == 2) {
        int n = strcmp(kind, "conv") ? 3 : 7;
        for (int i = 0; i < n; i++)
            if (scanf("%ld", &v[i]) != 1)
                return 65;
        n == 7 ? conv(name, v, runs) : dense(name, v, runs);
    }
    return 0;
}
