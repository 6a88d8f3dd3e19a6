/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules an engine needs: their records in its file, and what answers to them here.
 * A record names a file without its folder: where plugins lie is the host's to say.
 */
#include "engine/file/stored.h"

#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- records ------------------------------------------------------------------------
 */

static const char *text_of(const json_t *record, const char *key)
{
    return json_string_value(json_object_get(record, key));
}

int engine_plugin_index(const json_t *records, const struct module *m)
{
    const struct module_info info = module_info(m);
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *r = json_array_get(records, i);
        if (strcmp(text_of(r, "file"), base_name(info.path)) == 0 &&
            strcmp(text_of(r, "namespace"), info.ns) == 0 &&
            strcmp(text_of(r, "build_id"), info.build_id) == 0)
            return (int)i;
    }
    return -1;
}

static json_t *add_record(json_t *records, const struct module *m, const char *layer)
{
    const struct module_info info = module_info(m);
    if (engine_plugin_index(records, m) < 0)
        records = json_add(records,
                           json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "namespace",
                                     info.ns, "version", info.version, "file",
                                     base_name(info.path), "build_id", info.build_id,
                                     "abi_minor", (int)info.abi_minor, "layer", layer));
    return records;
}

static json_t *add_impls(json_t *records, const struct execution *x)
{
    for (size_t i = 0; i < x->n_nodes; i++)
        records = add_record(records, x->nodes[i].impl->module, x->nodes[i].layer->name);
    return records;
}

json_t *engine_plugin_records(const strata_engine *e)
{
    json_t *records = json_array();
    for (size_t i = 0; i < e->network->n_layers; i++) {
        const struct network_layer *l = &e->network->layers[i];
        records = add_record(records, l->type->module, l->name);
    }
    records = add_impls(records, e->execution);
    for (size_t i = 0; i < e->n_smaller; i++)
        records = add_impls(records, e->smaller[i]->execution);
    return records;
}

/* ---- look-up -------------------------------------------------------------------- */

/* Of the modules here that can answer: the same build, else the same file's name. */
static const struct module *find(const struct engine_plugin *p,
                                 const strata_registry *registry)
{
    const struct module *same_name = NULL;
    for (size_t i = 0; i < registry_modules(registry); i++) {
        const struct module_info info = registry_module(registry, i);
        if (info.duplicate || info.rejected || strcmp(info.ns, p->ns) != 0)
            continue;
        if (*p->build_id && strcmp(info.build_id, p->build_id) == 0)
            return registry_module_at(registry, i);
        if (!same_name && strcmp(base_name(info.path), p->file) == 0)
            same_name = registry_module_at(registry, i);
    }
    return same_name;
}

/* Of tables that were no file: no folder would help. */
static int missing_given(const struct engine_plugin *p, strata_error *err)
{
    return error_set(
        err, STRATA_EMODULE,
        "layer '%s' needs module %s (%s %s), which the application that made "
        "the engine gave its registry itself\n"
        "  give this one the same before it loads the engine "
        "(strata_registry_add, of Python @strata.layer), or build the engine "
        "again with a plugin file that has its layers",
        p->layer, p->file + strlen(REGISTRY_GIVEN), p->ns, p->version);
}

static int missing(const struct engine_plugin *p, const strata_registry *registry,
                   strata_error *err)
{
    if (strncmp(p->file, REGISTRY_GIVEN, strlen(REGISTRY_GIVEN)) == 0)
        return missing_given(p, err);
    error_set(err, STRATA_EMODULE,
              "layer '%s' needs plugin %s (%s %s, build %.12s), which is not here\n"
              "  searched:",
              p->layer, p->file, p->ns, p->version, p->build_id);
    for (size_t i = 0; i < registry_folders(registry); i++)
        error_append(err, " %s", registry_folder(registry, i));
    for (size_t i = 0; i < registry_rejections(registry); i++) {
        const struct module_rejection x = registry_rejection(registry, i);
        if (strcmp(base_name(x.path), p->file) == 0)
            error_append(err, "\n  found %s, refused: %s", x.path, x.reason);
    }
    error_append(err, "\n  put its folder on the plugin path (--plugin-path, "
                      "STRATA_PLUGIN_PATH), or build the engine again");
    return STRATA_EMODULE;
}

/* Another major version computes something else; another build may be slower. */
static int compare(const struct engine_plugin *p, strata_error *err)
{
    const struct module_info here = module_info(p->module);
    size_t major = strcspn(p->version, "."), major_here = strcspn(here.version, ".");
    if (major != major_here || memcmp(p->version, here.version, major) != 0)
        return error_set(err, STRATA_EMODULE,
                         "layer '%s' needs plugin %s of version %s, found %s in %s\n"
                         "  install a version %.*s of it, or build the engine again",
                         p->layer, p->file, p->version, here.version, here.path,
                         (int)major, p->version);
    if (strcmp(p->build_id, here.build_id) != 0)
        log_line(STRATA_LOG_WARNING,
                 "plugin %s is another build (%.12s) than the engine was made with "
                 "(%s %.12s): its plan may not be the fastest any more",
                 here.path, here.build_id, p->version, p->build_id);
    return STRATA_OK;
}

static int read_record(struct engine_plugin *p, const json_t *record, strata_error *err)
{
    *p = (struct engine_plugin){
        .ns = text_of(record, "namespace"),
        .version = text_of(record, "version"),
        .file = text_of(record, "file"),
        .build_id = text_of(record, "build_id"),
        .layer = text_of(record, "layer"),
    };
    if (p->ns && p->version && p->file && p->build_id && p->layer)
        return STRATA_OK;
    return error_set(err, STRATA_EPARSE,
                     "a record lacks namespace, version, file, build_id or layer");
}

int engine_find_plugins(struct engine_plugin **out, size_t *n, const json_t *records,
                        const strata_registry *registry, strata_error *err)
{
    int status = STRATA_OK;
    *n = json_array_size(records);
    struct engine_plugin *list = zalloc(*n, sizeof *list, "plugin records", err);
    if (!list)
        return STRATA_ENOMEM;
    if (!json_is_array(records))
        status = error_set(err, STRATA_EPARSE, "the records are not a list");
    for (size_t i = 0; i < *n && status == STRATA_OK; i++) {
        status = read_record(&list[i], json_array_get(records, i), err);
        if (status != STRATA_OK)
            break;
        list[i].module = find(&list[i], registry);
        status =
            list[i].module ? compare(&list[i], err) : missing(&list[i], registry, err);
    }
    if (status == STRATA_OK) {
        *out = list;
        return STRATA_OK;
    }
    free(list);
    return status;
}
