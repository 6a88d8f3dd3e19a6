/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the plugin's own: the layers of its type in the network beside it, gate.ini
 * for gate.so, with their attributes and the shapes that arrive at them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/cases.h"
#include "check/test/test.h"
#include "network/network.h"

/* FILE.ini for FILE.so, and for FILE_cuda.so if that has none; false: there is none. */
static bool find_network(char *path, size_t size, const char *file)
{
    static const char *const ends[] = {".so", "_cuda.so"};
    const size_t n = strlen(file);
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        const size_t end = strlen(ends[i]);
        if (n <= end || strcmp(file + n - end, ends[i]) != 0)
            continue;
        snprintf(path, size, "%.*s.ini", (int)(n - end), file);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* The attributes that the layer's section sets, as text of a case; false: too long. */
static bool write_attrs(char out[CASES_TEXT], const struct network_layer *l,
                        struct config *c)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < config_sections(c); i++) {
        const struct config_section *s = config_section(c, i);
        if (strcmp(s->kind, "layer") != 0 || strcmp(s->name, l->name) != 0)
            continue;
        for (size_t p = 0; p < s->n_pairs && used < CASES_TEXT; p++)
            for (size_t a = 0; a < l->type->n_attrs && used < CASES_TEXT; a++)
                if (strcmp(l->type->attrs[a].name, s->pairs[p].key) == 0)
                    used += (size_t)snprintf(out + used, CASES_TEXT - used, "%s%s = %s",
                                             used ? "; " : "", s->pairs[p].key,
                                             s->pairs[p].value);
    }
    return used < CASES_TEXT;
}

/* Weights that the network has at random are as large as it has them (He-normal): with
 * many terms a sum of larger ones tells only how errors grow. */
static void keep_ranges(struct check_own *own, const struct network_layer *l)
{
    for (size_t i = 0; i < l->type->n_weights && i < HARNESS_WEIGHTS; i++) {
        const struct network_weight *w = &l->weights[i];
        int64_t terms = 1;
        for (int d = w->rank > 1; d < w->rank; d++)
            terms *= w->dims[d];
        if (w->source != WEIGHT_RANDOM || terms < 1)
            continue;
        own->weight[i].high = sqrt(6 / (double)terms);
        own->weight[i].low = -own->weight[i].high;
    }
}

static void keep_layer(struct check_cases *k, const strata_network *net,
                       const struct network_layer *l)
{
    struct check_own *own = &k->own[k->n_own];
    struct harness_shape in[HARNESS_INPUTS];
    if (k->n_own == CASES_OWN || l->n_inputs > HARNESS_INPUTS)
        return;
    for (int i = 0; i < l->n_inputs; i++) {
        const struct network_tensor *t = &net->tensors[l->inputs[i]];
        in[i].rank = t->rank;
        memcpy(in[i].dims, t->dims, sizeof in[i].dims);
    }
    cases_write_shapes(own->shapes, sizeof own->shapes, in, l->n_inputs);
    keep_ranges(own, l);
    if (write_attrs(own->attrs, l, net->config))
        k->n_own++;
}

/* A registry of its own: the network may name more plugins, which are no part of the
 * test. */
static int load(strata_network **net, strata_registry **registry,
                const struct check_child *c, const char *path, strata_error *err)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .files = &c->o->file,
                                             .n_files = 1,
                                             .search_path = c->o->plugin_path,
                                             .allow_untrusted = c->o->allow_untrusted};
    int status = strata_registry_create(registry, &options, err);
    return status == STRATA_OK ? strata_network_load(net, path, *registry, NULL, err)
                               : status;
}

void cases_find_own(struct check_child *c)
{
    strata_network *net = NULL;
    strata_registry *registry = NULL;
    strata_error err = {0};
    char path[4096], name[64];
    if (c->o->module || !find_network(path, sizeof path, c->o->file))
        return;
    const char *bare = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(name, sizeof name, "%.63s", bare);
    snprintf(c->report->place.phase, HARNESS_PHASE, "reading its network");
    if (load(&net, &registry, c, path, &err) != STRATA_OK)
        snprintf(c->cases.own_note, sizeof c->cases.own_note, "%s cannot be read: %.150s",
                 name, err.message);
    for (size_t i = 0; net && i < net->n_layers; i++)
        if (strcmp(net->layers[i].type->full_name, c->layer->full_name) == 0)
            keep_layer(&c->cases, net, &net->layers[i]);
    if (c->cases.n_own > 0)
        snprintf(c->cases.own_note, sizeof c->cases.own_note, "with %zu case%s of %s",
                 c->cases.n_own, c->cases.n_own > 1 ? "s" : "", name);
    c->report->place.phase[0] = '\0';
    strata_network_destroy(net);
    strata_registry_destroy(registry);
}
