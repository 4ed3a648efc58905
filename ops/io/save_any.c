/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/plan/plan.h"
#include "exec/state/files.h"

static int files_prepare(struct kernel_setup *setup)
{
    struct checkpoint_files *files =
        setup->variables ? variable_store_files(setup->variables) : NULL;
    struct checkpoint_files **state = mem_alloc(sizeof *state);
    *state = files;
    setup->state = state;
    return 0;
}

/* Returns a terminated copy of a string, in memory of the step. NULL with call->err set. */
static const char *text_of(struct kernel_call *call, const struct tensor *t, int64_t i)
{
    const char *text;
    size_t n;
    tensor_string(t, i, &text, &n);
    char *copy = kernel_temporary(call, n + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

static int no_files(struct kernel_call *call)
{
    return kernel_fail(call, "graphs touch no files in this process");
}

static int save_run(struct kernel_call *call)
{
    struct checkpoint_files *files = *(struct checkpoint_files **)call->state;
    int n = call->n_in - 2;
    if (!files)
        return no_files(call);
    if (tensor_count(call->in[0]) != 1 || tensor_count(call->in[1]) != n)
        return kernel_fail(call, "%lld names for %d tensors", (long long)tensor_count(call->in[1]),
                           n);
    struct named_tensor *tensors = kernel_temporary(call, ((size_t)n + 1) * sizeof *tensors);
    const char *path = text_of(call, call->in[0], 0);
    if (!tensors || !path)
        return call->err->code;
    for (int i = 0; i < n; i++) {
        tensors[i] = (struct named_tensor){text_of(call, call->in[1], i), *call->in[2 + i]};
        if (!tensors[i].name)
            return call->err->code;
    }
    return files->save(files, path, (int64_t)call->step->number, tensors, n, call->err);
}

const struct kernel_code kernel_save = {.prepare = files_prepare, .run = save_run};

static int restore_run(struct kernel_call *call)
{
    struct checkpoint_files *files = *(struct checkpoint_files **)call->state;
    struct tensor value;
    if (!files)
        return no_files(call);
    if (tensor_count(call->in[0]) != 1 || tensor_count(call->in[1]) != 1)
        return kernel_fail(call, "one path and one name are wanted");
    const char *path = text_of(call, call->in[0], 0), *name = text_of(call, call->in[1], 0);
    if (!path || !name || files->restore(files, path, name, &value, call->err))
        return call->err->code;
    enum dtype wanted = call->node->outputs[0].type;
    if (value.type != wanted)
        kernel_fail(call, "%s: '%s' is %s, not %s", path, name, dtype_name(value.type),
                    dtype_name(wanted));
    else
        kernel_share_output(call, 0, &value);
    tensor_release(&value);
    return call->err->code;
}

const struct kernel_code kernel_restore = {.prepare = files_prepare, .run = restore_run};
