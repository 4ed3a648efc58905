/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed bytes, decoded piece by piece: gzip, xz and zstd. The libraries of the last two are
 * loaded when a file needs them, so that a filter that reads none starts faster. Thread-safe,
 * except that a decoder is used by one thread.
 */
#ifndef TF_WIRE_CODEC_H
#define TF_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum codec_status {
    CODEC_MORE,    /* more follows, given more input or room */
    CODEC_END,     /* the end of a member; reset() begins another one */
    CODEC_DAMAGED, /* why() returns the reason */
    CODEC_MEMORY,
};

struct codec_step {
    const unsigned char *in; /* advanced past what was read */
    size_t in_n;
    unsigned char *out; /* advanced past what was written */
    size_t out_n;
};

struct codec {
    const char *name;
    const char *magic; /* first bytes of a file */
    size_t magic_n;
    uint64_t ratio_max;  /* the most bytes that one byte can decode to */
    const char *library; /* NULL: linked */
    void *(*open)(void); /* returns a decoder; NULL: out of memory, or no library */
    enum codec_status (*step)(void *decoder, struct codec_step *step);
    void (*reset)(void *decoder);
    const char *(*why)(const void *decoder);
    void (*close)(void *decoder);
};

/* Returns the codec of data with this start, or NULL; *may_be: more bytes could still match one. */
const struct codec *codec_find(const unsigned char *bytes, size_t n, bool *may_be);

#endif
