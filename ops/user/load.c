/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading objects with custom ops: all exports are checked before any is used. A loaded object
 * stays until the process ends.
 */
#include "ops/user/user.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "ops/ops.h"
#include "ops/user/internal.h"

/* ---- what an object exports ---- */

/* The size of rows in the first version. */
#define OP_BYTES_MIN (offsetof(struct tf_op, gradient) + sizeof(void *))
#define KERNEL_BYTES_MIN (offsetof(struct tf_op_kernel, run) + sizeof(void *))

/* Rows of an older object are shorter than ours: missing members are zero. Rows of a newer object
 * are longer, and may require what we do not have. */
static int check_versions(const struct tf_ops *object, struct error *err)
{
    if (object->abi != TF_OP_ABI)
        return error_set(err, ERR_CONFIG,
                         "made for version %u of the interface for ops, not %u: compile it again",
                         (unsigned)object->abi, TF_OP_ABI);
    if (object->bytes > sizeof *object || object->op_bytes > sizeof(struct tf_op) ||
        object->kernel_bytes > sizeof(struct tf_op_kernel) ||
        object->functions_bytes > sizeof(struct tf_op_functions))
        return error_set(err, ERR_CONFIG, "made for a later tf-tools: compile it again");
    if (object->bytes < sizeof *object || object->op_bytes < OP_BYTES_MIN ||
        object->kernel_bytes < KERNEL_BYTES_MIN || !object->n_ops || !object->ops ||
        (object->n_kernels && !object->kernels))
        return error_set(err, ERR_DATA, "its tf_ops names no ops");
    return 0;
}

struct loaded_ops {
    struct arena arena; /* memory of all that follows; kept with the ops */
    const struct op_def **defs;
    struct kernel_row *rows;
    size_t n_defs, n_rows;
};

/* Copies row i of an array whose rows have `bytes` bytes to one of our size. */
static void *take_row(struct loaded_ops *loaded, const void *rows, uint32_t i, uint32_t bytes,
                      size_t own_bytes)
{
    void *row = arena_alloc(&loaded->arena, own_bytes);
    return memcpy(row, (const char *)rows + (size_t)i * bytes, bytes);
}

static bool is_name(const char *name)
{
    if (!name || !isupper((unsigned char)*name))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

/* ---- an object's ops, ready to be added ---- */

static int take_ops(struct loaded_ops *loaded, const struct tf_ops *object, struct error *err)
{
    loaded->defs = arena_array(&loaded->arena, object->n_ops, sizeof *loaded->defs);
    const uint32_t known = TF_OP_STATEFUL | TF_OP_COMMUTATIVE | TF_OP_NO_GRADIENT;
    for (uint32_t i = 0; i < object->n_ops; i++) {
        struct user_op *op = arena_alloc(&loaded->arena, sizeof *op);
        loaded->defs[loaded->n_defs++] = &op->def;
        const struct tf_op *row =
            take_row(loaded, object->ops, i, object->op_bytes, sizeof(struct tf_op));
        if (!is_name(row->name))
            return error_set(err, ERR_DATA, "'%.60s' cannot be the name of an op",
                             row->name ? row->name : "");
        if (row->flags & ~known)
            return error_set(err, ERR_DATA, "op %s has a flag that does not exist", row->name);
        op->row = row;
        op->def = (struct op_def){.name = row->name,
                                  .inputs = row->inputs,
                                  .outputs = row->outputs,
                                  .attrs = row->attrs,
                                  .doc = row->doc,
                                  .flags = (row->flags & TF_OP_STATEFUL ? OP_STATEFUL : 0u) |
                                           (row->flags & TF_OP_COMMUTATIVE ? OP_COMMUTATIVE : 0u) |
                                           (row->flags & TF_OP_NO_GRADIENT ? OP_NO_GRADIENT : 0u),
                                  .version = row->version,
                                  .shape = user_shape,
                                  .gradient = row->gradient ? user_gradient : NULL};
    }
    return 0;
}

static int take_kernels(struct loaded_ops *loaded, const struct tf_ops *object, struct error *err)
{
    loaded->rows = arena_array(&loaded->arena, object->n_kernels + 1u, sizeof *loaded->rows);
    for (uint32_t i = 0; i < object->n_kernels; i++) {
        const struct tf_op_kernel *kernel =
            take_row(loaded, object->kernels, i, object->kernel_bytes, sizeof *kernel);
        struct user_code *code = arena_alloc(&loaded->arena, sizeof *code);
        *code = (struct user_code){user_kernel_code, kernel};
        loaded->rows[loaded->n_rows++] = (struct kernel_row){.op = kernel->op,
                                                             .device = "CPU",
                                                             .code = "user",
                                                             .types = kernel->types,
                                                             .own = &code->code};
        bool is_declared = false;
        for (size_t k = 0; kernel->op && k < loaded->n_defs; k++)
            is_declared |= !strcmp(loaded->defs[k]->name, kernel->op);
        if (!is_declared)
            return error_set(err, ERR_DATA, "has a kernel of op %s, which it does not declare",
                             kernel->op ? kernel->op : "without a name");
        if (!kernel->run)
            return error_set(err, ERR_DATA, "its kernel of op %s has no run function", kernel->op);
    }
    return 0;
}

/* Tries a separate registry first, so that a malformed declaration does not change the real one. */
static int check_declarations(const struct loaded_ops *loaded, struct error *err)
{
    struct registry *trial = registry_new();
    int code = registry_add(trial, loaded->defs, loaded->n_defs, err);
    for (size_t i = 0; !code && i < loaded->n_defs; i++) {
        const char *name = loaded->defs[i]->name;
        const struct op *op = registry_find(trial, name);
        /* Writing a variable in place needs functions that kernels of custom ops do not have. */
        for (int k = 0; !code && k < op->n_inputs + op->n_outputs; k++) {
            const struct op_arg *arg =
                k < op->n_inputs ? &op->inputs[k] : &op->outputs[k - op->n_inputs];
            if (arg->is_ref)
                code = error_set(err, ERR_DATA,
                                 "op %s: '%s' is a reference, which is for built-in ops",
                                 op->def->name, arg->name);
        }
        if (!code && registry_find(ops_registry(), name))
            code = error_set(err, ERR_DATA, "op %s exists already", name);
    }
    registry_free(trial);
    return code ? err->code = ERR_DATA : 0;
}

static int take_table(const struct tf_ops *object, struct error *err)
{
    struct loaded_ops loaded = {0};
    int code = check_versions(object, err);
    if (!code)
        code = take_ops(&loaded, object, err);
    if (!code)
        code = take_kernels(&loaded, object, err);
    if (!code)
        code = check_declarations(&loaded, err);
    if (!code) {
        struct kernel_table more = {loaded.rows, loaded.n_rows};
        code = ops_add(loaded.defs, loaded.n_defs, &more, err);
    }
    if (code)
        arena_release(&loaded.arena);
    return code;
}

/* ---- files ---- */

int user_ops_load(const char *path, struct error *err)
{
    static VEC(const struct tf_ops *) taken;
    const struct tf_ops *found = NULL;
    struct stat status;
    error_clear(err);
    char *whole = realpath(path, NULL); /* a bare name would be searched in library folders */
    if (!whole || stat(whole, &status))
        error_set_errno(err, file_error_code(), "cannot be read");
    else if (!S_ISREG(status.st_mode)) /* opening a pipe would wait */
        error_set(err, ERR_DATA, "not an object with ops: it is no file");
    void *object = err->code ? NULL : dlopen(whole, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!object && !err->code) { /* dlerror puts the path before the reason */
        const char *why = dlerror();
        size_t n = strlen(whole);
        if (!why)
            why = "it cannot be loaded";
        if (!strncmp(why, whole, n) && !strncmp(why + n, ": ", 2))
            why += n + 2;
        error_set(err, ERR_DATA, "not an object with ops: %s", why);
    }
    free(whole);
    if (object && !(found = dlsym(object, "tf_ops")))
        error_set(err, ERR_DATA, "not an object with ops: it exports no tf_ops");
    vec_each(one, &taken)
        if (*one == found)
            return 0;
    if (!err->code && !take_table(found, err))
        vec_push(&taken, found);
    return err->code ? error_prefix(err, "%s: ", path) : 0;
}

static int is_object(const struct dirent *entry)
{
    return str_ends(entry->d_name, ".so");
}

static int load_folder(const char *folder, struct error *err)
{
    struct dirent **entries;
    struct str path = STR_INIT;
    int n = scandir(folder, &entries, is_object, alphasort);
    if (n < 0)
        return error_set_errno(err, ERR_IO, "%s: cannot be read", folder);
    for (int i = 0; i < n; i++) {
        str_clear(&path);
        str_printf(&path, "%s/%s", folder, entries[i]->d_name);
        if (!err->code)
            user_ops_load(str_text(&path), err);
        free(entries[i]);
    }
    free(entries);
    str_release(&path);
    return err->code;
}

int user_ops_load_path(const char *list, struct error *err)
{
    int code = 0;
    while (!code && *list) {
        size_t n = strcspn(list, ":");
        struct stat status;
        char *path = mem_strndup(list, n);
        bool is_folder = n && !stat(path, &status) && S_ISDIR(status.st_mode);
        if (n)
            code = is_folder ? load_folder(path, err) : user_ops_load(path, err);
        mem_free(path);
        list += n + (list[n] == ':');
    }
    return code;
}
