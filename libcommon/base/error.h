/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors. The library never prints and never exits: a function that can fail returns 0 or a code of
 * `enum error_code` and fills the caller's `struct error` with one line that says what failed,
 * where and why. The codes are those of <sysexits.h>, so that a tool's exit status is the code
 * itself.
 *
 * The line is built from the inside out: the innermost function says what is wrong
 * ("inner dimensions 64 and 32 differ"), and each caller that knows more puts its knowledge in
 * front with error_prefix ("node 'hidden/h': MatMul: ", then "digits.tfg: ").
 *
 * Form of a message: lower case start, no full stop, no newline, names in single quotes.
 */
#ifndef TF_BASE_ERROR_H
#define TF_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

enum error_code {
    ERR_NEGATIVE = 1,     /* a negative answer: a difference found, damage found */
    ERR_USAGE = 64,       /* wrong option or operand */
    ERR_DATA = 65,        /* bad input: malformed, truncated, inconsistent */
    ERR_NOINPUT = 66,     /* an input is missing */
    ERR_UNAVAILABLE = 69, /* a peer cannot be reached */
    ERR_INTERNAL = 70,    /* a bug of ours */
    ERR_OS = 71,          /* the system refused: memory, processes */
    ERR_IO = 74,          /* reading or writing failed */
    ERR_RETRY = 75,       /* locked or timed out: trying again may help */
    ERR_PROTOCOL = 76,    /* the other side speaks another version */
    ERR_DENIED = 77,      /* not permitted */
    ERR_CONFIG = 78,      /* the configuration is wrong */
    ERR_CANCELLED = 130,  /* stopped by SIGINT or by another node's failure */
};

#define ERROR_TEXT_BYTES 1024

struct error {
    int code;                    /* 0: no error */
    int line;                    /* of our source, shown with -v */
    const char *file;            /* of our source */
    char text[ERROR_TEXT_BYTES]; /* one line, always terminated; cut with "..." when too long */
};

/* `struct error err = ERROR_INIT;` The text's other bytes stay as they are: most errors are never
 * set, and to clear a KiB for each would be felt. */
#define ERROR_INIT error_none()

static inline struct error error_none(void)
{
    struct error none;
    none.code = none.line = 0;
    none.file = NULL;
    none.text[0] = '\0';
    return none;
}

/* Sets the error and returns `code`, so that a caller can `return error_set(...)`. */
#define error_set(err, code, ...) error_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)

int error_set_at(struct error *err, int code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* As error_set, and appends ": " and the text of errno as it was on entry. */
#define error_set_errno(err, code, ...)                                                            \
    error_set_errno_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)

int error_set_errno_at(struct error *err, int code, const char *file, int line, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* Puts a formatted text in front of the message. Returns err->code. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forgets the error. */
void error_clear(struct error *err);

/* An impossible state: prints file, line and what was expected to stderr and aborts. For
 * programming errors only, never for anything that arrived from outside. */
#define BUG_ON(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!!(condition), 0))                                                    \
            error_bug(__FILE__, __LINE__, #condition);                                             \
    } while (0)

_Noreturn void error_bug(const char *file, int line, const char *condition);

#endif
