/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/archive.h"

#include "checkpoint/formats/bundle.h"
#include "wire/npz.h"

static int read_npz(const char *path, struct archive *archive, struct error *err)
{
    struct npz npz;
    if (npz_open(path, &npz, err))
        return err->code;
    *archive = (struct archive){0};
    for (int i = 0; i < npz.n && !err->code; i++) {
        struct named_tensor t = {.name = arena_strdup(&archive->arena, npz_name(&npz, i))};
        if (!npz_read(&npz, i, &t.tensor, err))
            vec_push(&archive->tensors, t);
    }
    npz_close(&npz);
    if (err->code)
        archive_release(archive);
    return err->code;
}

static const struct {
    const char *ending;
    int (*read)(const char *path, struct archive *archive, struct error *err);
} forms[] = {[EXPORT_NPZ] = {".npz", read_npz},
             [EXPORT_SAFETENSORS] = {".safetensors", safetensors_read},
             [EXPORT_BUNDLE] = {".index", bundle_read},
             [EXPORT_RECORDS] = {".ckpt", NULL}};

enum export_form export_form_of(const char *path)
{
    enum export_form form = EXPORT_RECORDS;
    while (form != EXPORT_NONE && !str_ends(path, forms[form].ending))
        form--;
    return form;
}

bool is_archive(const char *path)
{
    return forms[export_form_of(path)].read;
}

int export_form_find(const char *path, enum export_form *form, struct error *err)
{
    *form = export_form_of(path);
    return *form != EXPORT_NONE ? 0
                                : error_set(err, ERR_USAGE,
                                            "%s: its name ends in none of .npz, .safetensors, "
                                            ".index and .ckpt",
                                            path);
}

int archive_read(const char *path, struct archive *archive, struct error *err)
{
    return forms[export_form_of(path)].read(path, archive, err);
}

void archive_release(struct archive *archive)
{
    for (size_t i = 0; i < archive->tensors.n; i++)
        tensor_release(&archive->tensors.items[i].tensor);
    vec_release(&archive->tensors);
    arena_release(&archive->arena);
    *archive = (struct archive){0};
}
