/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/words.h"
#include "ps/durable.h"

#define MANIFEST_VERSION "1"
#define READ_BYTES (1 << 20)

void manifest_add_file(struct manifest *manifest, const char *name, int64_t bytes,
                       const char *digest)
{
    struct manifest_file file = {.name = arena_strdup(&manifest->arena, name), .bytes = bytes};
    snprintf(file.digest, sizeof file.digest, "%s", digest);
    vec_push(&manifest->files, file);
}

void manifest_add_pushes(struct manifest *manifest, const char *worker, int64_t count)
{
    struct manifest_pushes pushes = {arena_strdup(&manifest->arena, worker), count};
    vec_push(&manifest->pushes, pushes);
}

void manifest_release(struct manifest *manifest)
{
    vec_release(&manifest->files);
    vec_release(&manifest->pushes);
    arena_release(&manifest->arena);
}

/* ---- writing ---- */

static const char *now_text(struct arena *arena)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return arena_strdup(arena, text);
}

static void format(const struct manifest *manifest, struct str *text)
{
    str_printf(text, "checkpoint " MANIFEST_VERSION "\nstep %" PRId64 "\nsaved %s\n",
               manifest->step, manifest->saved);
    for (size_t i = 0; i < manifest->files.n; i++) {
        const struct manifest_file *file = &manifest->files.items[i];
        str_printf(text, "file %s %" PRId64 " %s\n", file->name, file->bytes, file->digest);
    }
    for (size_t i = 0; i < manifest->pushes.n; i++)
        str_printf(text, "pushes %s %" PRId64 "\n", manifest->pushes.items[i].worker,
                   manifest->pushes.items[i].count);
    str_printf(text, "sum %016" PRIx64 "\n", hash_bytes(text->data, text->n, 0));
}

static int write_whole(int fd, const struct str *text, const char *path, struct error *err)
{
    for (size_t done = 0; done < text->n;) {
        ssize_t n = write(fd, text->data + done, text->n - done);
        if (n < 0 && errno != EINTR)
            return durable_fail(path, err);
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int manifest_write(struct manifest *manifest, const char *folder, struct error *err)
{
    struct durable file;
    struct str text = STR_INIT;
    manifest->saved = now_text(&manifest->arena);
    int code = durable_open(&file, folder, "manifest", err);
    if (code)
        return code;
    format(manifest, &text);
    code = write_whole(file.fd, &text, file.path, err);
    str_release(&text);
    if (!code)
        return durable_commit(&file, err);
    durable_discard(&file);
    return code;
}

/* ---- reading ---- */

static bool is_digest(const char *text)
{
    return strlen(text) == MANIFEST_DIGEST_CHARS &&
           strspn(text, "0123456789abcdef") == MANIFEST_DIGEST_CHARS;
}

static bool is_name(const char *text)
{
    return *text != '.' && !strchr(text, '/');
}

static bool take_line(struct manifest *manifest, const struct words *words)
{
    char *const *word = words->word;
    int64_t value;
    if (words->n == 2 && !strcmp(word[0], "checkpoint"))
        return !strcmp(word[1], MANIFEST_VERSION);
    if (words->n == 2 && !strcmp(word[0], "step"))
        return str_to_int64(word[1], &manifest->step) && manifest->step >= 0;
    if (words->n == 2 && !strcmp(word[0], "saved")) {
        manifest->saved = arena_strdup(&manifest->arena, word[1]);
        return true;
    }
    if (words->n == 4 && !strcmp(word[0], "file") && is_name(word[1]) && is_digest(word[3]) &&
        str_to_int64(word[2], &value) && value >= 0) {
        manifest_add_file(manifest, word[1], value, word[3]);
        return true;
    }
    if (words->n == 3 && !strcmp(word[0], "pushes") && str_to_int64(word[2], &value)) {
        manifest_add_pushes(manifest, word[1], value);
        return true;
    }
    return words->n == 2 && !strcmp(word[0], "sum");
}

static int take(void *context, struct words *words, struct error *err)
{
    return take_line(context, words)
               ? 0
               : error_set(err, ERR_DATA, "'%s' is not of a manifest of version " MANIFEST_VERSION,
                           words->word[0]);
}

/* "...sum c8a1f0e2d4b69753\n", the sum being of what is before that line. */
static bool sum_is_right(const char *text, size_t n)
{
    static const size_t line = sizeof "sum 0123456789abcdef\n" - 1;
    char wanted[32];
    if (n < line)
        return false;
    snprintf(wanted, sizeof wanted, "sum %016" PRIx64 "\n", hash_bytes(text, n - line, 0));
    return !memcmp(text + n - line, wanted, line);
}

static int read_file(const char *path, struct str *text, struct error *err)
{
    char bytes[4096];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        str_append_bytes(text, bytes, (size_t)n);
    if (n < 0 && errno == ENOENT)
        error_set_errno(err, ERR_NOINPUT, "%s", path);
    else if (n < 0)
        durable_fail(path, err);
    if (fd >= 0)
        close(fd);
    return n < 0 ? err->code : 0;
}

int manifest_read(struct manifest *manifest, const char *folder, struct error *err)
{
    struct str text = STR_INIT;
    char *path = NULL;
    manifest->step = -1;
    path = arena_printf(&manifest->arena, "%s/manifest", folder);
    int code = read_file(path, &text, err);
    if (!code && !sum_is_right(str_text(&text), text.n))
        code = error_set(err, ERR_DATA, "%s: damaged: its sum differs", path);
    if (!code)
        code = words_parse(text.data, text.n, path, take, manifest, err);
    if (!code && (manifest->step < 0 || !manifest->saved || !manifest->files.n))
        code = error_set(err, ERR_DATA, "%s: names no step, no time or no file", path);
    str_release(&text);
    return code;
}

/* ---- files ---- */

static int digest_fd(int fd, const char *path, int64_t *bytes, XXH3_state_t *state,
                     struct error *err)
{
    unsigned char *buffer = mem_alloc(READ_BYTES);
    ssize_t n;
    *bytes = 0;
    while ((n = read(fd, buffer, READ_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        XXH3_128bits_update(state, buffer, (size_t)n);
        *bytes += n;
    }
    mem_free(buffer);
    return n < 0 ? durable_fail(path, err) : 0;
}

int manifest_digest(const char *path, int64_t *bytes, char digest[MANIFEST_DIGEST_CHARS + 1],
                    struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return durable_fail(path, err);
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    int code = digest_fd(fd, path, bytes, state, err);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(digest, MANIFEST_DIGEST_CHARS + 1, "%016" PRIx64 "%016" PRIx64, hash.high64,
             hash.low64);
    XXH3_freeState(state);
    close(fd);
    return code;
}

int manifest_verify(const struct manifest *manifest, const char *folder, struct error *err)
{
    struct arena arena = ARENA_INIT;
    int code = 0;
    for (size_t i = 0; !code && i < manifest->files.n; i++) {
        const struct manifest_file *file = &manifest->files.items[i];
        const char *path = arena_printf(&arena, "%s/%s", folder, file->name);
        char digest[MANIFEST_DIGEST_CHARS + 1];
        int64_t bytes;
        code = manifest_digest(path, &bytes, digest, err);
        if (!code && bytes != file->bytes)
            code = error_set(err, ERR_DATA, "%s: has %" PRId64 " bytes of %" PRId64, path, bytes,
                             file->bytes);
        if (!code && strcmp(digest, file->digest))
            code = error_set(err, ERR_DATA, "%s: digest differs", path);
    }
    arena_release(&arena);
    return code ? (err->code = ERR_DATA) : 0;
}
