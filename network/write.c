/* SPDX-License-Identifier: Apache-2.0
 *
 * A network as INI text in one canonical form: every attribute with its value, every
 * default written out, variables, symbols, includes and overrides gone. Weights are those
 * of one file, named "LAYER.WEIGHT". Reading it back gives the same network.
 */
#include "network/network.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

struct writer {
    FILE *f;
    const char *section; /* for messages */
    strata_error *err;
    int status;
};

/* ---- lines ------------------------------------------------------------------------- */

static long begin(struct writer *w, const char *key)
{
    long at = ftell(w->f);
    fprintf(w->f, "%s = ", key);
    return at;
}

static void end(struct writer *w, const char *key, long at)
{
    if (ftell(w->f) - at > CONFIG_MAX_LINE && w->status == STRATA_OK)
        w->status = error_set(w->err, STRATA_EOVERFLOW,
                              "[%s] %s: %ld bytes; a line of a network has at most %d",
                              w->section, key, ftell(w->f) - at, CONFIG_MAX_LINE);
    fputc('\n', w->f);
}

/* Quoted, so that blanks and '#' stay; a quote and " ;" have no way to be written. */
static void put_text(struct writer *w, const char *key, const char *text)
{
    const char *semicolon = strchr(text, ';');
    bool bad = strchr(text, '"') != NULL;
    for (; semicolon && !bad; semicolon = strchr(semicolon + 1, ';'))
        bad = semicolon > text && (semicolon[-1] == ' ' || semicolon[-1] == '\t');
    if (bad && w->status == STRATA_OK)
        w->status = error_set(w->err, STRATA_EUNSUPPORTED,
                              "[%s] %s: a value with a quote or ' ;' cannot be written",
                              w->section, key);
    long at = begin(w, key);
    fputc('"', w->f);
    for (; *text; text++)
        fprintf(w->f, *text == '$' ? "$$" : "%c", *text);
    fputc('"', w->f);
    end(w, key, at);
}

/* The shortest decimal that reads back as the same value. */
static void put_real_value(FILE *f, double x)
{
    char text[TEXT_REAL];
    int digits = 15;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    fputs(text_real(text, digits, x), f);
}

static void put_reals(struct writer *w, const char *key, const double *v, int64_t n)
{
    long at = begin(w, key);
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? "," : "", w->f);
        put_real_value(w->f, v[i]);
    }
    fputs(n ? "" : "\"\"", w->f);
    end(w, key, at);
}

static void put_ints(struct writer *w, const char *key, const int64_t *v, int64_t n)
{
    long at = begin(w, key);
    for (int64_t i = 0; i < n; i++)
        fprintf(w->f, i ? ",%" PRId64 : "%" PRId64, v[i]);
    fputs(n ? "" : "\"\"", w->f);
    end(w, key, at);
}

static void put_int(struct writer *w, const char *key, int64_t value)
{
    put_ints(w, key, &value, 1);
}

static void put_flag(struct writer *w, const char *key, bool value)
{
    fprintf(w->f, "%s = %s\n", key, value ? "yes" : "no");
}

static void put_word(struct writer *w, const char *key, const char *word)
{
    fprintf(w->f, "%s = %s\n", key, word);
}

/* The index-th of "a|b|c". */
static void put_choice(struct writer *w, const char *key, const char *choices, int index)
{
    for (; index > 0 && choices; index--)
        choices = strchr(choices, '|') ? strchr(choices, '|') + 1 : NULL;
    if (choices)
        fprintf(w->f, "%s = %.*s\n", key, (int)strcspn(choices, "|"), choices);
}

/* The formats of a mask. */
static void put_formats(struct writer *w, const char *key, uint64_t mask)
{
    const char *gap = "";
    if (!mask)
        return;
    long at = begin(w, key);
    for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
        if (mask >> i & 1) {
            fprintf(w->f, "%s%s", gap, format_mask_name(UINT64_C(1) << i, 4));
            gap = ",";
        }
    end(w, key, at);
}

static void put_format(struct writer *w, struct format format, int rank)
{
    char name[FORMAT_NAME_SIZE];
    format_name(name, format, rank);
    fputs(name, w->f);
}

/* ---- sections ---------------------------------------------------------------------- */

static void write_network(struct writer *w, const strata_network *net)
{
    long at;
    w->section = "network";
    fputs("[network]\nformat = 1\n", w->f);
    put_text(w, "name", net->name);
    if (net->n_labels)
        put_word(w, "labels", NETWORK_MEMORY_LABELS);
    at = begin(w, "outputs");
    for (size_t i = 0; i < net->n_outputs; i++)
        fprintf(w->f, "%s%s", i ? "," : "", net->outputs[i].name);
    end(w, "outputs", at);
    at = begin(w, "output_formats");
    for (size_t i = 0; i < net->n_outputs; i++) {
        fputs(i ? "," : "", w->f);
        put_format(w, net->outputs[i].format, net->tensors[net->outputs[i].tensor].rank);
    }
    end(w, "output_formats", at);
}

/* One value where the channels agree, else one for each. */
static void put_channels(struct writer *w, const char *key, const double v[4],
                         int64_t channels)
{
    int64_t n = 1;
    for (int i = 1; i < 4; i++)
        if (v[i] != v[0])
            n = channels;
    put_reals(w, key, v, n);
}

/* The name that has several values. */
#define BATCH "batch"

static void write_shape(struct writer *w, const struct network_input *in,
                        const struct network_tensor *t)
{
    long at = begin(w, "shape");
    for (int i = 0; i < t->rank; i++) {
        fputs(i ? "," : "", w->f);
        if (i == 0 && in->batched)
            fputs(BATCH, w->f);
        else
            fprintf(w->f, "%" PRId64, t->dims[i]);
    }
    end(w, "shape", at);
}

static void write_profile(struct writer *w, const strata_network *net)
{
    w->section = "profile";
    if (net->n_batches == 0)
        return;
    fputs("\n[profile]\n", w->f);
    put_ints(w, BATCH, net->batches, (int64_t)net->n_batches);
}

static void write_input(struct writer *w, const strata_network *net,
                        const struct network_input *in)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    const struct image_transform *m = &in->transform;
    int64_t channels = t->rank > 1 ? t->dims[1] : 1;
    w->section = in->name;
    fprintf(w->f, "\n[input %s]\n", in->name);
    write_shape(w, in, t);
    put_word(w, "dtype", strata_dtype_name(t->dtype));
    long at = begin(w, "format");
    put_format(w, in->format, t->rank);
    end(w, "format", at);
    if (in->pads_any) /* the default is not written: older libraries read the file */
        put_word(w, "pads", "any");
    if (t->rank == 4 && channels == (m->channels == IMAGE_GRAY ? 1 : 3))
        put_choice(w, "channels", "rgb|bgr|gray", (int)m->channels);
    put_choice(w, "resize", "stretch|crop|letterbox|exact", (int)m->resize);
    if (m->antialias)
        put_flag(w, "antialias", true);
    put_reals(w, "fill", &m->fill, 1);
    put_reals(w, "scale", &m->scale, 1);
    put_channels(w, "mean", m->mean, channels);
    put_channels(w, "std", m->std, channels);
}

static void write_build(struct writer *w, const strata_network *net, int math)
{
    static const char *const objectives = "time|reformats|memory";
    const struct build_options *b = &net->build;
    w->section = "build";
    fputs("\n[build]\n", w->f);
    put_choice(w, "precision", "fp32|fp16|any|bf16", (int)b->precision);
    put_formats(w, "formats", b->formats);
    put_flag(w, "fusion", b->fusion);
    put_choice(w, "objective", objectives, (int)b->objective);
    put_reals(w, "memory_slack", &b->memory_slack, 1);
    put_int(w, "memory_plans", b->memory_plans);
    put_int(w, "plan_nodes", b->plan_nodes);
    put_flag(w, "no_reformat", b->no_reformat);
    put_flag(w, "deterministic", b->deterministic);
    put_choice(w, "math", "default|tensor_op", math);
    if (b->nan) /* older readers know no such key */
        put_choice(w, "nan", "any|propagate", 1);
    fprintf(w->f, "workspace = %" PRIu64 "\n", b->workspace);
}

static void write_runtime(struct writer *w, const strata_network *net)
{
    fputs("\n[runtime]\n", w->f);
    put_word(w, "device", net->runtime.device);
    put_int(w, "threads", net->runtime.threads);
    if (net->runtime.wait != STRATA_WAIT_YIELD) /* older readers know no such key */
        put_choice(w, "wait", "spin|yield|sleep", net->runtime.wait - STRATA_WAIT_SPIN);
    put_flag(w, "graph", net->runtime.graph);
    fprintf(w->f,
            "\n[bench]\nwarmup = %" PRIu64 "ns\nduration = %" PRIu64
            "ns\niterations = %" PRId64 "\n",
            net->bench.warmup, net->bench.duration, net->bench.iterations);
}

/* ---- layers ------------------------------------------------------------------------ */

static void write_attribute(struct writer *w, const strata_attr *a, const void *params)
{
    const void *at = (const char *)params + a->offset;
    const strata_string *string = at;
    switch (a->type) {
    case STRATA_I64:
        put_int(w, a->name, *(const int64_t *)at);
        break;
    case STRATA_F64:
        put_reals(w, a->name, at, 1);
        break;
    case STRATA_BOOL:
        put_flag(w, a->name, *(const int32_t *)at != 0);
        break;
    case STRATA_ENUM:
        put_choice(w, a->name, a->choices, *(const int32_t *)at);
        break;
    case STRATA_STRING:
        put_text(w, a->name, string->text ? string->text : "");
        break;
    case STRATA_INTS:
        put_ints(w, a->name, ((const strata_ints *)at)->v, ((const strata_ints *)at)->n);
        break;
    case STRATA_REALS:
        put_reals(w, a->name, ((const strata_reals *)at)->v,
                  ((const strata_reals *)at)->n);
        break;
    default: /* the registry refuses other types */
        break;
    }
}

static void write_layer(struct writer *w, const strata_network *net,
                        const struct network_layer *layer)
{
    const struct registry_layer *type = layer->type;
    bool weights = false;
    w->section = layer->name;
    fprintf(w->f, "\n[layer %s]\ntype = %s\n", layer->name, type->full_name);
    if (layer->n_ports) {
        long at = begin(w, "inputs");
        for (int port = 0, i = 0; port < layer->n_ports; port++) {
            bool given = i < layer->n_inputs && network_port(layer, i) == port;
            fprintf(w->f, "%s%s", port ? "," : "",
                    given ? net->tensors[layer->inputs[i++]].name : "none");
        }
        end(w, "inputs", at);
    }
    for (size_t i = 0; i < type->n_weights; i++)
        weights |= layer->weights[i].source != WEIGHT_ABSENT;
    if (weights)
        fprintf(w->f, "weights = w:%s\n", layer->name);
    put_formats(w, "format", layer->formats);
    if (layer->impl)
        put_word(w, "impl", layer->impl);
    for (size_t i = 0; i < type->n_attrs; i++)
        write_attribute(w, &type->attrs[i], layer->params);
}

int network_write(char **text, size_t *size, const strata_network *net, int math,
                  strata_error *err)
{
    struct writer w = {.err = err};
    *text = NULL;
    if (!(w.f = open_memstream(text, size)))
        return error_no_memory(err, 0, "a network's text");
    write_network(&w, net);
    write_profile(&w, net);
    write_build(&w, net, math);
    write_runtime(&w, net);
    for (size_t i = 0; i < net->n_inputs; i++)
        write_input(&w, net, &net->inputs[i]);
    fprintf(w.f, "\n[weights w]\nfile = %s\n", NETWORK_MEMORY_WEIGHTS);
    for (size_t i = 0; i < net->n_layers; i++)
        write_layer(&w, net, &net->layers[i]);
    bool failed = ferror(w.f) != 0;
    failed |= fclose(w.f) != 0;
    if (failed && w.status == STRATA_OK)
        w.status = error_no_memory(err, *size, "a network's text");
    if (w.status != STRATA_OK) {
        free(*text);
        *text = NULL;
    }
    return w.status;
}
