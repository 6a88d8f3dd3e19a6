/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine from its file: device and plugins are compared with what is here, then the
 * network is read from its text and the plan restored; nothing is measured or searched.
 * Nothing of the device is allocated before all that can be refused has been.
 */
#include "engine/file/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"
#include "registry/math/mode.h"

/* ---- the device ------------------------------------------------------------------ */

struct device_record {
    json_t *json; /* holds the texts */
    const char *kind, *name, *math;
    json_int_t sm, threads;
};

static int read_device(struct device_record *d, const struct engine_file *f,
                       strata_error *err)
{
    json_error_t wrong;
    *d = (struct device_record){0};
    int status = engine_section_json(&d->json, f, SECTION_DEVICE, err);
    if (status != STRATA_OK)
        return status;
    if (json_unpack_ex(d->json, &wrong, 0, "{s:s, s:s, s:s, s:I, s:I}", "kind", &d->kind,
                       "name", &d->name, "math", &d->math, "sm", &d->sm, "threads",
                       &d->threads) == 0)
        return STRATA_OK;
    json_decref(d->json);
    d->json = NULL;
    return error_set(err, STRATA_EPARSE, "section '" SECTION_DEVICE "': %s", wrong.text);
}

int engine_file_device(char *out, size_t size, const struct engine_file *f,
                       strata_error *err)
{
    struct device_record d;
    int status = read_device(&d, f, err);
    if (status == STRATA_OK)
        snprintf(out, size, "%s", d.kind);
    json_decref(d.json);
    return status;
}

static int check_device(const struct device_record *d, const struct device_properties *p,
                        strata_error *err)
{
    const char *kind = p->kind == STRATA_HOST ? "host" : "cuda";
    if (strcmp(d->kind, kind) != 0)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "the engine is for device %s (%s), the handle is of %s (%s); "
                         "use a handle of %s, or build the engine for this one",
                         d->kind, d->name, kind, p->name, d->kind);
    if (d->sm != p->sm)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "the engine is for compute capability %lld.%lld (%s), this "
                         "device is %s of %d.%d; build the engine on such a device",
                         (long long)d->sm / 10, (long long)d->sm % 10, d->name, p->name,
                         p->sm / 10, p->sm % 10);
    if (strcmp(d->name, p->name) != 0 || d->threads != p->threads)
        log_line(STRATA_LOG_INFO,
                 "the engine was planned on %s of %lld threads or multiprocessors; here "
                 "are %s, %d",
                 d->name, (long long)d->threads, p->name, p->threads);
    return STRATA_OK;
}

static int take_device(struct engine_stored *s, const strata_handle *handle,
                       strata_error *err)
{
    struct device_record d;
    int status = read_device(&d, &s->file, err);
    if (status != STRATA_OK)
        return status;
    status =
        math_from_name(d.math, &s->math)
            ? check_device(&d, &handle->properties, err)
            : error_set(err, STRATA_EPARSE,
                        "section '" SECTION_DEVICE "': math '%s' is none of " MATH_MODES,
                        d.math);
    json_decref(d.json);
    return status;
}

/* ---- the network ----------------------------------------------------------------- */

int engine_file_network(strata_network **out, const struct engine_file *f,
                        const char *path, strata_registry *registry, strata_error *err)
{
    const struct engine_section *text = engine_file_find(f, SECTION_NETWORK);
    const struct engine_section *labels = engine_file_find(f, SECTION_LABELS);
    const struct engine_section *weights = engine_file_find(f, SECTION_WEIGHTS);
    struct network_memory memory = {0};
    if (!text)
        return error_set(err, STRATA_EPARSE, "there is no section '" SECTION_NETWORK "'");
    memory.text = text->data;
    memory.text_size = text->size;
    if (labels) {
        memory.labels = labels->data;
        memory.labels_size = labels->size;
    }
    if (weights) {
        memory.weights = weights->data;
        memory.weights_size = weights->size;
    }
    return network_parse(out, &memory, path, registry, err);
}

/* Everything but the engine itself. */
static int read_sections(struct engine_stored *s, strata_network **net,
                         const strata_handle *handle, strata_registry *registry,
                         const char *path, strata_error *err)
{
    json_t *records = NULL;
    struct engine_plugin *plugins = NULL;
    size_t n = 0;
    int status = take_device(s, handle, err);
    if (status == STRATA_OK)
        status = engine_section_json(&records, &s->file, SECTION_PLUGINS, err);
    if (status == STRATA_OK)
        status = engine_find_plugins(&plugins, &n, records, registry, err);
    if (status == STRATA_OK)
        status = engine_file_network(net, &s->file, path, registry, err);
    if (status == STRATA_OK)
        status = engine_read_plan(s, net, plugins, n, err);
    free(plugins);
    json_decref(records);
    return status;
}

int engine_load_file(strata_engine **out, strata_handle *handle,
                     strata_registry *registry, struct engine_file *file,
                     const char *path, strata_error *err)
{
    strata_network *net = NULL;
    struct engine_stored *s = zalloc(1, sizeof *s, "an engine", err);
    *out = NULL;
    if (!s) {
        engine_file_close(file);
        return STRATA_ENOMEM;
    }
    s->file = *file;
    *file = (struct engine_file){0};
    int status = read_sections(s, &net, handle, registry, path, err);
    if (status != STRATA_OK) {
        error_prefix(err, "%s", path);
        strata_network_destroy(net);
        engine_stored_free(s);
        return status;
    }
    status = engine_build_stored(out, handle, net, s, err);
    strata_network_destroy(net);
    return status;
}

int strata_engine_load(strata_engine **out, strata_handle *handle,
                       strata_registry *registry, const char *path, strata_error *err)
{
    struct engine_file file;
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", handle}, {"registry", registry},
                           {"path", path});
    if (status != STRATA_OK)
        return status;
    status = engine_file_open(&file, path, err);
    return status == STRATA_OK ? engine_load_file(out, handle, registry, &file, path, err)
                               : status;
}

int strata_engine_load_memory(strata_engine **out, strata_handle *handle,
                              strata_registry *registry, const void *bytes, size_t size,
                              strata_error *err)
{
    static const char name[] = "engine in memory";
    struct engine_file file;
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", handle}, {"registry", registry},
                           {"bytes", bytes});
    if (status != STRATA_OK)
        return status;
    status = engine_file_copy(&file, bytes, size, name, err);
    return status == STRATA_OK ? engine_load_file(out, handle, registry, &file, name, err)
                               : status;
}
