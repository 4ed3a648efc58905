/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed bytes, a piece at a time: gzip, xz and zstd. The libraries of the last two are loaded
 * when a file wants them: a filter that reads none starts sooner than they are loaded. Thread-safe,
 * but for a decoder.
 */
#ifndef TF_WIRE_CODEC_H
#define TF_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum codec_status {
    CODEC_MORE,    /* goes on, with more input or room if it did nothing */
    CODEC_END,     /* of a member; reset() begins another one */
    CODEC_DAMAGED, /* why() says how */
    CODEC_MEMORY,
};

struct codec_step {
    const unsigned char *in; /* advanced by what was read, ... */
    size_t in_n;
    unsigned char *out; /* ... and by what was written */
    size_t out_n;
};

struct codec {
    const char *name;
    const char *magic; /* what a file begins with */
    size_t magic_n;
    uint64_t ratio_max;  /* bytes that one byte may stand for */
    const char *library; /* NULL: linked */
    void *(*open)(void); /* a decoder; NULL: no memory, or no library */
    enum codec_status (*step)(void *decoder, struct codec_step *step);
    void (*reset)(void *decoder);
    const char *(*why)(const void *decoder);
    void (*close)(void *decoder);
};

/* The one whose data begins so, or NULL. *may_be: there is none yet, but more bytes may make one.
 */
const struct codec *codec_find(const unsigned char *bytes, size_t n, bool *may_be);

#endif
