/* SPDX-License-Identifier: Apache-2.0
 *
 * The key, and loading of the module that implements TLS.
 */
#include "transport/channel/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/tls_private.h"
#include "wire/encoder.h"

struct tls {
    unsigned char *key; /* in a page of its own, excluded from core files */
    char *name;
    void *context; /* NULL: OpenSSL is not loaded yet */
};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static const struct tls_module *module;

/* Loads the module, which lies beside this library. */
static int load_module(struct error *err)
{
    Dl_info info;
    struct str path = STR_INIT;
    if (!dladdr((void *)(uintptr_t)&load_module, &info) || !info.dli_fname)
        return error_set(err, ERR_CONFIG, "cannot find where the library was loaded from");
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash)
        str_append_bytes(&path, info.dli_fname, (size_t)(slash - info.dli_fname) + 1);
    str_append(&path, "tls.so");
    void *handle = dlopen(path.data, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle)
        module = dlsym(handle, "tls_module");
    if (!module)
        error_set(err, ERR_CONFIG, "TLS cannot be loaded: %s", dlerror());
    str_release(&path);
    return err->code;
}

int tls_load(struct tls *tls, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&loading);
    if (!module)
        code = load_module(err);
    if (!code && !tls->context && !(tls->context = module->context_new(tls->key, tls->name, err)))
        code = err->code;
    pthread_mutex_unlock(&loading);
    return code;
}

static int hexadecimal(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= ' ';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_key(const char *text, size_t n, unsigned char key[TLS_KEY_BYTES])
{
    size_t digits = 2 * (size_t)TLS_KEY_BYTES;
    if (n < digits || n > digits + 1 || (n == digits + 1 && text[digits] != '\n'))
        return false;
    for (size_t i = 0; i < TLS_KEY_BYTES; i++) {
        int high = hexadecimal(text[2 * i]), low = hexadecimal(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* Reads at most n bytes, also from a pipe. */
static ssize_t read_up_to(int fd, char *text, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t result = read(fd, text + got, n - got);
        if (result < 0 && errno == EINTR)
            continue;
        if (result < 0)
            return -1;
        if (!result)
            break;
        got += (size_t)result;
    }
    return (ssize_t)got;
}

static int read_key(const char *path, unsigned char key[TLS_KEY_BYTES], struct error *err)
{
    char text[2 * TLS_KEY_BYTES + 2];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s", path);
    struct stat status;
    if (fstat(fd, &status)) {
        error_set_errno(err, ERR_IO, "%s", path);
    } else if (S_ISREG(status.st_mode) && status.st_mode & 077) {
        error_set(err, ERR_DENIED, "%s: others may read this key; chmod 600 it, or make a new one",
                  path);
    } else {
        ssize_t n = read_up_to(fd, text, sizeof text);
        if (n < 0)
            error_set_errno(err, ERR_IO, "%s", path);
        else if (!parse_key(text, (size_t)n, key))
            error_set(err, ERR_CONFIG, "%s is no key: 64 hexadecimal digits", path);
    }
    explicit_bzero(text, sizeof text);
    close(fd);
    return err->code;
}

struct tls *tls_new(const char *key_file, struct error *err)
{
    struct tls *tls = mem_alloc(sizeof *tls);
    error_clear(err);
    tls->name = mem_strdup(key_file);
    tls->key =
        mmap(NULL, TLS_KEY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tls->key == MAP_FAILED)
        mem_exhausted(TLS_KEY_BYTES);
    madvise(tls->key, TLS_KEY_BYTES, MADV_DONTDUMP);
    if (!read_key(key_file, tls->key, err))
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    if (tls->context)
        module->context_free(tls->context);
    explicit_bzero(tls->key, TLS_KEY_BYTES);
    munmap(tls->key, TLS_KEY_BYTES);
    mem_free(tls->name);
    mem_free(tls);
}

struct channel *tls_channel_new(struct tls *tls, int fd, bool server, struct error *err)
{
    return tls_load(tls, err) ? NULL : module->channel_new(tls->context, fd, server, err);
}

void tls_tell_plain(int fd)
{
    struct encoder encoder = {0};
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = encoder_begin(&encoder, RECORD_ERROR, 2);
    pack_key_int(packer, "code", ERR_CONFIG);
    pack_key_text(packer, "text", "a key is needed there: --key-file FILE");
    if (!encoder_finish(&encoder, NULL, 0, &ignored))
        (void)!send(fd, encoder.header.data, encoder.header.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    encoder_release(&encoder);
}
