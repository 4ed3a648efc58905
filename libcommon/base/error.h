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
 *
 * The line is for people. What a program acts upon beyond the code is the error's reason, so that
 * no code searches texts for words.
 */
#ifndef TF_BASE_ERROR_H
#define TF_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

enum error_code {
    ERR_NEGATIVE = 1,     /* a negative result: a difference found, damage found */
    ERR_USAGE = 64,       /* wrong option or operand */
    ERR_DATA = 65,        /* bad input: malformed, truncated, inconsistent */
    ERR_NOINPUT = 66,     /* an input is missing */
    ERR_UNAVAILABLE = 69, /* a peer cannot be reached, a device is missing */
    ERR_INTERNAL = 70,    /* a bug in this program */
    ERR_OS = 71,          /* the system refused: memory, processes */
    ERR_IO = 74,          /* reading or writing failed */
    ERR_RETRY = 75,       /* locked or timed out: trying again may help */
    ERR_PROTOCOL = 76,    /* the other side speaks another version */
    ERR_DENIED = 77,      /* not permitted */
    ERR_CONFIG = 78,      /* the configuration is wrong */
    ERR_CANCELLED = 130,  /* stopped by SIGINT or by another node's failure */
};

/* A reply to another process carries the reason by name (transport/value/conns.c). */
enum error_reason {
    ERROR_PLAIN,
    ERROR_NOT_FINITE, /* a number that must be finite is NaN or infinite */
    ERROR_WAITED,     /* timed out; the text says what was waited for */
    ERROR_STOPPED,    /* an earlier stage failed and has reported why */
    ERROR_REASONS
};

#define ERROR_TEXT_BYTES 1024

/* A part of the text; n is 0 if the text has no such part. */
struct error_span {
    unsigned short at, n;
};

struct error {
    int code;         /* 0: no error */
    int line;         /* in the source, shown with -v */
    const char *file; /* in the source */
    enum error_reason reason;
    struct error_span node;      /* "node 'hidden/h' (m.lua:2)": the node that failed */
    struct error_span op;        /* its op, "MatMul" */
    char text[ERROR_TEXT_BYTES]; /* one line, always terminated; cut with "..." when too long */
};

/* `struct error err = ERROR_INIT;` leaves the other bytes of the text unset: most errors are never
 * set, and clearing a KiB for each would be noticeable. */
#define ERROR_INIT error_none()

static inline struct error error_none(void)
{
    struct error none;
    none.code = none.line = 0;
    none.file = NULL;
    none.reason = ERROR_PLAIN;
    none.node = none.op = (struct error_span){0, 0};
    none.text[0] = '\0';
    return none;
}

/* Sets the error and returns `code`, so that a caller can `return error_set(...)`. The reason
 * becomes ERROR_PLAIN, with no node, until another call adds them. */
#define error_set(err, code, ...) error_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)

int error_set_at(struct error *err, int code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* As error_set, and appends ": " and the text of errno as it was on entry. */
#define error_set_errno(err, code, ...)                                                            \
    error_set_errno_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)

int error_set_errno_at(struct error *err, int code, const char *file, int line, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* Prepends a formatted text to the message. Returns err->code. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a formatted text to the message. Returns err->code. */
int error_append(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends ", waiting for " and a formatted text, for reason ERROR_WAITED. Returns err->code. */
#define error_waited(err, ...)                                                                     \
    (error_append((err), ", waiting for " __VA_ARGS__), error_set_reason((err), ERROR_WAITED))

static inline int error_set_reason(struct error *err, enum error_reason reason)
{
    err->reason = reason;
    return err->code;
}

/* Prepends "NODE: OP: " and records their positions. If called for several nodes, the innermost,
 * which is the first call, is the one that failed. Returns err->code. */
int error_prefix_node(struct error *err, const char *node, const char *op);

/* Makes the message begin with the op of the failed node, for callers who know no nodes. Does
 * nothing if no node has failed. Returns err->code. */
int error_drop_node(struct error *err);

/* "not-finite"; NULL for ERROR_PLAIN. */
const char *error_reason_name(enum error_reason reason);
/* Returns ERROR_PLAIN for an unknown name and for NULL. */
enum error_reason error_reason_parse(const char *name);

/* Resets the error to none. */
void error_clear(struct error *err);

/* An impossible state: prints file, line and what was expected to stderr and aborts. For
 * programming errors only, never for anything that arrived from outside. */
#define BUG_ON(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!!(condition), 0))                                                    \
            error_bug(__FILE__, __LINE__, #condition);                                             \
    } while (0)

void error_bug(const char *file, int line, const char *condition) __attribute__((noreturn));

#endif
