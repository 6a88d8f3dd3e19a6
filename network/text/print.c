/* SPDX-License-Identifier: Apache-2.0
 *
 * A network as a person would write it: what is a default is left out, as is `inputs`
 * where it is the layer above. An imported model's text, read, prints as it was.
 */
#include "network/network.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "ini/names.h"
#include "core/text.h"
#include "io/stream.h"
#include "network/attributes.h"
#include "network/text/lines.h"

struct printing {
    struct lines lines;
    const strata_network *net;
    strata_registry *registry;
    struct names layers;             /* their sections, by name */
    const struct network_edit *edit; /* or NULL */
};

/* ---- what the sections say -----------------------------------------------------------
 */

static const struct config_pair *find_pair(const struct config_section *s,
                                           const char *key)
{
    for (size_t i = 0; s && i < s->n_pairs; i++)
        if (strcmp(s->pairs[i].key, key) == 0)
            return &s->pairs[i];
    return NULL;
}

/* From the network's own folder: a file that was included may lie below it. */
static void print_path(struct printing *p, const struct config_pair *pair)
{
    const struct config *c = p->net->config;
    const char *own = config_file(c, 0), *other = config_file(c, pair->value_place.file);
    const char *slash = strrchr(own, '/'), *below = other;
    const size_t folder = slash ? (size_t)(slash - own) + 1 : 0;
    if (strncmp(own, other, folder) == 0)
        below += folder;
    while (strncmp(below, "./", 2) == 0)
        below += 2;
    const char *name = strrchr(below, '/');
    const bool moved = pair->value_place.file > 0 && name && *pair->value != '/';
    char *path = moved ? text_print("%.*s/%s", (int)(name - below), below, pair->value)
                       : text_print("%s", pair->value);
    if (path)
        line_text(&p->lines, pair->key, path);
    else
        p->lines.status = error_no_memory(p->lines.err, 0, "a path");
    free(path);
}

/* Without the quotes that a text of several words gets, where they are of no need. */
static void print_value(struct lines *w, const char *key, const char *value)
{
    const size_t n = strlen(value);
    if (n && value[n - 1] != ' ' && !strpbrk(value, "\t#;'$\\\"") &&
        !strchr(" [=:", *value))
        line_word(w, key, value);
    else
        line_text(w, key, value);
}

/* A list that names symbols, with `gap` between its entries, malloc'ed; NULL: it has
 * numbers alone. */
static char *list_of_names(const char *value, const char *gap)
{
    char *out = NULL;
    size_t size, n;
    bool named = false, first = true;
    FILE *f = text_stream(&out, &size);
    for (const char *at = value + strspn(value, " \t"); f && *at; first = false) {
        const bool name = isalpha((unsigned char)*at) || *at == '_';
        for (n = 0; at[n] && !strchr(name ? " \t," : " \t,x", at[n]);)
            n++;
        fprintf(f, "%s%.*s", first ? "" : gap, (int)n, at);
        named |= name;
        at += n + strspn(at + n, " \t");
        at += *at == ',' || *at == 'x';
        at += strspn(at, " \t");
    }
    if (f && text_finish(f, &out) && named)
        return out;
    free(out);
    return NULL;
}

/* ---- network and inputs --------------------------------------------------------------
 */

static bool is_usual(struct format f, int dtype)
{
    return f.dtype == dtype && f.order == ORDER_LINEAR && f.vector == 1;
}

static void print_network(struct printing *p)
{
    const strata_network *net = p->net;
    struct lines *w = &p->lines;
    const struct config_pair *labels =
        find_pair(config_find(net->config, "network"), "labels");
    bool usual = true;
    w->section = "network";
    fputs("[network]\nformat = 1\n", w->f);
    line_text(w, "name", net->name);
    if (labels && p->edit && p->edit->labels)
        line_text(w, "labels", p->edit->labels);
    else if (labels && !(p->edit && p->edit->alone))
        print_path(p, labels);
    long at = line_begin(w, "outputs");
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        fprintf(w->f, "%s%s", i ? w->gap : "", net->outputs[i].name);
        usual &=
            is_usual(net->outputs[i].format, net->tensors[net->outputs[i].tensor].dtype);
    }
    line_end(w, "outputs", at);
    if (usual)
        return;
    at = line_begin(w, "output_formats");
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        fputs(i ? w->gap : "", w->f);
        line_format(w, net->outputs[i].format, net->tensors[net->outputs[i].tensor].rank);
    }
    line_end(w, "output_formats", at);
}

/* One value where the channels agree, else one for each; none if all are `usual`. */
static void print_channels(struct lines *w, const char *key, const double v[4],
                           int64_t channels, double usual)
{
    int64_t n = 1;
    for (int i = 1; i < 4; i++)
        n = v[i] != v[0] ? channels : n;
    if (n > 1 || v[0] != usual)
        line_reals(w, key, v, n);
}

static void print_transform(struct lines *w, const struct image_transform *m,
                            int64_t channels)
{
    if (m->channels != (channels == 1 ? IMAGE_GRAY : IMAGE_RGB))
        line_choice(w, "channels", "rgb|bgr|gray", (int)m->channels);
    if (m->resize != image_identity.resize)
        line_choice(w, "resize", "stretch|crop|letterbox|exact", (int)m->resize);
    if (m->antialias)
        line_flag(w, "antialias", true);
    if (m->fill != image_identity.fill)
        line_reals(w, "fill", &m->fill, 1);
    if (m->scale != image_identity.scale)
        line_reals(w, "scale", &m->scale, 1);
    print_channels(w, "mean", m->mean, channels, image_identity.mean[0]);
    print_channels(w, "std", m->std, channels, image_identity.std[0]);
}

static const struct config_section *find_section(const strata_network *net,
                                                 const char *name)
{
    for (size_t i = 0; i < config_sections(net->config); i++) {
        const struct config_section *s = config_section(net->config, i);
        if ((strcmp(s->kind, "input") == 0 || strcmp(s->kind, "state") == 0) &&
            strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

static void print_shape(struct printing *p, const struct network_input *in)
{
    const struct network_tensor *t = &p->net->tensors[in->tensor];
    const struct config_pair *said = find_pair(find_section(p->net, in->name), "shape");
    char *names = said ? list_of_names(said->value, " x ") : NULL;
    if (names)
        line_word(&p->lines, "shape", names);
    else
        line_dims(&p->lines, "shape", t->dims, t->rank);
    free(names);
}

static void print_input(struct printing *p, const struct network_input *in)
{
    const struct network_tensor *t = &p->net->tensors[in->tensor];
    struct lines *w = &p->lines;
    w->section = in->name;
    fprintf(w->f, "\n[input %s]\n", in->name);
    print_shape(p, in);
    if (t->dtype != STRATA_FP32)
        line_word(w, "dtype", strata_dtype_name(t->dtype));
    if (!is_usual(in->format, t->dtype)) {
        const long at = line_begin(w, "format");
        line_format(w, in->format, t->rank);
        line_end(w, "format", at);
    }
    if (in->pads_any)
        line_word(w, "pads", "any");
    print_transform(w, &in->transform, t->rank > 1 ? t->dims[1] : 1);
}

static void print_state(struct printing *p, const struct network_state *state)
{
    const strata_network *net = p->net;
    const struct network_input *in = &net->inputs[state->input];
    const struct network_tensor *t = &net->tensors[in->tensor];
    struct lines *w = &p->lines;
    w->section = in->name;
    fprintf(w->f, "\n[state %s]\n", in->name);
    print_shape(p, in);
    if (t->dtype != STRATA_FP32)
        line_word(w, "dtype", strata_dtype_name(t->dtype));
    if (t->dtype == STRATA_FP32 || !is_usual(in->format, t->dtype)) {
        const long at = line_begin(w, "format"); /* without it, precision decides */
        line_format(w, in->format, t->rank);
        line_end(w, "format", at);
    }
    line_text(w, "next", net->outputs[state->output].name);
    if (state->value != 0)
        line_reals(w, "value", &state->value, 1);
    if (state->room)
        line_int(w, "room", state->room);
}

/* ---- layers --------------------------------------------------------------------------
 */

/* The shortest name that finds the type: without its version, and "core::". */
static void print_type(struct lines *w, const struct registry_layer *type,
                       strata_registry *registry)
{
    const struct registry_layer *found = NULL;
    const char *full = type->full_name;
    const char *name = strncmp(full, "core::", 6) == 0 ? full + 6 : full;
    char *plain = text_print("%.*s", (int)strcspn(name, "@"), name);
    strata_error why = {0};
    const int status =
        plain ? registry_find(registry, plain, &found, &why) : STRATA_ENOMEM;
    if (status == STRATA_ENOMEM && w->status == STRATA_OK)
        w->status = error_no_memory(w->err, 0, "a layer's type");
    line_word(w, "type", status == STRATA_OK && found == type ? plain : full);
    free(plain);
}

/* Whether the layer reads, without being told, the one output of the layer above. */
static bool reads_above(const strata_network *net, const struct network_layer *layer)
{
    const struct network_layer *above = layer > net->layers ? layer - 1 : NULL;
    if (layer->n_ports != 1 || layer->n_inputs != 1)
        return false;
    if (!above)
        return net->n_inputs == 1 && layer->inputs[0] == net->inputs[0].tensor;
    return above->n_outputs == 1 && above->outputs[0] == layer->inputs[0];
}

static const char *input_name(const struct printing *p, const struct network_layer *layer,
                              int i)
{
    return p->edit ? p->edit->input(p->edit->of, layer, i)
                   : p->net->tensors[layer->inputs[i]].name;
}

static void print_inputs(struct printing *p, const struct network_layer *layer)
{
    struct lines *w = &p->lines;
    const long at = line_begin(w, "inputs");
    for (int port = 0, i = 0; port < layer->n_ports; port++) {
        const bool given = i < layer->n_inputs && network_port(layer, i) == port;
        fprintf(w->f, "%s%s", port ? w->gap : "",
                given ? input_name(p, layer, i++) : "none");
    }
    line_end(w, "inputs", at);
}

/* Of attributes: the text of one that names symbols. */
struct said {
    const struct printing *p;
    struct config_section *section;
    const struct registry_layer *type;
    char *text; /* given last */
};

static const char *said_by_name(const void *of, const char *key)
{
    struct said *s = (struct said *)of;
    const struct config_pair *pair =
        attributes_pair(s->p->net->config, s->section, s->type, key, false);
    free(s->text);
    s->text = NULL;
    for (size_t i = 0; pair && i < s->type->n_attrs; i++)
        if (s->type->attrs[i].type == STRATA_INTS &&
            strcmp(s->type->attrs[i].name, key) == 0)
            s->text = list_of_names(pair->value, s->p->lines.gap);
    return s->text;
}

/* Where weights are, as the section says it. */
static void print_weights(struct printing *p, const struct network_layer *layer,
                          struct config_section *s)
{
    const struct config_pair *all = find_pair(s, "weights");
    if (all)
        line_text(&p->lines, "weights", all->value);
    for (size_t i = 0; i < layer->type->n_weights; i++) {
        const char *name = layer->type->weights[i].name;
        const struct config_pair *one =
            attributes_pair(p->net->config, s, layer->type, name, true);
        if (one)
            line_text(&p->lines, name, one->value);
    }
}

/* A layer whose weights are in the file of an edited network. */
struct edited {
    const struct network_edit *edit;
    const struct network_layer *layer;
};

static const char *edited_weight(const void *of, size_t weight)
{
    const struct edited *e = of;
    return e->edit->weight(e->edit->of, e->layer, weight);
}

static void print_layer(struct printing *p, const struct network_layer *layer)
{
    const struct edited edited = {p->edit, layer};
    struct lines *w = &p->lines;
    struct config_section *s =
        config_section(p->net->config, (size_t)names_get(&p->layers, layer->name));
    struct said said = {.p = p, .section = s, .type = layer->type};
    w->section = layer->name;
    fprintf(w->f, "\n[layer %s]\n", layer->name);
    print_type(w, layer->type, p->registry);
    if (layer->n_ports && (p->edit || !reads_above(p->net, layer)))
        print_inputs(p, layer);
    line_formats(w, "format", layer->formats);
    if (layer->impl)
        line_word(w, "impl", layer->impl);
    const void *params = p->edit ? p->edit->params(p->edit->of, layer) : layer->params;
    line_attributes(w, layer->type, params, said_by_name, &said);
    if (p->edit)
        line_weights(w, layer->name, layer->type, edited_weight, &edited);
    else
        print_weights(p, layer, s);
    free(said.text);
    if (p->edit)
        p->edit->behind(p->edit->of, layer, w->f);
}

/* ---- other sections ------------------------------------------------------------------
 */

/* A section as it stands; keys of paths are `paths`, "" of none, NULL of all. */
static void print_section(struct printing *p, const struct config_section *s,
                          const char *paths)
{
    p->lines.section = s->kind;
    fprintf(p->lines.f, "\n[%s%s%s]\n", s->kind, *s->name ? " " : "", s->name);
    for (size_t i = 0; i < s->n_pairs; i++)
        if (!paths || strcmp(s->pairs[i].key, paths) == 0)
            print_path(p, &s->pairs[i]);
        else
            print_value(&p->lines, s->pairs[i].key, s->pairs[i].value);
}

static void print_build(struct printing *p, const struct config_section *s)
{
    const struct config_pair *costs = find_pair(s, "costs");
    const bool file = costs && cost_kind_named(costs->value) == COSTS_FILE;
    print_section(p, s, file ? "costs" : "");
}

static void print_plain(struct printing *p, const struct config_section *s)
{
    print_section(p, s, "");
}

static void print_source(struct printing *p, const struct config_section *s)
{
    print_section(p, s, "file");
}

static void print_profile(struct printing *p, const struct config_section *s)
{
    const struct config_symbol *all;
    const size_t n = config_symbols(p->net->config, &all);
    p->lines.section = s->kind;
    fputs("\n[profile]\n", p->lines.f);
    for (size_t i = 0; i < n; i++)
        line_sizes(&p->lines, all[i].name,
                   (struct line_range){all[i].least, all[i].most, all[i].step,
                                       all[i].sizes, all[i].n_sizes});
}

/* What stands once in each file, as one. */
static void print_plugins(struct printing *p, const struct config_section *s)
{
    if (strcmp(p->lines.section, s->kind) == 0)
        for (size_t i = 0; i < s->n_pairs; i++)
            print_path(p, &s->pairs[i]);
    else
        print_section(p, s, NULL);
}

static void print_kind(struct printing *p, const char *kind,
                       void (*print)(struct printing *p, const struct config_section *s))
{
    for (size_t i = 0; i < config_sections(p->net->config); i++) {
        const struct config_section *s = config_section(p->net->config, i);
        if (strcmp(s->kind, kind) == 0)
            print(p, s);
    }
}

static int index_layers(struct printing *p, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < config_sections(p->net->config) && status == STRATA_OK; i++) {
        const struct config_section *s = config_section(p->net->config, i);
        if (strcmp(s->kind, "layer") == 0)
            status = names_put(&p->layers, s->name, (int)i, err);
    }
    return status;
}

/* Of an edited network: one source of weights, and what its inputs become. */
static void print_edit(struct printing *p)
{
    fputs("\n[weights w]\n", p->lines.f);
    line_text(&p->lines, "file", p->edit->weights);
    p->edit->behind(p->edit->of, NULL, p->lines.f);
}

static void print_all(struct printing *p)
{
    static const struct {
        const char *kind;
        void (*print)(struct printing *p, const struct config_section *s);
    } before[] = {{"plugins", print_plugins},
                  {"build", print_build},
                  {"runtime", print_plain},
                  {"bench", print_plain}},
      behind[] = {{"profile", print_profile}, {"weights", print_source}};
    const bool alone = p->edit && p->edit->alone;
    print_network(p);
    for (size_t i = 0; i < ARRAY_LENGTH(before) && !alone; i++)
        print_kind(p, before[i].kind, before[i].print);
    for (size_t i = 0; i < p->net->n_inputs - p->net->n_states; i++)
        print_input(p, &p->net->inputs[i]);
    for (size_t i = 0; i < p->net->n_states; i++)
        print_state(p, &p->net->states[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(behind) - (p->edit != NULL); i++)
        print_kind(p, behind[i].kind, behind[i].print);
    if (p->edit)
        print_edit(p);
    for (size_t i = 0; i < p->net->n_layers; i++)
        print_layer(p, &p->net->layers[i]);
}

int network_print(char **text, size_t *size, const strata_network *net,
                  strata_registry *registry, strata_error *err)
{
    return network_print_edited(text, size, net, registry, NULL, err);
}

int network_print_edited(char **text, size_t *size, const strata_network *net,
                         strata_registry *registry, const struct network_edit *edit,
                         strata_error *err)
{
    struct printing p = {.lines = {.gap = ", ", .section = "", .err = err},
                         .net = network_loaded(net),
                         .registry = registry,
                         .edit = edit};
    *text = NULL;
    int status = index_layers(&p, err);
    if (status == STRATA_OK && !(p.lines.f = text_stream(text, size)))
        status = error_no_memory(err, 0, "a network's text");
    if (status == STRATA_OK) {
        print_all(&p);
        lines_finish(&p.lines, text, *size);
        status = p.lines.status;
    }
    names_free(&p.layers);
    return status;
}
