/* SPDX-License-Identifier: Apache-2.0
 *
 * Engine files: a container of sections (io/engine_file.h), one of which is the plan's
 * record (planner/record.h). Layout and meaning of every field: docs/files/engine.md.
 *
 *   save      engine            -> sections -> file
 *   weights   network           -> one safetensors text
 *   stored    section `plan`    -> records, of the whole and of other sizes
 *   plugins   section `plugins` -> modules of the registry
 *   load      file              -> engine, without measuring or searching
 */
#ifndef ENGINE_FILE_STORED_H
#define ENGINE_FILE_STORED_H

#include "engine/engine.h"
#include "io/engine_file.h"
#include "io/json.h"
#include "planner/record.h"

#define SECTION_DEVICE "device"
#define SECTION_PLUGINS "plugins"
#define SECTION_NETWORK "network"
#define SECTION_LABELS "labels"
#define SECTION_PLAN RECORD_SECTION
#define SECTION_COSTS "costs"
#define SECTION_REPORT "report"
#define SECTION_WEIGHTS "weights"

/* A file whose engine is being made, or was. */
struct engine_stored {
    struct engine_file file; /* owns the network's weights */
    int math;                /* STRATA_MATH_* that it was planned with */
    struct record *record;   /* until a planner has it, as the next ones */
    struct record **smaller; /* for the network's other batches, ascending */
    size_t n_smaller;
};

void engine_stored_free(struct engine_stored *s);

/* A module of the file's records and what it is here. */
struct engine_plugin {
    const char *ns, *version, *file, *build_id; /* of the record */
    const char *layer;                          /* the first that needs it */
    const struct module *module;                /* NULL: not here */
};
/* Records, in the order of the file; the caller frees the list. EMODULE with layer,
 * found, needed and remedy for one that is not here or of another major version. */
int engine_find_plugins(struct engine_plugin **out, size_t *n, const json_t *records,
                        const strata_registry *registry, strata_error *err);
/* The records of an engine's modules: those of the layers, then those of the impls. */
json_t *engine_plugin_records(const strata_engine *e);
/* Index of a module's record, -1 if it has none. */
int engine_plugin_index(const json_t *records, const struct module *m);

/* Section `plan` as JSON, with the plans for other sizes; NULL: no memory. */
json_t *engine_plan_json(const strata_engine *e, const json_t *plugins);
/* The same back, for the network of the file's text, which becomes the one that the plan
 * is of: with merged layers, if it has some. */
int engine_read_plan(struct engine_stored *s, strata_network **net,
                     const struct engine_plugin *plugins, size_t n_plugins,
                     strata_error *err);
/* Text of a JSON section; EPARSE names section and line. */
int engine_section_json(json_t **out, const struct engine_file *f, const char *name,
                        strata_error *err);

/* All weights that are present, as one safetensors text, the caller's to free. Tensors
 * are named as the layers' weights and begin at multiples of 256 bytes. */
int engine_write_weights(void **out, size_t *size, const strata_network *net,
                         strata_error *err);

/* An engine from a file that is open already, which goes to the engine or is closed. */
int engine_load_file(strata_engine **out, strata_handle *handle,
                     strata_registry *registry, struct engine_file *file,
                     const char *path, strata_error *err);
/* Which device an engine file is for: "host" or "cuda". */
int engine_file_device(char *out, size_t size, const struct engine_file *f,
                       strata_error *err);

/* The network in it, whose weights are in the file: that must outlive it. */
int engine_file_network(strata_network **out, const struct engine_file *f,
                        const char *path, strata_registry *registry, strata_error *err);

#endif /* ENGINE_FILE_STORED_H */
