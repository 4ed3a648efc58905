/* SPDX-License-Identifier: Apache-2.0
 *
 * A library to preload, for `make flickers`: it pauses at random before and after calls by which
 * threads and processes interact (reads and writes, locks, wake-ups), so that orders of events that
 * are rare on a quiet machine become common. A test that then fails either waits too short a time
 * or has found a race.
 *
 *   PAUSES=FOLDER         in programs below it only: a shell that runs them keeps its pace
 *   PAUSE_ONE_IN=N        one call of N pauses (8)
 *   PAUSE_MICROSECONDS=N  for at most this long (2000)
 *   PAUSE_SEED=N          of the random numbers, together with the process' and thread's number (1)
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static bool pauses;
static uint64_t one_in = 8, microseconds = 2000, seed = 1;
static _Thread_local uint64_t state; /* 0: this thread has not begun; a child of fork goes on */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number = text ? strtoull(text, NULL, 10) : 0;
    return number ? number : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    char program[PATH_MAX];
    const char *folder = getenv("PAUSES");
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    one_in = number_of("PAUSE_ONE_IN", one_in);
    microseconds = number_of("PAUSE_MICROSECONDS", microseconds);
    seed = number_of("PAUSE_SEED", seed);
    if (!folder || length < 0)
        return;
    program[length] = '\0';
    pauses = !strncmp(program, folder, strlen(folder));
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(void)
{
    if (!state)
        state =
            seed * 0x9e3779b97f4a7c15u + (uint64_t)syscall(SYS_gettid) * 0xbf58476d1ce4e5b9u + 1;
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Pauses by a system call, as nanosleep is a cancellation point; errno must stay the call's. */
static void pause_perhaps(void)
{
    if (!pauses || next_random() % one_in)
        return;
    int64_t nanoseconds = (int64_t)(next_random() % (microseconds * 1000));
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    int kept = errno;
    syscall(SYS_nanosleep, &time, NULL);
    errno = kept;
}

/* Finds a function of the C library. glibc has those of conditions twice, one for old programs. */
static void *find(const char *name)
{
    void *found = NULL;
#ifdef __GLIBC__
    found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
    return found ? found : dlsym(RTLD_NEXT, name);
}

/* NAME(ARGUMENTS) of the C library, with a pause before and after it. */
#define PAUSED(type, name, parameters, arguments)                                                  \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*_Atomic real) parameters;                                                     \
        if (!real)                                                                                 \
            real = (type(*) parameters)find(#name);                                                \
        pause_perhaps();                                                                           \
        type result = real arguments;                                                              \
        pause_perhaps();                                                                           \
        return result;                                                                             \
    }

PAUSED(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
PAUSED(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
PAUSED(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))
PAUSED(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
PAUSED(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
PAUSED(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
PAUSED(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
PAUSED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
PAUSED(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
PAUSED(int, epoll_wait, (int fd, struct epoll_event *events, int n, int timeout),
       (fd, events, n, timeout))
PAUSED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
PAUSED(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
PAUSED(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
PAUSED(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
PAUSED(int, pthread_create,
       (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
       (thread, attributes, run, argument))
