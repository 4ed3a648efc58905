/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/codec.h"

#include <dlfcn.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/memory.h"

/* ---- gzip ---- */

static void *gzip_open(void)
{
    z_stream *zlib = mem_alloc(sizeof *zlib);
    if (inflateInit2(zlib, 15 + 16) == Z_OK)
        return zlib;
    mem_free(zlib);
    return NULL;
}

static enum codec_status gzip_step(void *decoder, struct codec_step *step)
{
    z_stream *zlib = decoder;
    unsigned room = step->out_n < (1u << 30) ? (unsigned)step->out_n : 1u << 30;
    zlib->next_in = (unsigned char *)step->in;
    zlib->avail_in = (unsigned)step->in_n;
    zlib->next_out = step->out;
    zlib->avail_out = room;
    int status = inflate(zlib, Z_NO_FLUSH);
    step->in = zlib->next_in;
    step->in_n = zlib->avail_in;
    step->out = zlib->next_out;
    step->out_n -= room - zlib->avail_out;
    if (status == Z_STREAM_END)
        return CODEC_END;
    if (status == Z_MEM_ERROR)
        return CODEC_MEMORY;
    return status == Z_OK || status == Z_BUF_ERROR ? CODEC_MORE : CODEC_DAMAGED;
}

static void gzip_reset(void *decoder)
{
    inflateReset(decoder);
}

static const char *gzip_why(const void *decoder)
{
    const z_stream *zlib = decoder;
    return zlib->msg ? zlib->msg : "checksum";
}

static void gzip_close(void *decoder)
{
    inflateEnd(decoder);
    mem_free(decoder);
}

/* ---- xz ---- */

#define XZ_LIBRARY "liblzma.so.5"
#define XZ_MEMORY ((uint64_t)512 << 20)

static struct {
    __typeof__(lzma_stream_decoder) *begin;
    __typeof__(lzma_code) *code;
    __typeof__(lzma_end) *end;
} xz;

struct xz_decoder {
    lzma_stream lzma;
    lzma_ret status;
};

static void xz_reset(void *decoder)
{
    struct xz_decoder *d = decoder;
    d->status = xz.begin(&d->lzma, XZ_MEMORY, 0);
}

static void *xz_open(void)
{
    void *library = dlopen(XZ_LIBRARY, RTLD_NOW);
    if (!library)
        return NULL;
    *(void **)&xz.begin = dlsym(library, "lzma_stream_decoder");
    *(void **)&xz.code = dlsym(library, "lzma_code");
    *(void **)&xz.end = dlsym(library, "lzma_end");
    if (!xz.begin || !xz.code || !xz.end)
        return NULL;
    struct xz_decoder *d = mem_alloc(sizeof *d);
    xz_reset(d);
    return d;
}

static enum codec_status xz_step(void *decoder, struct codec_step *step)
{
    struct xz_decoder *d = decoder;
    if (d->status == LZMA_OK || d->status == LZMA_BUF_ERROR) {
        d->lzma.next_in = step->in;
        d->lzma.avail_in = step->in_n;
        d->lzma.next_out = step->out;
        d->lzma.avail_out = step->out_n;
        d->status = xz.code(&d->lzma, LZMA_RUN);
        step->in = d->lzma.next_in;
        step->in_n = d->lzma.avail_in;
        step->out = d->lzma.next_out;
        step->out_n = d->lzma.avail_out;
    }
    if (d->status == LZMA_STREAM_END)
        return CODEC_END;
    if (d->status == LZMA_MEM_ERROR || d->status == LZMA_MEMLIMIT_ERROR)
        return CODEC_MEMORY;
    return d->status == LZMA_OK || d->status == LZMA_BUF_ERROR ? CODEC_MORE : CODEC_DAMAGED;
}

static const char *xz_why(const void *decoder)
{
    const struct xz_decoder *d = decoder;
    return d->status == LZMA_OPTIONS_ERROR ? "of a kind that is not known"
                                           : "checksum or structure";
}

static void xz_close(void *decoder)
{
    struct xz_decoder *d = decoder;
    xz.end(&d->lzma);
    mem_free(d);
}

/* ---- zstd ---- */

#define ZSTD_LIBRARY "libzstd.so.1"

static struct {
    __typeof__(ZSTD_createDStream) *create;
    __typeof__(ZSTD_initDStream) *begin;
    __typeof__(ZSTD_decompressStream) *decompress;
    __typeof__(ZSTD_isError) *is_error;
    __typeof__(ZSTD_getErrorName) *error_name;
    __typeof__(ZSTD_freeDStream) *free;
} zstd;

struct zstd_decoder {
    ZSTD_DStream *stream;
    size_t status;
};

static void *zstd_open(void)
{
    void *library = dlopen(ZSTD_LIBRARY, RTLD_NOW);
    if (!library)
        return NULL;
    *(void **)&zstd.create = dlsym(library, "ZSTD_createDStream");
    *(void **)&zstd.begin = dlsym(library, "ZSTD_initDStream");
    *(void **)&zstd.decompress = dlsym(library, "ZSTD_decompressStream");
    *(void **)&zstd.is_error = dlsym(library, "ZSTD_isError");
    *(void **)&zstd.error_name = dlsym(library, "ZSTD_getErrorName");
    *(void **)&zstd.free = dlsym(library, "ZSTD_freeDStream");
    if (!zstd.create || !zstd.begin || !zstd.decompress || !zstd.is_error || !zstd.error_name ||
        !zstd.free)
        return NULL;
    struct zstd_decoder *d = mem_alloc(sizeof *d);
    d->stream = zstd.create();
    if (d->stream)
        return d;
    mem_free(d);
    return NULL;
}

static enum codec_status zstd_step(void *decoder, struct codec_step *step)
{
    struct zstd_decoder *d = decoder;
    ZSTD_inBuffer in = {step->in, step->in_n, 0};
    ZSTD_outBuffer out = {step->out, step->out_n, 0};
    d->status = zstd.decompress(d->stream, &out, &in);
    step->in += in.pos;
    step->in_n -= in.pos;
    step->out += out.pos;
    step->out_n -= out.pos;
    if (zstd.is_error(d->status))
        return CODEC_DAMAGED;
    return d->status == 0 ? CODEC_END : CODEC_MORE;
}

static void zstd_reset(void *decoder)
{
    zstd.begin(((struct zstd_decoder *)decoder)->stream);
}

static const char *zstd_why(const void *decoder)
{
    return zstd.error_name(((const struct zstd_decoder *)decoder)->status);
}

static void zstd_close(void *decoder)
{
    struct zstd_decoder *d = decoder;
    zstd.free(d->stream);
    mem_free(d);
}

static const struct codec codecs[] = {
    {"gzip", "\x1f\x8b", 2, 1032, NULL, gzip_open, gzip_step, gzip_reset, gzip_why, gzip_close},
    {"xz",
     "\xfd"
     "7zXZ\0",
     6, 1 << 20, XZ_LIBRARY, xz_open, xz_step, xz_reset, xz_why, xz_close},
    {"zstd", "\x28\xb5\x2f\xfd", 4, 1 << 20, ZSTD_LIBRARY, zstd_open, zstd_step, zstd_reset,
     zstd_why, zstd_close},
};

const struct codec *codec_find(const unsigned char *bytes, size_t n, bool *may_be)
{
    *may_be = false;
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const struct codec *codec = &codecs[i];
        bool fits = !memcmp(bytes, codec->magic, n < codec->magic_n ? n : codec->magic_n);
        if (fits && n >= codec->magic_n)
            return codec;
        *may_be |= fits;
    }
    return NULL;
}
