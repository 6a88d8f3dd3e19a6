/* SPDX-License-Identifier: Apache-2.0
 *
 * A network as a person would write it: what is a default is left out, as is `inputs`
 * where it is the layer above. An imported model's text, read, prints as it was.
 */
#include "network/network.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "network/lines.h"

/* ---- what is not printed -------------------------------------------------------------
 */

/* Weights lie in one file at most. */
static int check_weights(const strata_network *net, strata_error *err)
{
    if (net->n_files > 1)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s: weights of %zu files; a network of one can be printed",
                         net->path, net->n_files);
    for (size_t i = 0; i < net->n_layers; i++)
        for (size_t k = 0; k < net->layers[i].type->n_weights; k++)
            if (net->layers[i].weights[k].source == WEIGHT_RANDOM)
                return error_set(err, STRATA_EUNSUPPORTED,
                                 "%s: weight '%s' is random; a network whose weights are "
                                 "a file's can be printed",
                                 net->path, net->layers[i].weights[k].name);
    return STRATA_OK;
}

static int check(const strata_network *net, strata_error *err)
{
    static const char *const others[] = {"build", "runtime", "bench", "profile",
                                         "plugins"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (config_find(net->config, others[i]))
            return error_set(err, STRATA_EUNSUPPORTED,
                             "%s: [%s] cannot be printed; network, inputs, weights and "
                             "layers can",
                             net->path, others[i]);
    return net->n_labels ? error_set(err, STRATA_EUNSUPPORTED,
                                     "%s: labels cannot be printed", net->path)
                         : check_weights(net, err);
}

/* ---- network and inputs --------------------------------------------------------------
 */

static bool is_usual(struct format f, int dtype)
{
    return f.dtype == dtype && f.order == ORDER_LINEAR && f.vector == 1;
}

static void print_network(struct lines *w, const strata_network *net)
{
    bool usual = true;
    w->section = "network";
    fputs("[network]\nformat = 1\n", w->f);
    line_text(w, "name", net->name);
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

static void print_input(struct lines *w, const strata_network *net,
                        const struct network_input *in)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    w->section = in->name;
    fprintf(w->f, "\n[input %s]\n", in->name);
    line_dims(w, "shape", t->dims, t->rank);
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

static void print_state(struct lines *w, const strata_network *net,
                        const struct network_state *state)
{
    const struct network_input *in = &net->inputs[state->input];
    const struct network_tensor *t = &net->tensors[in->tensor];
    w->section = in->name;
    fprintf(w->f, "\n[state %s]\n", in->name);
    line_dims(w, "shape", t->dims, t->rank);
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
    const bool finds = plain &&
                       registry_find(registry, plain, &found, &why) == STRATA_OK &&
                       found == type;
    line_word(w, "type", finds ? plain : full);
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

static void print_inputs(struct lines *w, const strata_network *net,
                         const struct network_layer *layer)
{
    const long at = line_begin(w, "inputs");
    for (int port = 0, i = 0; port < layer->n_ports; port++) {
        const bool given = i < layer->n_inputs && network_port(layer, i) == port;
        fprintf(w->f, "%s%s", port ? w->gap : "",
                given ? net->tensors[layer->inputs[i++]].name : "none");
    }
    line_end(w, "inputs", at);
}

static const char *tensor_of(const void *of, size_t weight)
{
    const struct network_layer *layer = of;
    const struct network_weight *w = &layer->weights[weight];
    return w->source == WEIGHT_FILE ? w->view.name : NULL;
}

/* What the file does not give: zeros, and what is absent though the file has it. */
static void print_other_weights(struct lines *w, const strata_network *net,
                                const struct network_layer *layer)
{
    bool own = false;
    struct weight_view view;
    for (size_t i = 0; i < layer->type->n_weights; i++)
        own |= layer->weights[i].source == WEIGHT_FILE &&
               strcmp(layer->weights[i].view.name, layer->weights[i].name) == 0;
    for (size_t i = 0; i < layer->type->n_weights; i++) {
        const struct network_weight *weight = &layer->weights[i];
        if (weight->source == WEIGHT_ZEROS)
            line_word(w, layer->type->weights[i].name, "zeros");
        else if (own && weight->source == WEIGHT_ABSENT &&
                 weights_find(net->files[0], weight->name, &view, NULL) == STRATA_OK)
            line_word(w, layer->type->weights[i].name, "none");
    }
}

static void print_layer(struct lines *w, const strata_network *net,
                        const struct network_layer *layer, strata_registry *registry)
{
    w->section = layer->name;
    fprintf(w->f, "\n[layer %s]\n", layer->name);
    print_type(w, layer->type, registry);
    if (layer->n_ports && !reads_above(net, layer))
        print_inputs(w, net, layer);
    line_formats(w, "format", layer->formats);
    if (layer->impl)
        line_word(w, "impl", layer->impl);
    line_attributes(w, layer->type, layer->params);
    line_weights(w, layer->name, layer->type, tensor_of, layer);
    print_other_weights(w, net, layer);
}

int network_print(char **text, size_t *size, const strata_network *net,
                  const char *weights, strata_registry *registry, strata_error *err)
{
    struct lines w = {.gap = ", ", .err = err};
    *text = NULL;
    w.status = check(net, err);
    if (w.status != STRATA_OK)
        return w.status;
    if (!(w.f = open_memstream(text, size)))
        return error_no_memory(err, 0, "a network's text");
    print_network(&w, net);
    for (size_t i = 0; i < net->n_inputs - net->n_states; i++)
        print_input(&w, net, &net->inputs[i]);
    for (size_t i = 0; i < net->n_states; i++)
        print_state(&w, net, &net->states[i]);
    if (net->n_files) {
        fputs("\n[weights w]\n", w.f);
        line_text(&w, "file", weights);
    }
    for (size_t i = 0; i < net->n_layers; i++)
        print_layer(&w, net, &net->layers[i], registry);
    lines_finish(&w, text, *size);
    return w.status;
}
