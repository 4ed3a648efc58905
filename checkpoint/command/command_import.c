/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "checkpoint/command/command.h"
#include "checkpoint/formats/archive.h"
#include "checkpoint/store/save.h"

/* `step` -1: the file does not name a step. */
static int save(struct command *c, struct store *store, const struct variable_record *tensors,
                size_t n, int64_t step, struct error *err)
{
    int64_t at = c->step >= 0 ? c->step : step;
    struct save_request request = {.step = at < 0 ? 0 : at,
                                   .over = c->replace ? SAVE_OVER_ANY : SAVE_OVER_NONE,
                                   .producer = c->producer,
                                   .tensors = tensors,
                                   .n_tensors = n,
                                   .progress = c->watch.progress,
                                   .context = c->watch.context};
    if (!n)
        return error_set(err, ERR_DATA, "%s: has no tensors: nothing to import", c->operands[0]);
    if (run_make(&request.run, c->run_name, err))
        return err->code;
    if (!store_save(store, &request, NULL, err))
        return 0;
    if (err->code == ERR_CONFIG && c->step < 0 && step < 0)
        error_append(err, "; --step N says which it is");
    return command_advise(err);
}

static int import_source(struct command *c, struct store *store, struct error *err)
{
    struct source source;
    if (source_open(c->operands[0], &source, err))
        return err->code;
    size_t n = 0, all = source_join_slices(&source, err) ? 0 : source.tensors.n;
    struct variable_record *tensors = mem_array(all + 1, sizeof *tensors);
    for (; n < all && !err->code; n++) {
        tensors[n] = manifest_tensor_record(&source.tensors.items[n].saved);
        source_read(&source, n, &tensors[n].value, err);
    }
    if (!err->code)
        save(c, store, tensors, n, source.step, err);
    for (size_t i = 0; i < n; i++)
        tensor_release(&tensors[i].value);
    mem_free(tensors);
    source_close(&source);
    return err->code;
}

int command_import(struct command *c, struct error *err)
{
    struct store *store;
    enum export_form form;
    if (command_open_writing(c, c->operands[1], &store, err))
        return err->code;
    if (!export_form_find(c->operands[0], &form, err))
        import_source(c, store, err);
    store_close(store);
    return err->code;
}
