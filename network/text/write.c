/* SPDX-License-Identifier: Apache-2.0
 *
 * A network as INI text in one canonical form: every attribute with its value, every
 * default written out, variables, symbols, includes and overrides gone. Weights are those
 * of one file, named "LAYER.WEIGHT". Reading it back gives the same network.
 */
#include "network/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"
#include "registry/math/mode.h"
#include "network/text/lines.h"

/* ---- sections ---------------------------------------------------------------------- */

static void write_network(struct lines *w, const strata_network *net)
{
    long at;
    w->section = "network";
    fputs("[network]\nformat = 1\n", w->f);
    line_text(w, "name", net->name);
    if (net->n_labels)
        line_word(w, "labels", NETWORK_MEMORY_LABELS);
    at = line_begin(w, "outputs");
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++)
        fprintf(w->f, "%s%s", i ? "," : "", net->outputs[i].name);
    line_end(w, "outputs", at);
    at = line_begin(w, "output_formats");
    for (size_t i = 0; i < net->n_outputs - net->n_states; i++) {
        fputs(i ? "," : "", w->f);
        line_format(w, net->outputs[i].format, net->tensors[net->outputs[i].tensor].rank);
    }
    line_end(w, "output_formats", at);
}

/* One value where the channels agree, else one for each. */
static void put_channels(struct lines *w, const char *key, const double v[4],
                         int64_t channels)
{
    int64_t n = 1;
    for (int i = 1; i < 4; i++)
        if (v[i] != v[0])
            n = channels;
    line_reals(w, key, v, n);
}

/* "past+T", "past+1". */
static void write_sum(struct lines *w, const strata_network *net, int first, int second,
                      int64_t more)
{
    fputs(net->symbols[first].name, w->f);
    if (second >= 0)
        fprintf(w->f, "+%s", net->symbols[second].name);
    else
        fprintf(w->f, "+%" PRId64, more);
}

static void write_shape(struct lines *w, const strata_network *net,
                        const struct network_input *in, const struct network_tensor *t)
{
    long at = line_begin(w, "shape");
    for (int i = 0; i < t->rank; i++) {
        fputs(i ? "," : "", w->f);
        if (in->symbols[i] >= 0)
            fputs(net->symbols[in->symbols[i]].name, w->f);
        else if (in->sums[i].first >= 0)
            write_sum(w, net, in->sums[i].first, in->sums[i].second, in->sums[i].more);
        else
            fprintf(w->f, "%" PRId64, t->dims[i]);
    }
    line_end(w, "shape", at);
}

static void write_profile(struct lines *w, const strata_network *net)
{
    w->section = "profile";
    if (net->n_symbols == 0)
        return;
    fputs("\n[profile]\n", w->f);
    for (size_t i = 0; i < net->n_symbols; i++) {
        const struct network_symbol *s = &net->symbols[i];
        line_sizes(w, s->name,
                   (struct line_range){s->least, s->most, s->step, s->sizes, s->n_sizes});
    }
}

static void write_input(struct lines *w, const strata_network *net,
                        const struct network_input *in)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    const struct image_transform *m = &in->transform;
    int64_t channels = t->rank > 1 ? t->dims[1] : 1;
    w->section = in->name;
    fprintf(w->f, "\n[input %s]\n", in->name);
    write_shape(w, net, in, t);
    line_word(w, "dtype", strata_dtype_name(t->dtype));
    long at = line_begin(w, "format");
    line_format(w, in->format, t->rank);
    line_end(w, "format", at);
    if (in->pads_any) /* the default is not written: older libraries read the file */
        line_word(w, "pads", "any");
    if (t->rank == 4 && channels == (m->channels == IMAGE_GRAY ? 1 : 3))
        line_choice(w, "channels", "rgb|bgr|gray", (int)m->channels);
    line_choice(w, "resize", "stretch|crop|letterbox|exact", (int)m->resize);
    if (m->antialias)
        line_flag(w, "antialias", true);
    line_reals(w, "fill", &m->fill, 1);
    line_reals(w, "scale", &m->scale, 1);
    put_channels(w, "mean", m->mean, channels);
    put_channels(w, "std", m->std, channels);
}

static void write_state(struct lines *w, const strata_network *net,
                        const struct network_state *state)
{
    const struct network_input *in = &net->inputs[state->input];
    const struct network_tensor *t = &net->tensors[in->tensor];
    w->section = in->name;
    fprintf(w->f, "\n[state %s]\n", in->name);
    write_shape(w, net, in, t);
    line_word(w, "dtype", strata_dtype_name(t->dtype));
    long at = line_begin(w, "format");
    line_format(w, in->format, t->rank);
    line_end(w, "format", at);
    line_word(w, "next", net->outputs[state->output].name);
    line_reals(w, "value", &state->value, 1);
    if (state->room)
        line_int(w, "room", state->room);
}

static void write_build(struct lines *w, const strata_network *net, int math)
{
    static const char *const objectives = "time|reformats|memory";
    const struct build_options *b = &net->build;
    w->section = "build";
    fputs("\n[build]\n", w->f);
    line_choice(w, "precision", "fp32|fp16|any|bf16", (int)b->precision);
    line_formats(w, "formats", b->formats);
    line_flag(w, "fusion", b->fusion);
    if (!b->merge) /* older readers know no such key */
        line_flag(w, "merge", false);
    line_choice(w, "objective", objectives, (int)b->objective);
    line_reals(w, "memory_slack", &b->memory_slack, 1);
    line_int(w, "memory_plans", b->memory_plans);
    line_int(w, "plan_nodes", b->plan_nodes);
    line_flag(w, "no_reformat", b->no_reformat);
    line_flag(w, "deterministic", b->deterministic);
    line_choice(w, "math", MATH_MODES, math);
    if (b->nan) /* older readers know no such key */
        line_choice(w, "nan", "any|propagate", 1);
    if (b->mixed) /* the same */
        line_choice(w, "quantised", "exact|fastest", 1);
    fprintf(w->f, "workspace = %" PRIu64 "\n", b->workspace);
}

static void write_runtime(struct lines *w, const strata_network *net)
{
    fputs("\n[runtime]\n", w->f);
    line_word(w, "device", net->runtime.device);
    line_int(w, "threads", net->runtime.threads);
    if (net->runtime.wait != STRATA_WAIT_YIELD) /* older readers know no such key */
        line_choice(w, "wait", "spin|yield|sleep", net->runtime.wait - STRATA_WAIT_SPIN);
    line_flag(w, "graph", net->runtime.graph);
    fprintf(w->f,
            "\n[bench]\nwarmup = %" PRIu64 "ns\nduration = %" PRIu64
            "ns\niterations = %" PRId64 "\n",
            net->bench.warmup, net->bench.duration, net->bench.iterations);
}

/* ---- layers ------------------------------------------------------------------------ */

/* The first of a layer's names that stands in the attribute, or NULL. */
static const struct network_name *find_name(const struct network_layer *layer,
                                            const strata_attr *a)
{
    for (size_t i = 0; i < layer->n_names; i++)
        if (layer->names[i].attr == a)
            return &layer->names[i];
    return NULL;
}

/* A list of integers, of which entries are symbols, from this one on. */
static void write_names(struct lines *w, const strata_network *net,
                        const struct network_layer *layer,
                        const struct network_name *name)
{
    const strata_attr *a = name->attr;
    const strata_ints *list = (const void *)((const char *)layer->params + a->offset);
    const struct network_name *end = layer->names + layer->n_names;
    const long at = line_begin(w, a->name);
    for (int64_t i = 0; i < list->n; i++) {
        fputs(i ? "," : "", w->f);
        if (name == end || name->attr != a || name->entry != i) {
            fprintf(w->f, "%" PRId64, list->v[i]);
            continue;
        }
        if (name->plus >= 0 || name->more) {
            write_sum(w, net, name->symbol, name->plus, name->more);
            name++;
            continue;
        }
        fputs(net->symbols[name->symbol].name, w->f);
        if (name->times > 1)
            fprintf(w->f, "*%" PRId64, name->times);
        else if (name->over > 1)
            fprintf(w->f, "/%" PRId64, name->over);
        name++;
    }
    line_end(w, a->name, at);
}

static void write_attribute(struct lines *w, const strata_network *net,
                            const struct network_layer *layer, const strata_attr *a)
{
    const struct network_name *name = find_name(layer, a);
    if (name)
        write_names(w, net, layer, name);
    else
        line_attribute(w, a, layer->params);
}

static void write_layer(struct lines *w, const strata_network *net,
                        const struct network_layer *layer)
{
    const struct registry_layer *type = layer->type;
    bool weights = false;
    w->section = layer->name;
    fprintf(w->f, "\n[layer %s]\ntype = %s\n", layer->name, type->full_name);
    if (layer->n_ports) {
        long at = line_begin(w, "inputs");
        for (int port = 0, i = 0; port < layer->n_ports; port++) {
            bool given = i < layer->n_inputs && network_port(layer, i) == port;
            fprintf(w->f, "%s%s", port ? "," : "",
                    given ? net->tensors[layer->inputs[i++]].name : "none");
        }
        line_end(w, "inputs", at);
    }
    for (size_t i = 0; i < type->n_weights; i++)
        weights |= layer->weights[i].source != WEIGHT_ABSENT;
    if (weights)
        fprintf(w->f, "weights = w:%s\n", layer->name);
    line_formats(w, "format", layer->formats);
    if (layer->impl)
        line_word(w, "impl", layer->impl);
    for (size_t i = 0; i < type->n_attrs; i++)
        write_attribute(w, net, layer, &type->attrs[i]);
}

int network_write(char **text, size_t *size, const strata_network *net, int math,
                  strata_error *err)
{
    struct lines w = {.gap = ",", .quoted = true, .err = err};
    *text = NULL;
    if (!(w.f = text_stream(text, size)))
        return error_no_memory(err, 0, "a network's text");
    write_network(&w, net);
    write_profile(&w, net);
    write_build(&w, net, math);
    write_runtime(&w, net);
    for (size_t i = 0; i < net->n_inputs - net->n_states; i++)
        write_input(&w, net, &net->inputs[i]);
    for (size_t i = 0; i < net->n_states; i++)
        write_state(&w, net, &net->states[i]);
    fprintf(w.f, "\n[weights w]\nfile = %s\n", NETWORK_MEMORY_WEIGHTS);
    for (size_t i = 0; i < net->n_layers; i++)
        write_layer(&w, net, &net->layers[i]);
    lines_finish(&w, text, *size);
    return w.status;
}
