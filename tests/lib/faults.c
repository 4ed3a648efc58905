/* SPDX-License-Identifier: Apache-2.0
 *
 * A library to preload: makes calls of the C library fail, so that tests can see how tools react.
 * FAULT=WHAT:N chooses:
 *
 *   memory:N   the N-th allocation, and every one after it, finds no memory
 *   once:N     only the N-th allocation
 *   read:N     the N-th read fails with EIO       write:N    the N-th write with ENOSPC
 *   short      every read and write moves one byte at most
 *   eintr      every second read, write and poll is interrupted (EINTR)
 *   fsync      fsync fails with EIO               rename     rename fails with EXDEV
 *
 * Calls count from the start of main; those on stderr do not count and do not fail. With
 * FAULT_COUNT=FILE the number of calls of each sort is written there at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum failed_call { CALL_MEMORY, CALL_READ, CALL_WRITE, CALL_POLL, N_CALLS };

static const char *const names[] = {"memory", "read", "write", "poll"};
static atomic_long counts[N_CALLS];
static long fail_at[N_CALLS]; /* 0: never */
static bool once, is_short, interrupts, fails_fsync, fails_rename;
static atomic_bool started; /* main is running */

static bool is_number(const char *text, const char *prefix, long *n)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0)
        return false;
    *n = atol(text + length);
    return true;
}

static void parse(const char *fault)
{
    once = is_number(fault, "once:", &fail_at[CALL_MEMORY]);
    is_number(fault, "memory:", &fail_at[CALL_MEMORY]);
    is_number(fault, "read:", &fail_at[CALL_READ]);
    is_number(fault, "write:", &fail_at[CALL_WRITE]);
    is_short = !strcmp(fault, "short");
    interrupts = !strcmp(fault, "eintr");
    fails_fsync = !strcmp(fault, "fsync");
    fails_rename = !strcmp(fault, "rename");
}

/* Returns whether this call is to fail. */
static bool strikes(enum failed_call call)
{
    if (!started)
        return false;
    long n = atomic_fetch_add(&counts[call], 1) + 1;
    return fail_at[call] && (n == fail_at[call] || (n > fail_at[call] && !once));
}

static bool is_interrupted(enum failed_call call)
{
    return started && interrupts && atomic_fetch_add(&counts[call], 1) % 2 == 0;
}

static void write_counts(void)
{
    const char *path = getenv("FAULT_COUNT");
    started = false;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int i = 0; i < N_CALLS; i++)
        fprintf(file, "%s %ld\n", names[i], (long)counts[i]);
    fclose(file);
}

/* ---- memory ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Returns whether memory is to be refused to that caller. Libraries in C++, which kernels use, end
 * the process by a signal where their just-in-time code has no memory: theirs is never refused. */
static bool refuses(const void *caller)
{
    Dl_info from;
    return strikes(CALL_MEMORY) &&
           !(dladdr(caller, &from) &&
             (strstr(from.dli_fname, "libdnnl") || strstr(from.dli_fname, "libstdc++")));
}

void *malloc(size_t bytes)
{
    return refuses(__builtin_return_address(0)) ? no_memory() : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return refuses(__builtin_return_address(0)) ? no_memory() : __libc_calloc(n, bytes);
}

void *realloc(void *pointer, size_t bytes)
{
    return refuses(__builtin_return_address(0)) ? no_memory() : __libc_realloc(pointer, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refuses(__builtin_return_address(0)) ? no_memory() : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **pointer, size_t alignment, size_t bytes)
{
    *pointer =
        refuses(__builtin_return_address(0)) ? no_memory() : __libc_memalign(alignment, bytes);
    return *pointer ? 0 : ENOMEM;
}

/* Nothing fails while libraries are loaded: without memory their constructors end the process in
 * their own ways, libgfortran's by calling itself until the stack is full. */
void *dlopen(const char *file, int mode)
{
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    bool was_started = started;
    started = false;
    void *library = real(file, mode);
    started = was_started;
    return library;
}

/* ---- input and output ---- */

/* Returns -1 with errno set, or how many of the first vector's bytes may pass; 0: all. */
static int obstacle(enum failed_call call, int fd, int error)
{
    if (fd == STDERR_FILENO)
        return 0;
    if (is_interrupted(call))
        return errno = EINTR, -1;
    if (strikes(call))
        return errno = error, -1;
    return started && is_short;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *bytes, size_t n)
{
    REAL(read);
    int found = obstacle(CALL_READ, fd, EIO);
    return found < 0 ? -1 : real(fd, bytes, found && n ? 1 : n);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    REAL(write);
    int found = obstacle(CALL_WRITE, fd, ENOSPC);
    return found < 0 ? -1 : real(fd, bytes, found && n ? 1 : n);
}

/* Returns one byte of the first vector that is not empty. */
static struct iovec first_byte(const struct iovec *vectors, int n)
{
    struct iovec first = {0};
    for (int i = 0; i < n && !first.iov_len; i++)
        first = vectors[i];
    first.iov_len = first.iov_len > 0;
    return first;
}

ssize_t readv(int fd, const struct iovec *vectors, int n)
{
    REAL(readv);
    int found = obstacle(CALL_READ, fd, EIO);
    struct iovec first = first_byte(vectors, n);
    return found < 0 ? -1 : found ? real(fd, &first, 1) : real(fd, vectors, n);
}

ssize_t writev(int fd, const struct iovec *vectors, int n)
{
    REAL(writev);
    int found = obstacle(CALL_WRITE, fd, ENOSPC);
    struct iovec first = first_byte(vectors, n);
    return found < 0 ? -1 : found ? real(fd, &first, 1) : real(fd, vectors, n);
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    REAL(poll);
    return is_interrupted(CALL_POLL) ? (errno = EINTR, -1) : real(fds, n, timeout);
}

int fsync(int fd)
{
    REAL(fsync);
    return started && fails_fsync ? (errno = EIO, -1) : real(fd);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return started && fails_rename ? (errno = EXDEV, -1) : real(from, to);
}

/* ---- from main on ---- */

static int (*real_main)(int argc, char **argv, char **environment);

static int counted_main(int argc, char **argv, char **environment)
{
    const char *fault = getenv("FAULT");
    if (fault)
        parse(fault);
    atexit(write_counts);
    started = true;
    return real_main(argc, argv, environment);
}

typedef int start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                       void (*)(void), void *);
start_main __libc_start_main;

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      void (*init)(void), void (*fini)(void), void (*end)(void), void *stack)
{
    start_main *real = (start_main *)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return real(counted_main, argc, argv, init, fini, end, stack);
}
