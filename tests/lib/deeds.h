/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: operations on a store in a child that is killed at every system call, or in which each
 * call that reaches the disk is made to fail, and what must hold after each.
 */
#ifndef TF_TESTS_LIB_DEEDS_H
#define TF_TESTS_LIB_DEEDS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "lib/traced.h"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1 /* the sanitizer cannot do without its own mmap */
#else
#define SANITIZED 0
#endif

struct deed {
    const char *name;
    int (*work)(void *context); /* returns deed_tell */
    bool changes;               /* if it reports success, the check must find a change */
};

/* Checks what is left and restores the former state. Returns true if the change is there. */
typedef bool deed_check(const struct deed *deed);

static struct deed_news { /* from the child: shared memory */
    struct error err;
    bool is_done;
} * deed_news;

static inline void deeds_begin(void)
{
    deed_news =
        mmap(NULL, sizeof *deed_news, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(deed_news, MAP_FAILED);
}

static inline void deeds_end(void)
{
    munmap(deed_news, sizeof *deed_news);
}

/* Notes that the child was told the change is on disk: whatever happens now, it must be there. */
static inline void deed_done(void)
{
    deed_news->is_done = true;
}

static inline int deed_tell(const struct error *err)
{
    deed_news->err = *err;
    return err->code;
}

/* Returns how often everything is repeated: STORE_SWEEPS (1). */
static inline int deed_sweeps(void)
{
    const char *many = getenv("STORE_SWEEPS");
    return many ? atoi(many) : 1;
}

static inline bool deed_check_news(const struct deed *deed, deed_check *check)
{
    bool changed = check(deed);
    assert_true(changed || !deed->changes || !deed_news->is_done);
    deed_news->is_done = false;
    return changed;
}

/* Kills the child at each `stride`-th system call. */
static inline void deed_kill_all_along(const struct deed *deed, int stride, deed_check *check)
{
    int n = 1, killed = 0, after = 0, code;
    while ((code = traced_kill(deed->work, NULL, n)) == TRACED_KILLED) {
        after += deed_check_news(deed, check);
        killed++;
        n += stride;
    }
    assert_int_equal(code, 0);
    assert_true(deed_check_news(deed, check) || !deed->changes);
    print_message("%s: killed at %d places, %d of them after the commit\n", deed->name, killed,
                  after);
    assert_true(n > 40);
}

#ifdef __x86_64__

static const long deed_disk_calls[] = {SYS_openat,
                                       SYS_pread64,
                                       SYS_pwrite64,
                                       SYS_fallocate,
                                       SYS_msync,
                                       SYS_fdatasync,
                                       SYS_fsync,
                                       SYS_ftruncate,
                                       SYS_flock,
                                       SYS_sync_file_range,
                                       SYS_fcntl,
                                       SYS_mkdir,
                                       SYS_rename,
                                       SANITIZED ? SYS_fsync : SYS_mmap,
                                       -1};

/* Returns whether a result is allowed: an error, or success, as a failed hint does not matter, and
 * a file that cannot be read for comparison is written anew. */
static inline bool deed_is_fair(int code, int error)
{
    if (code == 0 || code == ERR_IO)
        return true;
    return error != EIO && (code == ERR_OS || code == ERR_DENIED);
}

/* Makes each `stride`-th of the calls fail. */
static inline void deed_fail_all_along(const struct deed *deed, int error, int stride,
                                       deed_check *check)
{
    int n = 1, struck = 0, failed = 0, code;
    while ((code = traced_fail(deed->work, NULL, deed_disk_calls, n, error)) & TRACED_STRUCK) {
        code &= ~TRACED_STRUCK;
        if (!deed_is_fair(code, error))
            fail_msg("%s: call %d: %s: %d, %s", deed->name, n, strerror(error), code,
                     deed_news->err.text);
        bool changed = deed_check_news(deed, check);
        assert_true(code || changed || !deed->changes);
        struck++;
        failed += code != 0;
        n += stride;
    }
    assert_int_equal(code, 0);
    deed_check_news(deed, check);
    print_message("%s: %d calls, %d of them errors when they fail with %s\n", deed->name, struck,
                  failed, strerror(error));
    assert_true(failed > 3);
}

#endif

#endif
