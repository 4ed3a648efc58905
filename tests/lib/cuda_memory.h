/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of CUDA kernels on the host: memory between pages that nobody may access. Either it
 * begins with a page, and the bytes between its end and the next page are checked; or it ends with
 * a page, and then packs may begin at addresses that are no multiple of their size.
 */
#ifndef TF_TESTS_LIB_CUDA_MEMORY_H
#define TF_TESTS_LIB_CUDA_MEMORY_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/unit.h"

#define GUARDED_MARK 0xa5

struct guarded {
    void *data;
    size_t bytes;
    unsigned char *pages;
    size_t page, length; /* of a page, of all */
};

static inline struct guarded guarded_new(size_t bytes, bool at_end)
{
    struct guarded g = {.bytes = bytes, .page = (size_t)sysconf(_SC_PAGESIZE)};
    size_t inner = (bytes / g.page + 1) * g.page;
    g.length = inner + 2 * g.page;
    g.pages = mmap(NULL, g.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.pages != MAP_FAILED);
    assert_int_equal(mprotect(g.pages + g.page, inner, PROT_READ | PROT_WRITE), 0);
    memset(g.pages + g.page, GUARDED_MARK, inner);
    g.data = g.pages + g.page + (at_end ? inner - bytes : 0);
    return g;
}

static inline struct guarded guarded_copy(const void *data, size_t bytes, bool at_end)
{
    struct guarded g = guarded_new(bytes, at_end);
    if (bytes)
        memcpy(g.data, data, bytes);
    return g;
}

/* Frees it, and fails if the bytes around it were written to. */
static inline void guarded_free(struct guarded *g)
{
    const unsigned char *end = g->pages + g->length - g->page;
    for (const unsigned char *p = g->pages + g->page; p < end; p++)
        if ((p < (unsigned char *)g->data || p >= (unsigned char *)g->data + g->bytes) &&
            *p != GUARDED_MARK)
            fail_msg("the byte %td from the beginning of %zu bytes was written to",
                     p - (unsigned char *)g->data, g->bytes);
    assert_int_equal(munmap(g->pages, g->length), 0);
    *g = (struct guarded){0};
}

#endif
