/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA libraries, found at run time by name, so that one build serves machines with and without
 * them. Only files whose names end in _real_cuda.c include this.
 */
#ifndef TF_OPS_DEVICE_LIBRARY_REAL_CUDA_H
#define TF_OPS_DEVICE_LIBRARY_REAL_CUDA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "ops/device/launch_cuda.h"

/* "libNAME.so.VERSION", of a version that is a macro. */
#define CUDA_LIBRARY_TEXT(x) #x
#define CUDA_LIBRARY_FILE(name, version) "lib" name ".so." CUDA_LIBRARY_TEXT(version)

struct cuda_symbol {
    const char *name;
    size_t at; /* offset of the function's pointer in the table */
};

struct cuda_library {
    const char *what, *file; /* "matrix products", "libcublas.so.13" */
    const struct cuda_symbol *symbols;
    size_t n;
    void *functions;
    pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER; the rest is zeroed */
    bool is_tried;
    struct error missing; /* the error of the first attempt */
};

/* At the first call, loads the library and finds all symbols. ERR_UNAVAILABLE says what is missing.
 * Any thread. */
int cuda_library_load(struct cuda_library *library, struct error *err);

/* Defines, in a file for one library, the table `table` of its functions, typed by their
 * declarations, and load(), which fills it. functions_of(X) is a list of X(field, symbol). */
#define CUDA_FUNCTION_FIELD(field, symbol) __typeof__(&symbol) field;
#define CUDA_FUNCTION_SYMBOL(field, symbol) {#symbol, offsetof(struct cuda_functions, field)},
#define CUDA_LIBRARY(table, functions_of, what_for, name)                                          \
    static struct cuda_functions {                                                                 \
        functions_of(CUDA_FUNCTION_FIELD)                                                          \
    } table;                                                                                       \
    static const struct cuda_symbol symbols[] = {functions_of(CUDA_FUNCTION_SYMBOL)};              \
    static struct cuda_library library = {.what = what_for,                                        \
                                          .file = name,                                            \
                                          .symbols = symbols,                                      \
                                          .n = sizeof symbols / sizeof *symbols,                   \
                                          .functions = &table,                                     \
                                          .lock = PTHREAD_MUTEX_INITIALIZER};                      \
    static int load(struct error *err)                                                             \
    {                                                                                              \
        return cuda_library_load(&library, err);                                                   \
    }

/* Defines functions that make and free a library handle, by the table's create() and destroy().
 */
#define CUDA_LIBRARY_HANDLES(table, handle_type)                                                   \
    static int handle_new(void **handle)                                                           \
    {                                                                                              \
        return (int)table.create((handle_type *)handle);                                           \
    }                                                                                              \
    static void handle_free(void *handle)                                                          \
    {                                                                                              \
        table.destroy(handle);                                                                     \
    }

/* Makes a call of a library, unless one before it has failed. */
#define CUDA_TRY(status, call) ((status) = (status) ? (status) : (call))

/* Returns 1 or 0, of the type in which a library expects factors of such a product. */
static inline const void *cuda_factor(enum cuda_type type, bool is_one)
{
    static const double doubles[] = {0, 1};
    static const float floats[] = {0, 1};
    return type == CUDA_FLOAT64 ? (const void *)&doubles[is_one] : &floats[is_one];
}

/* Defines error_text(), by the table's text(). */
#define CUDA_LIBRARY_ERRORS(table, status_type)                                                    \
    static const char *error_text(int status)                                                      \
    {                                                                                              \
        return table.text((status_type)status);                                                    \
    }

/* In a build without the library's header: its functions, where load() reports that the build lacks
 * it. */
#define CUDA_LIBRARY_ABSENT(functions, what, header)                                               \
    static int load(struct error *err)                                                             \
    {                                                                                              \
        return error_set(err, ERR_UNAVAILABLE,                                                     \
                         "this build has no " what ": " header " was not there");                  \
    }                                                                                              \
    const struct functions functions##_real = {.calls = {.load = load}}

#endif
