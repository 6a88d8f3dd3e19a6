/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of sections share: walking them, paths, formats.
 */
#include "network/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/file.h"

int network_each(struct loader *l, const char *kind,
                 int (*read)(struct loader *l, struct config_section *s))
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < config_sections(l->c); i++) {
        struct config_section *s = config_section(l->c, i);
        if (strcmp(s->kind, kind) == 0)
            status = read(l, s);
    }
    return status;
}

static void suggest_anywhere(const char *base, const char *name, strata_error *why)
{
    char *path = NULL, byte;
    if (file_resolve(&path, base, name, true, NULL) == STRATA_OK &&
        file_head(&byte, 1, path) == 1)
        error_append(why, ", or write 'anywhere = yes' in the section");
    free(path);
}

char *network_path(struct loader *l, const struct config_pair *p, enum path_kind kind)
{
    strata_error why = {0};
    char *path = NULL;
    int status = STRATA_ENOMEM;
    if (p->invalid)
        return NULL;
    if (l->memory) {
        config_error(l->c, p->value_place, "a network in memory names no files");
        return NULL;
    }
    char *base = file_folder(config_file(l->c, p->value_place.file), &why);
    if (base && kind == PATH_FOLDER)
        status = file_resolve_folder(&path, base, p->value, &why);
    else if (base)
        status = file_resolve(&path, base, p->value, kind == PATH_FILE_ANYWHERE, &why);
    if (status == STRATA_EINVAL && kind == PATH_WEIGHTS)
        suggest_anywhere(base, p->value, &why);
    if (status != STRATA_OK)
        config_failed(l->c, p->value_place, &why);
    free(base);
    return status == STRATA_OK ? path : NULL;
}

int network_keep_path(struct loader *l, char *path)
{
    strata_network *net = l->net;
    if (!path)
        return STRATA_OK;
    if (grow(&net->paths, &l->paths_capacity, net->n_paths, sizeof *net->paths, l->err) !=
        STRATA_OK) {
        free(path);
        return STRATA_ENOMEM;
    }
    net->paths[net->n_paths++] = path;
    return STRATA_OK;
}

bool network_format(struct config *c, const struct config_pair *p,
                    const struct config_item *item, struct format *out)
{
    strata_error why = {0};
    if (format_lookup(out, item->text, &why) == STRATA_OK)
        return true;
    config_failed(c, config_value_place(c, p, item->offset, strlen(item->text)), &why);
    return false;
}

bool network_formats(struct config *c, const struct config_pair *p, uint64_t *out)
{
    struct config_item *items;
    struct format f;
    size_t n;
    uint64_t masks = 0;
    if (!config_list(c, p, &items, &n))
        return false;
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        bool read = network_format(c, p, &items[i], &f);
        good = good && read;
        masks |= read ? format_mask(f) : 0;
    }
    config_list_free(items, n);
    if (good)
        *out = masks;
    return good;
}
